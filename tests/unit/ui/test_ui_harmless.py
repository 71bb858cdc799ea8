"""What others wrote is shown on a terminal and does nothing there."""

from __future__ import annotations

import io
import json

import pytest

from hyperscale.cli.tables import table
from hyperscale.ui.output import Output
from hyperscale.ui.text import harmless, harmless_json

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x08\x7f\r\u202ename\u2066"


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def written(text: str, **environ: str) -> str:
    stream = Terminal()
    Output(stream, {"TERM": "xterm", **environ}).write(text)
    return stream.getvalue()


def test_nothing_that_a_terminal_obeys_passes() -> None:
    shown = written(f"before\t{HOSTILE}\nafter\n")
    assert shown.startswith("before\t")
    assert shown.endswith("name\ufffd\nafter\n")
    assert all(c.isprintable() or c in "\n\t" for c in shown)


@pytest.mark.parametrize(
    "text", ["plain\n", "a\tb", "größe ✓ 12µs", "\u00a0", "👩\u200d💻", "日本"]
)
def test_what_people_write_stays(text: str) -> None:
    assert written(text) == text


def test_our_own_colours_pass_where_there_are_colours() -> None:
    paint = Output(Terminal(), {"TERM": "xterm"}).paint()
    text = "".join(
        colour("x") for colour in (paint.good, paint.bad, paint.warn, paint.strong, paint.faint)
    )
    assert written(text) == text
    assert "\x1b" not in written(text, NO_COLOR="1")
    assert "\x1b" not in written("\x1b[38;5;1m \x1b[5m \x1b[8m \x1b[31;42m \x1b[3")


def test_lines_of_other_systems_end_as_ours() -> None:
    assert harmless("a\r\nb\rc") == "a\nb\ufffdc"


def test_json_keeps_its_meaning() -> None:
    data = {"name": HOSTILE, "other": "größe"}
    text = harmless_json(json.dumps(data, indent=2, ensure_ascii=False))
    assert json.loads(text) == data
    assert harmless(text) == text


def test_a_cell_of_a_table_stays_in_its_row() -> None:
    head, row = table(("A", "B"), [("one\ntwo", "x  y")])
    assert row == "one two  x  y"
    assert head.startswith("A")

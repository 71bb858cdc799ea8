"""stdout and stderr of every kind: nothing a reader does to them may become an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hyperscale.errors import BadInput, RunFailed
from hyperscale.ui.errors import render_error
from hyperscale.ui.output import Output

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, sys
from hyperscale.errors import BadInput
from hyperscale.ui.errors import print_error
from hyperscale.ui.mode import open_view
from hyperscale.ui.summary import print_summary
from tests.unit.ui.fake_run import FakeRun
from tests.unit.ui.sample import sample_results
asyncio.run(open_view("full").run(FakeRun(snapshots=2)))
print_error(BadInput("bad", "hint"))
print_summary(sample_results())
print_summary(sample_results(), quiet=True)
sys.exit(42)
"""


def shell(redirection: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$0" -c "$1" {redirection}', sys.executable, PROGRAM],
        cwd=ROOT,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm", **environ},
        timeout=60,
    )


@pytest.mark.parametrize(
    "redirection",
    [">&-", "2>&-", ">&- 2>&-", "> /dev/full", "2> /dev/full", "| true", "2>&1 | head -c 1"],
)
def test_lost_reader_changes_neither_exit_code_nor_output(redirection: str) -> None:
    done = shell(redirection)
    assert done.returncode == 42
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_summary_on_stdout_and_everything_else_on_stderr() -> None:
    done = shell("")
    assert done.stdout.count(b"thresholds crossed") == 2
    assert b"Checkout  started" in done.stderr
    assert b"error: bad\nhint:  hint\n" in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_ascii_stdout_gets_ascii() -> None:
    done = shell("", PYTHONIOENCODING="ascii")
    assert done.stdout.isascii()
    assert b"x http_req_failed 'rate<0.0001'" in done.stdout


def test_error_is_a_sentence_and_a_hint() -> None:
    assert render_error(BadInput("No file t.py.", "Run hyperscale new t.py.")) == (
        "error: No file t.py.\nhint:  Run hyperscale new t.py.\n"
    )
    assert render_error(RunFailed("line one\nline two")) == "error: line one\n       line two\n"


def test_no_stream_at_all() -> None:
    assert Output(None).write("lost") is False


def test_colour_needs_a_terminal_and_no_objection() -> None:
    class Terminal:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    def color(**environ: str) -> bool:
        return Output(Terminal(), environ).color  # type: ignore[arg-type]

    assert color(TERM="xterm")
    assert not color(TERM="xterm", NO_COLOR="1")
    assert not color(TERM="dumb")

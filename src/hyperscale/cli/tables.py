"""Rows for people: aligned columns, two blanks apart, numbers to the right."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from hyperscale.cli import streams
from hyperscale.errors import ExitCode
from hyperscale.ui.text import one_line

if TYPE_CHECKING:
    from hyperscale.config.sections import Row


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Container[str] = ()
) -> list[str]:
    """The head first; no trailing blanks. A cell stays in its row, whatever is in it."""
    cells = [head, *([_in_a_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if title in right else cell.ljust(width)
            for title, cell, width in zip(head, line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]


def _in_a_line(cell: str) -> str:
    return cell if cell.isprintable() else one_line(cell)


def show_settings(rows: Sequence[Row]) -> int:
    """`--show-settings`: all settings of a command, their values, and who set them."""
    for line in table(("SETTING", "VALUE", "FROM"), rows):
        streams.say(line)
    return int(ExitCode.PASSED)


def age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"

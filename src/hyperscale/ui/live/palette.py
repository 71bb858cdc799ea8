"""The colours of the view, in one place. They work on dark and light backgrounds."""

from __future__ import annotations

from functools import cache

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

Line = list[Segment]

PLAIN = Style.null()
FAINT = Style.parse("bright_black")
STRONG = Style.parse("bold")
GOOD = Style.parse("green")
WARN = Style.parse("yellow")
BAD = Style.parse("red")
BAR = Style.parse("cyan")
HEADING = Style.parse("bold cyan")
KEY = Style.parse("bold cyan")

# Curves: p95 before p99 before the response time, from calm to alarming.
RATE = Style.parse("cyan")
CURVES = (Style.parse("green"), Style.parse("yellow"), Style.parse("magenta"))

# Curves of several workflows, in their order.
WORKFLOWS = tuple(map(Style.parse, ("cyan", "green", "yellow", "magenta", "blue", "bright_red")))

_FROM, _TO = (0, 200, 255), (190, 90, 255)


@cache
def gradient(text: str) -> tuple[Segment, ...]:
    """One style per letter, from cyan to violet."""
    last = max(1, len(text) - 1)
    return tuple(
        Segment(
            letter,
            Style(
                bold=True,
                color=Color.from_rgb(
                    *(a + (b - a) * i / last for a, b in zip(_FROM, _TO, strict=True))
                ),
            ),
        )
        for i, letter in enumerate(text)
    )


def text_width(line: Line) -> int:
    return sum(segment.cell_length for segment in line)


def clip(line: Line, width: int) -> Line:
    return Segment.adjust_line_length(line, width, pad=False) if text_width(line) > width else line


def cell(content: str, width: int) -> str:
    """Exactly `width` columns, an ellipsis marking a cut; wide characters count double."""
    if cell_len(content) <= width:
        return set_cell_size(content, width)
    return set_cell_size(content, width - 1) + "…" if width > 0 else ""


def spread(left: Line, right: Line, width: int) -> Line:
    """Left and right at the two edges; the left one gives way."""
    room = max(0, width - text_width(right) - 1)
    left = clip(left, room)
    return clip(
        [*left, Segment(" " * (width - text_width(left) - text_width(right))), *right], width
    )

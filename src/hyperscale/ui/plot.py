"""A line plot in text: curves over time, drawn on dots finer than the character cell.

A pen says how many dots fit in a cell and which character shows a set of them: braille (2×4),
half blocks (1×2, for fonts without braille) or plain ASCII (1×1). When several samples fall on one
column of dots the curve shows their highest, because a plot of latency must not hide a peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Pen:
    columns: int
    rows: int
    glyph: Callable[[int], str]  # bit `row * columns + column` is set where the cell has a dot


# Unicode numbers the dots of a braille cell down the left column, then the right, then the bottom
# row; this maps our row-by-row bits to those numbers.
_BRAILLE_BITS = (0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80)
_BRAILLE = tuple(
    chr(0x2800 + sum(dot for bit, dot in enumerate(_BRAILLE_BITS) if bits >> bit & 1))
    for bits in range(256)
)

BRAILLE = Pen(2, 4, _BRAILLE.__getitem__)
BLOCKS = Pen(1, 2, " ▀▄█".__getitem__)
ASCII = Pen(1, 1, " *".__getitem__)

Sample = tuple[float, float]  # time, value
Run = tuple[str, int]  # text, index of the curve it belongs to (-1: background)


def ceiling(value: float) -> float:
    """The next round number (1, 2, 3, 4, 5, 6 or 8 times a power of ten) for the top of an axis."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(
        (step * power for step in (1, 2, 3, 4, 5, 6, 8) if step * power >= value), power * 10
    )


def draw(
    curves: Sequence[Sequence[Sample]],
    *,
    width: int,
    height: int,
    until: float,
    top: float,
    pen: Pen = BRAILLE,
) -> list[list[Run]]:
    """`height` lines of `width` characters: time 0..`until` to the right, value 0..`top` upwards.

    Where curves share a cell the earlier one in the list owns its colour. A value that is not a
    number leaves a gap.
    """
    columns, rows = width * pen.columns, height * pen.rows
    cells = [[0] * width for _ in range(height)]
    owners = [[-1] * width for _ in range(height)]
    for index in range(len(curves) - 1, -1, -1):
        peaks = _peaks(curves[index], columns, until)
        for x, low, high in _strokes(_dots(peaks, rows, top)):
            cell, within = divmod(x, pen.columns)
            for y in range(low, high + 1):
                row, offset = divmod(rows - 1 - y, pen.rows)
                cells[row][cell] |= 1 << (offset * pen.columns + within)
                owners[row][cell] = index
    return [
        _runs([pen.glyph(bits) if bits else " " for bits in line], owner)
        for line, owner in zip(cells, owners, strict=True)
    ]


def column_of(at: float, until: float, columns: int) -> int:
    """Where a moment stands on an axis of `columns`; what lies beyond an end stands at that end."""
    if at >= until:
        return columns - 1
    return max(0, min(columns - 1, int(at / until * columns)))


def _peaks(samples: Sequence[Sample], columns: int, until: float) -> dict[int, float]:
    """The highest value of each occupied column; not a number where there is none but gaps."""
    peaks: dict[int, float] = {}
    for at, value in samples:
        x = column_of(at, until, columns)
        before = peaks.get(x, math.nan)
        peaks[x] = value if math.isnan(before) else max(before, value)
    return peaks


def _dots(peaks: dict[int, float], rows: int, top: float) -> list[tuple[int, int | None]]:
    def height(value: float) -> int | None:
        if not math.isfinite(value):
            return None
        share = value / top if 0 < value < top else float(value > 0)
        return round(share * (rows - 1))

    return [(x, height(peaks[x])) for x in sorted(peaks)]


def _strokes(points: Sequence[tuple[int, int | None]]) -> list[tuple[int, int, int]]:
    """The straight lines between points, as one vertical stroke (x, low, high) per column."""
    strokes = [(x, y, y) for x, y in points[:1] if y is not None]
    for (x0, y0), (x1, y1) in pairwise(points):
        if y1 is None:
            continue
        if y0 is None:
            strokes.append((x1, y1, y1))
            continue
        before = y0
        for x in range(x0 + 1, x1 + 1):
            y = y0 + round((y1 - y0) * (x - x0) / (x1 - x0))
            # A stroke starts beside the end of its neighbour, so that steep lines stay joined.
            start = before + 1 if y > before else before - 1 if y < before else y
            strokes.append((x, min(start, y), max(start, y)))
            before = y
    return strokes


def _runs(glyphs: Sequence[str], owners: Sequence[int]) -> list[Run]:
    runs: list[Run] = []
    start = 0
    for i in range(1, len(glyphs) + 1):
        if i == len(glyphs) or owners[i] != owners[start]:
            runs.append(("".join(glyphs[start:i]), owners[start]))
            start = i
    return runs

"""Rows for people: aligned columns, two blanks apart, numbers to the right."""

from __future__ import annotations

from collections.abc import Container, Sequence


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Container[str] = ()
) -> list[str]:
    """The head first; no trailing blanks."""
    cells = [head, *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if title in right else cell.ljust(width)
            for title, cell, width in zip(head, line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]


def age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"

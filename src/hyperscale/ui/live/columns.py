"""Which columns of a table fit: they give way by importance as the screen narrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

GAP = 2


class Column(Protocol):
    @property
    def width(self) -> int: ...

    @property
    def rank(self) -> int:
        """1 stays longest."""
        ...


C = TypeVar("C", bound=Column)


def fitting(columns: Sequence[C], room: int) -> list[C]:
    """In their order, as many of the most important as `room` is enough for."""
    chosen: list[C] = []
    for column in sorted(columns, key=lambda column: column.rank):
        room -= column.width + GAP
        if room < 0:
            break
        chosen.append(column)
    return [column for column in columns if column in chosen]

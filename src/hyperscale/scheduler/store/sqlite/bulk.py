"""Statements that take many rows at once.

`executemany` gives the interpreter back and asks for it again for every row, so a batch waits for
the event loop row by row. One statement for many rows runs outside the interpreter from its first
row to its last, beside the event loop instead of in turns with it, and costs about a third less.

OR ROLLBACK stands in each: a violated constraint ends the whole transaction, which is what becomes
of it anyway, so SQLite keeps no copy of every page to undo a single statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

SIZES: Final = (256, 128, 64, 32, 16, 8, 4, 2, 1)
"""Rows per statement, so that any number is a few statements: 500 rows are six. Each size is
compiled once per connection, and 256 rows of a dozen values are far below what SQLite lets a
statement hold (32,766)."""

T = TypeVar("T")


class Bulk:
    def __init__(self, before: str, columns: int, after: str) -> None:
        """The rows stand between `before` and `after`, as of VALUES."""
        row = f"({', '.join('?' * columns)})"
        self._statements = {
            size: f"{before} VALUES {', '.join([row] * size)} {after}" for size in SIZES
        }

    def run(self, connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        for part in _parts(rows):
            connection.execute(self._statements[len(part)], tuple(chain.from_iterable(part)))


class Lookup:
    def __init__(self, before: str) -> None:
        """The list of keys stands behind `before`."""
        self._statements = {size: f"{before} ({', '.join('?' * size)})" for size in SIZES}

    def rows(self, connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[Any]:
        for part in _parts(keys):
            yield from connection.execute(self._statements[len(part)], part).fetchall()


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    start = 0
    for size in SIZES:
        while len(items) - start >= size:
            yield items[start : start + size]
            start += size

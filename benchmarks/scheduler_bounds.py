"""What SQLite can do at most, for the scheduler's figures on it: bare loops in the same batches, on
a file with the store's own settings.

`rows` writes one row a job and nothing else, once for each of its three durable steps. `same`
repeats every statement that the store sent while our scheduler ran the jobs, with the values ready
made: between it and `rows` lies what indexes and history cost, between ours and it the scheduler.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from scheduler_contenders import BATCH, Speed, ours_on_sqlite, stopwatch

from hyperscale.scheduler.store.sqlite import schema

ROW = b"x" * 400


@contextmanager
def _bare(directory: Path) -> Iterator[sqlite3.Connection]:
    for file in directory.glob("bare.db*"):
        file.unlink()
    connection = schema.connect(directory / "bare.db")
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _rows(directory: Path) -> Iterator[sqlite3.Connection]:
    with _bare(directory) as connection:
        connection.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, state INT, data BLOB)")
        yield connection


def _write(connection: sqlite3.Connection, ids: list[str], state: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", [(name, state, ROW) for name in ids]
    )
    connection.execute("COMMIT")


def rows(directory: Path, count: int) -> Speed:
    with _rows(directory) as connection, stopwatch(count) as speed:
        for start in range(0, count, BATCH):
            ids = [f"job-{number}" for number in range(start, start + BATCH)]
            for state in range(3):
                _write(connection, ids, state)
    return speed


def commits(directory: Path) -> list[float]:
    """Milliseconds of 200 durable commits of one row: below this nobody's queue can be."""
    took_ms = []
    with _rows(directory) as connection:
        for number in range(200):
            began = time.perf_counter()
            _write(connection, [f"job-{number}"], 0)
            took_ms.append((time.perf_counter() - began) * 1000)
    return took_ms


Sent = tuple[str, Any, bool]
"""A statement, its values, and whether they are those of many rows."""


class _Recording(sqlite3.Connection):
    """Notes what it is sent. The one that migrates the file is the one that writes."""

    opened: list[_Recording] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: list[Sent] = []
        self.opened.append(self)

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        self.sent.append((statement, values, False))
        return super().execute(statement, values)

    def executemany(self, statement: str, values: Any, /) -> sqlite3.Cursor:
        values = list(values)
        self.sent.append((statement, values, True))
        return super().executemany(statement, values)


def statements(directory: Path, count: int) -> list[Sent]:
    """All that our scheduler's writing connection is sent for so many jobs."""
    connect = sqlite3.connect

    def recorded(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        return connect(*args, **kwargs, factory=_Recording)

    _Recording.opened.clear()
    with patch.object(schema.sqlite3, "connect", recorded):
        ours_on_sqlite(directory, count)
    return _Recording.opened[0].sent


def same(directory: Path, count: int, sent: list[Sent]) -> Speed:
    with _bare(directory) as connection, stopwatch(count) as speed:
        for statement, values, many in sent:
            if many:
                connection.executemany(statement, values)
            else:
                connection.execute(statement, values).fetchall()
    return speed

"""Results in a SQLite file: `sqlite://results.db`, or `sqlite:///var/results.db` from the root."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, create_statement, insert_statement, run_id

_TYPES = {str: "text", int: "integer", float: "real", bool: "integer", datetime: "text"}
_BUSY_S = 5.0  # another run may be writing to the same file


class SQLiteConfig(Config, frozen=True, kw_only=True):
    scheme = "sqlite"
    place_field = ""
    path_field = "database_path"

    database_path: str = "results.db"

    def backend(self) -> Backend:
        return SQLiteReporter(self)


class SQLiteReporter(Backend):
    at_end = True

    def __init__(self, config: SQLiteConfig) -> None:
        self._path = config.database_path
        self._connection: sqlite3.Connection | None = None

    async def connect(self) -> None:
        self._connection = sqlite3.connect(self._path, timeout=_BUSY_S)
        for table in TABLES:
            self._connection.execute(create_statement(table, _TYPES))

    async def submit_results(self, results: Results) -> None:
        assert self._connection is not None
        run = run_id(results)
        with self._connection, closing(self._connection.cursor()) as cursor:
            if cursor.execute(f"select 1 from {TABLES[0].name} where run = ?", [run]).fetchone():
                return
            for table in TABLES:
                rows = [
                    [one.isoformat() if isinstance(one, datetime) else one for one in row]
                    for row in table.rows(run, results)
                ]
                cursor.executemany(insert_statement(table, ["?"] * len(table.columns)), rows)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

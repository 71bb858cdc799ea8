"""Results in a PostgreSQL database, by asyncpg: `postgres://user:password@host:5432/database`."""

from __future__ import annotations

import importlib
from datetime import datetime
from typing import Any

from hyperscale.metrics.results import Results
from hyperscale.reporting.tables import TABLES, create_statement, insert_statement, run_id

_TYPES = {
    str: "text", int: "bigint", float: "double precision", bool: "boolean",
    datetime: "timestamptz",
}  # fmt: skip


class PostgresReporter:
    needs = "asyncpg"

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None

    async def connect(self) -> None:
        asyncpg = importlib.import_module("asyncpg")
        self._connection = await asyncpg.connect(self._url)
        for table in TABLES:
            await self._connection.execute(create_statement(table, _TYPES))

    async def submit(self, results: Results) -> None:
        run = run_id(results)
        async with self._connection.transaction():
            found = f"select 1 from {TABLES[0].name} where run = $1"
            if await self._connection.fetchval(found, run):
                return
            for table in TABLES:
                places = [f"${number}" for number in range(1, len(table.columns) + 1)]
                rows = table.rows(run, results)
                await self._connection.executemany(insert_statement(table, places), rows)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

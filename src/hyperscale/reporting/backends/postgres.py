"""Results in a PostgreSQL database, by asyncpg: `postgres://user:password@host:5432/database`."""

from __future__ import annotations

import importlib
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, create_statement, insert_statement, run_id

_TYPES = {
    str: "text", int: "bigint", float: "double precision", bool: "boolean",
    datetime: "timestamptz",
}  # fmt: skip


class PostgresConfig(Config, frozen=True, kw_only=True):
    scheme = "postgres"
    path_field = "database"
    options_field = "options"
    environment = {"password": "PGPASSWORD", "username": "PGUSER"}

    host: str = "localhost"
    port: int = 5432
    database: str = ""
    username: str = ""
    password: str = ""
    options: dict[str, str] = {}  # of libpq, such as sslmode

    def backend(self) -> Backend:
        return PostgresReporter(self)

    def dsn(self) -> str:
        """What is not said is asyncpg's to find out."""
        who = quote(self.username, safe="")
        who += f":{quote(self.password, safe='')}" if self.password else ""
        where = f"[{self.host}]" if ":" in self.host else self.host
        path = f"/{quote(self.database, safe='')}" if self.database else ""
        query = f"?{urlencode(self.options)}" if self.options else ""
        return f"postgres://{who}{'@' if who else ''}{where}:{self.port}{path}{query}"


class PostgresReporter(Backend):
    needs = "asyncpg"
    extra = "postgres"
    at_end = True

    def __init__(self, config: PostgresConfig) -> None:
        self._config = config
        self._connection: Any = None

    async def connect(self) -> None:
        asyncpg = importlib.import_module("asyncpg")
        self._connection = await asyncpg.connect(self._config.dsn())
        await self._prepare()

    async def _prepare(self) -> None:
        for table in TABLES:
            await self._connection.execute(create_statement(table, _TYPES))

    async def submit_results(self, results: Results) -> None:
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

"""Results in MySQL or MariaDB, by asyncmy: `mysql://user:password@host:3306/database`."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Any

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, create_statement, insert_statement, run_id

_TYPES = {
    str: "varchar(500)", int: "bigint", float: "double", bool: "boolean", datetime: "datetime(6)",
}  # fmt: skip


class MySQLConfig(Config, frozen=True, kw_only=True):
    scheme = "mysql"
    path_field = "database"
    required = ("database",)
    environment = {"password": "MYSQL_PWD"}

    host: str = "localhost"
    port: int = 3306
    database: str = ""
    username: str = "root"
    password: str = ""

    def backend(self) -> Backend:
        return MySQLReporter(self)


class MySQLReporter(Backend):
    needs = "asyncmy"
    extra = "mysql"
    at_end = True

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._connection: Any = None

    async def connect(self) -> None:
        asyncmy = importlib.import_module("asyncmy")
        config = self._config
        self._connection = await asyncmy.connect(
            host=config.host, port=config.port, user=config.username, password=config.password,
            db=config.database, charset="utf8mb4", init_command="set sql_mode = 'ANSI_QUOTES'",
        )  # fmt: skip
        async with self._connection.cursor() as cursor:
            # "if not exists" is a warning where there is one, which asyncmy prints.
            await cursor.execute("show tables")
            there = {name for (name,) in await cursor.fetchall()}
            for table in TABLES:
                if table.name not in there:
                    await cursor.execute(create_statement(table, _TYPES))

    async def submit_results(self, results: Results) -> None:
        run = run_id(results)
        await self._connection.begin()
        async with self._connection.cursor() as cursor:
            await cursor.execute(f"select 1 from {TABLES[0].name} where run = %s", (run,))
            if await cursor.fetchone():
                return
            for table in TABLES:
                statement = insert_statement(table, ["%s"] * len(table.columns))
                if rows := [tuple(map(_value, row)) for row in table.rows(run, results)]:
                    await cursor.executemany(statement, rows)
        await self._connection.commit()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.ensure_closed()


def _value(value: object) -> object:
    """A datetime of MySQL has no zone: it is UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return value[:500] if isinstance(value, str) else value

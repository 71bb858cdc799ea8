"""Results in Apache Cassandra, by its driver: `cassandra://user:password@host:9042/keyspace`.

The keyspace must be there; the tables are made. They are those of other databases, and a row's key
follows from its run, so that results sent twice overwrite themselves.
"""

from __future__ import annotations

import asyncio
import importlib
from datetime import datetime
from typing import Any

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, Table, run_id

_TYPES = {
    str: "text", int: "bigint", float: "double", bool: "boolean", datetime: "timestamp",
}  # fmt: skip
_WITHIN_S = 10.0


class CassandraConfig(Config, frozen=True, kw_only=True):
    scheme = "cassandra"
    path_field = "keyspace"

    host: str = "localhost"
    port: int = 9042
    keyspace: str = "hyperscale"
    username: str = ""
    password: str = ""
    secure: bool = False

    def backend(self) -> Backend:
        return CassandraReporter(self)


class CassandraReporter(Backend):
    needs = "cassandra"
    extra = "cassandra"
    at_end = True

    def __init__(self, config: CassandraConfig) -> None:
        self._config = config
        self._cluster: Any = None
        self._session: Any = None

    async def connect(self) -> None:
        """The driver has threads of its own and blocks."""
        await asyncio.to_thread(self._connect)

    def _connect(self) -> None:
        driver = importlib.import_module("cassandra.cluster")
        config = self._config
        more: dict[str, Any] = {}
        if config.username:
            auth = importlib.import_module("cassandra.auth")
            more["auth_provider"] = auth.PlainTextAuthProvider(config.username, config.password)
        if config.secure:
            more["ssl_context"] = importlib.import_module("ssl").create_default_context()
        self._cluster = driver.Cluster(
            [config.host], config.port, connect_timeout=_WITHIN_S, protocol_version=4, **more
        )
        self._session = self._cluster.connect(config.keyspace)
        for table in TABLES:
            self._session.execute(_create(table), timeout=_WITHIN_S)

    async def submit_results(self, results: Results) -> None:
        await asyncio.to_thread(self._insert, results)

    def _insert(self, results: Results) -> None:
        """The run itself comes last: where it is, all of it is."""
        run = run_id(results)
        for table in reversed(TABLES):
            names = ", ".join(("number", *table.columns))
            places = ", ".join(["%s"] * (len(table.columns) + 1))
            statement = f"INSERT INTO {table.name} ({names}) VALUES ({places})"
            for number, row in enumerate(table.rows(run, results)):
                self._session.execute(statement, (number, *row), timeout=_WITHIN_S)

    async def close(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await asyncio.to_thread(cluster.shutdown)


def _create(table: Table) -> str:
    columns = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in table.columns.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {table.name} "
        f"(number int, {columns}, PRIMARY KEY (run, number))"
    )

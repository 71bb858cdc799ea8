"""Results in Redis, by redis-py: `redis://user:password@host:6379/0`.

`hyperscale:run:ID` is a hash with the row of the run and, under `results`, all of it as JSON;
`hyperscale:runs` is the set of their ids, sorted by when they began.
"""

from __future__ import annotations

import importlib
from typing import Any

from hyperscale.metrics.results import Results, encode
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, run_id

PREFIX = "hyperscale:"


class RedisConfig(Config, frozen=True, kw_only=True):
    scheme = "redis"
    path_field = "database"

    host: str = "localhost"
    port: int = 6379
    database: int = 0
    username: str = ""
    password: str = ""
    secure: bool = False

    def backend(self) -> Backend:
        return RedisReporter(self)


class RedisReporter(Backend):
    needs = "redis"
    extra = "redis"
    at_end = True

    def __init__(self, config: RedisConfig) -> None:
        self._config = config
        self._client: Any = None

    async def connect(self) -> None:
        redis = importlib.import_module("redis.asyncio")
        config = self._config
        self._client = redis.Redis(
            host=config.host, port=config.port, db=config.database, ssl=config.secure,
            username=config.username or None, password=config.password or None,
            socket_timeout=5.0, socket_connect_timeout=5.0,
        )  # fmt: skip
        await self._client.ping()

    async def submit_results(self, results: Results) -> None:
        """One transaction; the same again changes nothing."""
        run = run_id(results)
        table = TABLES[0]
        (row,) = table.rows(run, results)
        fields = dict(zip(table.columns, row, strict=True))
        began = fields["started_at"]
        fields |= {"started_at": began.isoformat(), "passed": int(results.passed)}
        async with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hset(f"{PREFIX}run:{run}", mapping={**fields, "results": encode(results)})
            pipeline.zadd(f"{PREFIX}runs", {run: began.timestamp()})
            await pipeline.execute()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

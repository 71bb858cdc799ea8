"""The same random walks on all stores give the same answers, and sound indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.postgres.ground import PostgresGround
from hyperscale.scheduler.store.redis.ground import RedisGround
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from tests.integration.scheduler.index_checks import check_postgres, check_redis, check_sqlite
from tests.integration.scheduler.postgres_store import Postgres, postgres
from tests.integration.scheduler.redis_server import RedisServer, redis_server
from tests.unit.scheduler.store.cases.harness import LIMITS
from tests.unit.scheduler.store.walk import Walk

STEPS = 250


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.mark.parametrize("seed", range(8))
def test_four_stores_one_answer(
    seed: int, server: RedisServer, database: Postgres, tmp_path: Path
) -> None:
    url = database.fresh()

    async def walks() -> None:
        expected = await Walk(Store(MemoryGround(), LIMITS), seed).run(STEPS)
        sqlite = Store(await SqliteGround.open(tmp_path / "jobs.db"), LIMITS)
        shared = Store(await RedisGround.open(server.url, f"walk-{seed}"), LIMITS)
        tables = Store(await PostgresGround.open(url), LIMITS)
        try:
            for store in (sqlite, shared, tables):
                found = await Walk(store, seed).run(STEPS)
                for number, (one, other) in enumerate(zip(expected, found, strict=True)):
                    assert one == other, f"{type(store._ground).__name__}, step {number}"
        finally:
            await sqlite.close()
            await shared.close()
            await tables.close()

    asyncio.run(walks())
    jobs = check_sqlite(tmp_path / "jobs.db")
    assert asyncio.run(check_postgres(url)) == jobs
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        assert check_redis(client, f"walk-{seed}") == jobs > 0

"""SQLite, a real Redis and a real PostgreSQL keep the same contract as the memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.scheduler.store.redis.ground import RedisGround
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from tests.integration.scheduler import postgres_store
from tests.integration.scheduler.redis_server import RedisServer, redis_server
from tests.unit.scheduler.store.cases.harness import LIMITS, Opener
from tests.unit.scheduler.store.cases.suite import StoreContract


class TestSqlite(StoreContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Store]:
            store = Store(await SqliteGround.open(tmp_path / "jobs.db"), LIMITS)
            try:
                yield store
            finally:
                await store.close()

        return opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A cluster of one: it refuses keys of two slots in one script, as every cluster does."""
    directory = tmp_path_factory.mktemp("cluster")
    options = ("--cluster-enabled", "yes", "--port", "0")
    with redis_server(directory, *options) as running:
        yield running


def opener_of(server: RedisServer) -> Opener:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        server.call("FLUSHALL")
        store = Store(await RedisGround.open(server.url), LIMITS)
        try:
            yield store
        finally:
            await store.close()

    return opened


class TestRedis(StoreContract):
    @pytest.fixture
    def opener(self, server: RedisServer) -> Opener:
        return opener_of(server)


@pytest.fixture(scope="module")
def tables() -> Iterator[Opener]:
    with postgres_store.postgres() as running:
        yield postgres_store.opener_of(running)


class TestPostgres(StoreContract):
    @pytest.fixture
    def opener(self, tables: Opener) -> Opener:
        return tables

"""A PostgreSQL for tests of the scheduler, and fresh databases in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from itertools import count

import asyncpg

from hyperscale.scheduler.store.postgres.ground import PostgresGround
from hyperscale.scheduler.store.store import Store
from tests.integration.clients.postgres_server import postgres_server
from tests.unit.scheduler.store.cases.harness import LIMITS, Opener

_NUMBERS = count(1)


EMPTY = "DELETE FROM jobs; DELETE FROM records; DELETE FROM counters; DELETE FROM elections"


class Postgres:
    """A server; each database is one store."""

    def __init__(self, folder: str, port: int) -> None:
        self.folder = folder
        self.port = port
        """0: on its socket only."""

    def url(self, database: str) -> str:
        return f"postgres://postgres@/{database}?host={self.folder}&port={self.port or 5432}"

    async def create(self, database: str = "") -> str:
        name = database or f"jobs{os.getpid()}_{next(_NUMBERS)}"
        await self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def fresh(self) -> str:
        """Also from within a running loop."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.create()).result()

    async def run(self, statement: str, url: str = "") -> None:
        settings = {"search_path": "hyperscale"}
        connection = await asyncpg.connect(url or self.url("postgres"), server_settings=settings)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def postgres(*settings: str, port: int = 0) -> Iterator[Postgres]:
    with postgres_server(port, *settings) as folder:
        yield Postgres(folder, port)


def opener_of(server: Postgres) -> Opener:
    """Each time an empty store, in tables made once."""
    database = asyncio.run(server.create())

    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = Store(await PostgresGround.open(database), LIMITS)
        try:
            yield store
        finally:
            await store.close()
            await server.run(EMPTY, database)

    return opened

"""Other asynchronous libraries in the same event loop: they and our calls do not disturb."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import httpx
import pytest
import redis.asyncio

from hyperscale.workload.responses import HTTPResponse
from tests.integration.scheduler.redis_server import RedisServer, redis_server

from . import postgres_server
from .conftest import Run
from .scripted import pool
from .test_http_counted import counted

USERS = 20
OPERATIONS = 40
Work = Callable[[int], Awaitable[None]]


@pytest.fixture(scope="module")
def redis_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as server:
        yield server


@pytest.fixture(scope="module")
def postgres_socket() -> Iterator[str]:
    if not postgres_server.found():
        pytest.skip("no PostgreSQL on this machine")
    with postgres_server.postgres_server() as folder:
        yield folder


async def beside(target: str, work: Work) -> int:
    """`work` many times, while users of ours make call after call; how many of ours."""
    ended = asyncio.Event()

    async def user(number: int) -> None:
        vu = made.client()
        path = f"{target}/echo?user={number}"
        while not ended.is_set():
            got: HTTPResponse = await vu.http.get(path)
            assert got.ok, got.error
            assert got.json()["query"] == {"user": str(number)}

    async def worker(number: int) -> None:
        for at in range(OPERATIONS // 4):
            await work(number * OPERATIONS + at)

    async with pool() as made, asyncio.TaskGroup() as group:
        scope = counted()
        for number in range(USERS):
            group.create_task(user(number))
        await asyncio.gather(*map(worker, range(4)))
        ended.set()
    return scope.requests


@pytest.mark.parametrize("library", ["httpx", "aiohttp"])
def test_http_clients(run_each_way: Run, target: str, stats: Any, library: str) -> None:
    async def with_httpx() -> int:
        async with httpx.AsyncClient(trust_env=False) as session:

            async def work(number: int) -> None:
                got = await session.get(f"{target}/echo", params={"n": number})
                assert got.json()["query"] == {"n": str(number)}

            return await beside(target, work)

    async def with_aiohttp() -> int:
        async with aiohttp.ClientSession() as session:

            async def work(number: int) -> None:
                async with session.get(f"{target}/echo", params={"n": number}) as got:
                    assert (await got.json())["query"] == {"n": str(number)}

            return await beside(target, work)

    ours = run_each_way({"httpx": with_httpx, "aiohttp": with_aiohttp}[library]())
    assert ours >= USERS
    assert stats()["requests"] == ours + OPERATIONS


def test_redis(run_each_way: Run, target: str, stats: Any, redis_socket: RedisServer) -> None:
    async def go() -> int:
        async with redis.asyncio.Redis(unix_socket_path=str(redis_socket.socket)) as store:

            async def work(number: int) -> None:
                await store.set(f"key {number}", number)
                assert await store.get(f"key {number}") == b"%d" % number
                pushed = asyncio.create_task(store.brpop([f"list {number}"], timeout=10))
                await store.lpush(f"list {number}", "word")
                assert await pushed == (b"list %d" % number, b"word")

            return await beside(target, work)

    ours = run_each_way(go())
    assert stats()["requests"] == ours >= USERS


def test_postgres(run_each_way: Run, target: str, stats: Any, postgres_socket: str) -> None:
    async def go() -> int:
        arguments = {"host": postgres_socket, "user": "postgres", "database": "postgres"}
        async with asyncpg.create_pool(**arguments, min_size=1, max_size=4) as database:

            async def work(number: int) -> None:
                assert await database.fetchval("SELECT $1::int + 1", number) == number + 1
                rows = await database.fetch("SELECT generate_series(1, 500) AS n")
                assert sum(row["n"] for row in rows) == 125_250

            return await beside(target, work)

    ours = run_each_way(go())
    assert stats()["requests"] == ours >= USERS


def test_sockets_of_the_loop_itself(run_each_way: Run, target: str, tmp_path: Path) -> None:
    """Streams, servers and subprocesses get their descriptors from the same numbers as ours."""

    async def go() -> int:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()
            writer.close()

        server = await asyncio.start_unix_server(answer, str(tmp_path / "s"))

        async def work(number: int) -> None:
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
            for at in range(20):
                writer.write(b"%d %d\n" % (number, at))
                assert await reader.readline() == b"%d %d\n" % (number, at)
            writer.close()
            await writer.wait_closed()
            if number % 10 == 0:
                cat = await asyncio.create_subprocess_exec(
                    "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
                )
                assert await cat.communicate(b"word") == (b"word", None)

        async with server:
            return await beside(target, work)

    assert run_each_way(go()) >= USERS

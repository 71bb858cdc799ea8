"""Whatever is at the port, each client tells one failure in time and its user goes on.

All clients at once against one server for each kind of badness: what waits, waits together.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hyperscale.clients import Client
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import LOOPS, Run, runner_of
from .test_contract import ASK, CountingScope, free_port, user

Ask = Callable[[Client, int, Any], Awaitable[Any]]
MAIL = {"from": "a@shop.example", "to": "b@shop.example", "subject": "s", "text": "t"}
MORE: dict[str, Ask] = {
    "ftp": lambda vu, port, timeout: vu.ftp.get(
        f"ftp://me:secret@127.0.0.1:{port}", "/a", timeout=timeout
    ),
    "graphql": lambda vu, port, timeout: vu.graphql.query(
        f"http://127.0.0.1:{port}/", "{ a }", timeout=timeout
    ),
    "graphqlh2": lambda vu, port, timeout: vu.graphqlh2.query(
        f"http://127.0.0.1:{port}/", "{ a }", timeout=timeout
    ),
    "kafka": lambda vu, port, timeout: vu.kafka.produce(
        f"kafka://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "mysql": lambda vu, port, timeout: vu.mysql.query(
        f"mysql://me:secret@127.0.0.1:{port}/a", "select 1", timeout=timeout
    ),
    "postgres": lambda vu, port, timeout: vu.postgres.query(
        f"postgres://me:secret@127.0.0.1:{port}/a", "select 1", timeout=timeout
    ),
    "scp": lambda vu, port, timeout: vu.scp.get(
        f"scp://me:secret@127.0.0.1:{port}", "/a", timeout=timeout
    ),
    "sftp": lambda vu, port, timeout: vu.sftp.get(
        f"sftp://me:secret@127.0.0.1:{port}", "/a", timeout=timeout
    ),
    "smtp": lambda vu, port, timeout: vu.smtp.send(
        f"smtp://127.0.0.1:{port}", MAIL, timeout=timeout
    ),
}
# What has no TCP connection has no such peers.
EVERY = {name: ask for name, ask in (ASK | MORE).items() if name not in ("udp", "http3")}
OVER_TLS: dict[str, Ask] = {
    "ftp": lambda vu, port, timeout: vu.ftp.get(
        f"ftps://me:secret@127.0.0.1:{port}", "/a", timeout=timeout
    ),
    "grpc": lambda vu, port, timeout: vu.grpc.unary(
        f"grpcs://127.0.0.1:{port}", "shop.Shop/Buy", b"hi", timeout=timeout
    ),
    "http": lambda vu, port, timeout: vu.http.get(f"https://127.0.0.1:{port}/", timeout=timeout),
    "http2": lambda vu, port, timeout: vu.http2.get(f"https://127.0.0.1:{port}/", timeout=timeout),
    "kafka": lambda vu, port, timeout: vu.kafka.produce(
        f"kafkas://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "mongodb": lambda vu, port, timeout: vu.mongodb.command(
        f"mongodbs://127.0.0.1:{port}", {"ping": 1}, timeout=timeout
    ),
    "mqtt": lambda vu, port, timeout: vu.mqtt.publish(
        f"mqtts://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "rabbitmq": lambda vu, port, timeout: vu.rabbitmq.publish(
        f"amqps://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "redis": lambda vu, port, timeout: vu.redis.get(
        f"rediss://127.0.0.1:{port}", "a", timeout=timeout
    ),
    "smtp": lambda vu, port, timeout: vu.smtp.send(
        f"smtps://127.0.0.1:{port}", MAIL, timeout=timeout
    ),
    "sse": lambda vu, port, timeout: vu.sse.subscribe(
        f"https://127.0.0.1:{port}/", timeout=timeout
    ),
    "tcp": lambda vu, port, timeout: vu.tcp.request(
        f"tls://127.0.0.1:{port}", "hi", timeout=timeout
    ),
    "ws": lambda vu, port, timeout: vu.websocket.request(
        f"wss://127.0.0.1:{port}", "hi", timeout=timeout
    ),
}
FAILURES = {
    *(Outcome.TIMEOUT, Outcome.RESET, Outcome.PROTOCOL, Outcome.REFUSED, Outcome.TLS),
    *(Outcome.STATUS, Outcome.CANCELLED),
}
GROWTH_MAX = 150 * 1024  # kB: 20 clients with their libraries, none of which may keep all it gets


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def talks_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(range(256)) * 4)
    await reader.read()


async def talks_garbage_for_ever(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    line = b"x" * 16_384
    while True:
        writer.write(line)
        await writer.drain()
        await asyncio.sleep(0.001)


async def says_half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Of what it was asked, and hangs up."""
    data = await reader.read(100)
    writer.write(data[: len(data) // 2] or b"2")
    writer.close()


async def speaks_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad")
    await reader.read()


async def speaks_tls_alerts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"\x15\x03\x03\x00\x02\x02\x46")
    writer.close()


PEERS = {
    "hangs up": hangs_up,
    "silent": says_nothing,
    "garbage": talks_garbage,
    "endless": talks_garbage_for_ever,
    "half": says_half,
    "http": speaks_http,
    "alerts": speaks_tls_alerts,
}


@asynccontextmanager
async def at_port(peer: Any, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.CancelledError):
            await peer(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def all_fail(
    asks: dict[str, Ask], port: int, vu: Client, scope: CountingScope, timeout: float = 10.0
) -> None:
    """Each tells one failure, and another when it is asked again."""
    for _ in range(2):
        before = len(scope.failures)
        async with asyncio.timeout(25):
            got = await asyncio.gather(*(ask(vu, port, timeout) for ask in asks.values()))
        told = {name: (str(one.outcome), one.error) for name, one in zip(asks, got, strict=True)}
        bad = {
            name: told[name]
            for name, one in zip(asks, got, strict=True)
            if one.outcome not in FAILURES or not one.error
        }
        assert not bad, told
        assert len(scope.failures) - before == len(asks), told
        assert not scope.noted


@pytest.fixture
def run() -> Run:
    """What is tried is the clients, not the loop."""
    return runner_of(LOOPS["uvloop"])


@pytest.mark.parametrize("name", list(PEERS))
def test_every_client_tells_one_failure(run: Run, name: str) -> None:
    asks = dict(EVERY)
    if name == "http":  # which these speak
        for known in ("graphql", "http", "sse", "ws"):
            del asks[known]
    if name in ("garbage", "endless", "http"):
        del asks["tcp"]  # which takes what comes

    async def go() -> None:
        async with at_port(PEERS[name]) as port, user(max_response_bytes=100_000) as (vu, scope, _):
            await all_fail(asks, port, vu, scope, 0.5)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(go())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MAX


def test_nobody_is_there(run: Run) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            await all_fail(EVERY, free_port(), vu, scope)
            assert {result.outcome for result, _ in scope.failures} == {Outcome.REFUSED}
            assert not any(sent for _, sent in scope.failures)

    run(go())


def test_tls_where_there_is_none(run: Run) -> None:
    async def go() -> None:
        async with at_port(talks_garbage) as port, user(verify=False) as (vu, scope, _):
            await all_fail(OVER_TLS, port, vu, scope)
            told = [(result.outcome, result.error) for result, _ in scope.failures]
            assert {outcome for outcome, _ in told} == {Outcome.TLS}, told

    run(go())


def test_none_where_there_is_tls(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        authority = Authority(tmp_path)
        tls = authority.server(authority.issue("localhost"))
        async with at_port(says_nothing, tls) as port, user() as (vu, scope, _):
            await all_fail(EVERY, port, vu, scope, 0.5)

    run(go())


def test_certificates_that_nobody_signed(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        authority = Authority(tmp_path)
        tls = authority.server(authority.issue("localhost"))
        async with at_port(says_nothing, tls) as port, user() as (vu, scope, _):
            await all_fail(OVER_TLS, port, vu, scope)
            assert {result.outcome for result, _ in scope.failures} == {Outcome.TLS}
            assert not any(sent for _, sent in scope.failures)

    run(go())

"""Redis: a real server, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Data
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.redis_at_port import RedisAtPort, redis_at_port

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import user


@pytest.fixture(scope="module")
def server() -> Iterator[RedisAtPort]:
    with redis_at_port(password="se:cret") as made:
        yield made


def test_commands_pipelines_and_transactions(run_each_way: Run, server: RedisAtPort) -> None:
    server.client.flushall()
    server.client.config_resetstat()
    url = f"redis://:se%3Acret@127.0.0.1:{server.port}/3"

    async def go() -> None:
        async with user() as (vu, scope, _):
            redis = vu.redis
            assert (await redis.set(url, "a", 1)).value == b"OK"
            assert (await redis.get(url, "a")).text() == "1"
            assert (await redis.get(url, "none")).value is None
            assert (await redis.set(url, b"\x00", Data({"x": 1}))).ok
            assert (await redis.get(url, b"\x00")).value == b'{"x":1}'
            assert (await redis.command(url, "lrange", "l", 0, -1)).value == []
            assert (await redis.client_getname(url)).ok
            both = await redis.pipeline(url, ("INCR", "n"), ("INCRBYFLOAT", "f", 2.5))
            assert both.value == [1, b"2.5"]
            done = await redis.transaction(url, ("INCR", "n"), ("GET", "n"))
            assert done.value == [2, b"2"]
            got = await asyncio.gather(*(redis.incr(url, "m") for _ in range(50)))
            assert [one.value for one in got] == list(range(1, 51))
            big = "x" * 3_000_000
            assert (await redis.set(url, "big", big)).ok
            many = await asyncio.gather(*(redis.get(url, "big") for _ in range(3)))
            assert {one.text() for one in many} == {big}
            assert scope.connects == 1
            counted = [one[1] for one in scope.noted]
            assert counted.count("INCR") == 50
            assert len(counted) == 7 + 2 + 50 + 4
            assert sum(row[-2] for row in scope.rows) > 9_000_000

    run_each_way(go())
    assert server.calls("incr") == 52
    assert server.calls("get") == 3 + 1 + 3
    assert set(server.client.info("keyspace")) == {"db3"}


def test_errors_are_the_servers_own_words(run: Run, server: RedisAtPort) -> None:
    url = f"redis://:se%3Acret@127.0.0.1:{server.port}"

    async def go() -> None:
        async with user() as (vu, scope, _):
            redis = vu.redis
            await redis.command(url, "DEL", "list")
            await redis.lpush(url, "list", 1)
            wrong = await redis.get(url, "list")
            assert (wrong.outcome, wrong.code) == (Outcome.STATUS, "WRONGTYPE")
            unknown = await redis.frobnicate(url, "x")
            assert "unknown command" in unknown.error
            some = await redis.pipeline(url, ("GET", "list"), ("LLEN", "list"))
            assert (some.code, some.value[1]) == ("WRONGTYPE", 1)
            none = await redis.transaction(url, ("GET",), ("LLEN", "list"))
            assert none.outcome is Outcome.STATUS
            await redis.watch(url, "list")
            server.client.lpush("list", 2)
            aborted = await redis.transaction(url, ("LLEN", "list"))
            assert (aborted.code, aborted.value) == ("EXEC", None)
            assert scope.connects == 1, "an error of a command ends no connection"
            assert len(scope.failures) == 5

    run(go())


@pytest.mark.parametrize("login", ["", ":wrong@", "me:wrong@"])
def test_wrong_credentials(run: Run, server: RedisAtPort, login: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            got = await vu.redis.get(f"redis://{login}127.0.0.1:{server.port}", "a")
            assert got.outcome is Outcome.STATUS
            assert re.search("NOAUTH|WRONGPASS|refused AUTH", got.error)
            assert [result for result, _ in scope.failures] == [got]

    run(go())


def test_a_server_that_dies_in_a_call(run: Run) -> None:
    async def go() -> None:
        with redis_at_port() as server:
            async with client() as vu:
                url = f"redis://127.0.0.1:{server.port}"
                calls = [asyncio.ensure_future(vu.redis.blpop(url, "q", 0)) for _ in range(3)]
                await vu.redis.set(url + "/1", "a", 1)
                await asyncio.sleep(0.05)
                server.process.kill()
                for call in calls:
                    assert (await call).outcome is Outcome.RESET
                assert (await vu.redis.get(url, "a")).outcome is Outcome.REFUSED

    run(go())


def test_tls(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(authority.issue("localhost"))

    async def handler(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\nPING\r\n")
        await peer.send(b"+PONG\r\n")
        await peer.gone()

    async def go() -> None:
        async with serve(handler=handler, tls=tls) as server:
            async with client(ca=authority.ca) as vu:
                assert (await vu.redis.ping(f"rediss://127.0.0.1:{server.port}")).text() == "PONG"
                plain = await vu.redis.ping(f"redis://127.0.0.1:{server.port}", timeout=1)
                assert not plain.ok
            async with client() as vu:
                got = await vu.redis.ping(f"rediss://127.0.0.1:{server.port}")
                assert got.outcome is Outcome.TLS
        with redis_at_port() as real:
            async with client() as vu:
                got = await vu.redis.ping(f"rediss://127.0.0.1:{real.port}", timeout=2)
                assert got.outcome in (Outcome.TLS, Outcome.TIMEOUT)

    run(go())


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


async def endless(peer: Peer) -> None:
    await peer.reader.read(1000)
    await peer.send(b"$1000000000\r\n")
    while True:
        await peer.send(bytes(60_000))


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Outcome.PROTOCOL, "not Redis"),
        (says(b"\x15\x03\x01\x00\x02"), Outcome.PROTOCOL, "not Redis"),
        (says(b""), Outcome.RESET, "closed the connection"),
        (says(b"$10\r\nhalf"), Outcome.RESET, "closed the connection"),
        (says(b"$5\r\nha", stays=True), Outcome.TIMEOUT, "no answer"),
        (says(stays=True), Outcome.TIMEOUT, "no answer"),
        (endless, Outcome.PROTOCOL, "a reply of more than 200000 bytes"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(max_response_bytes=200_000) as made:
            vu, scope, _ = made
            got = await vu.redis.get(f"127.0.0.1:{server.port}", "a", timeout=0.3)
            assert got.outcome is outcome, got.error
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]
            with pytest.raises(CallFailed):
                got.text()

    run(go())


def test_what_nobody_asked_for_ends_the_connection(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=says(b"+1\r\n+2\r\n", stays=True)) as server, client() as vu:
            url = f"127.0.0.1:{server.port}"
            assert (await vu.redis.get(url, "a")).text() == "1"
            again = await vu.redis.get(url, "a")
            assert server.connections == 2
            assert again.ok

    run(go())


@pytest.mark.parametrize(
    ("method", "given", "reason"),
    [
        ("get", ("http://a.example", "k"), "not an address that can be called here"),
        ("get", ("redis://127.0.0.1:1/x", "k"), "no database of Redis"),
        ("set", ("127.0.0.1:1", "k", None), "is not text, bytes or a number"),
        ("set", ("127.0.0.1:1", "k", True), "is not text, bytes or a number"),
        ("subscribe", ("127.0.0.1:1", "c"), "changes what its connection answers"),
        ("pipeline", ("127.0.0.1:1",), "no commands"),
        ("pipeline", ("127.0.0.1:1", "GET a"), "not a command"),
        ("pipeline", ("127.0.0.1:1", ("MONITOR",)), "changes what its connection answers"),
        ("command", ("127.0.0.1:1",), "no words"),
    ],
)
def test_what_the_author_got_wrong(run: Run, method: str, given: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await getattr(vu.redis, method)(*given)

    run(go())


def test_a_library_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hiredis", None)

    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match="needs hiredis") as caught:
                await vu.redis.get("127.0.0.1:1", "a")
            assert "hyperscale-loadtest[redis]" in caught.value.hint

    run(go())

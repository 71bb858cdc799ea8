"""NATS: nats-server, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.brokers import nats_server

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import user


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with nats_server('jetstream { store_dir: "FOLDER/store" }', "max_payload: 400000") as port:
        yield f"nats://127.0.0.1:{port}"


def test_messages_come_as_they_were_sent_and_say_how_long_they_took(run: Run, server: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, made):
            measured: list[str] = []
            scope.measure = lambda name, kind, value: measured.append(name)  # type: ignore[method-assign]
            one, other = made.client(), made.client()
            for reader in (one, other):
                assert (await reader.nats.subscribe(server, "shop.*", queue="all")).ok
                assert (await reader.nats.subscribe(server, "shop.>")).ok
            big = b"x" * 300_000
            sent = [vu.nats.publish(server, "shop.a", big, headers={"X": 7}) for _ in range(40)]
            assert all(each.ok for each in await asyncio.gather(*sent))
            for reader in (one, other):
                for _ in range(40):
                    got = await reader.nats.consume(server, "shop.>")
                    assert (got.data, got.topic, got.headers["X"]) == (big, "shop.a", "7")
                    assert got.latency_ms is not None
                    assert got.bytes_in > len(big)
            shared = 0
            for reader in (one, other):
                got = await reader.nats.consume(server, "shop.*", queue="all", timeout=0.2)
                while got.ok:
                    shared += 1
                    got = await reader.nats.consume(server, "shop.*", queue="all", timeout=0.2)
            assert shared == 40
            assert measured == ["nats_msg_latency"] * 120
            assert scope.connects == 3
            for reader in (one, other):
                reader.close()

    run(go())


def test_requests_are_answered_or_nobody_is_there(run: Run, server: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, made):
            subject = f"service{id(vu)}"
            lonely = await vu.nats.request(server, subject, "x")
            assert (lonely.outcome, lonely.code) == (Outcome.STATUS, "no responders")
            service = made.client()
            assert (await service.nats.subscribe(server, subject)).ok
            asked = [
                asyncio.ensure_future(vu.nats.request(server, subject, str(n))) for n in (1, 2)
            ]
            for _ in range(2):
                got = await service.nats.consume(server, subject)
                assert (await service.nats.publish(server, got.reply_to, got.text() * 2)).ok
            assert [answer.text() for answer in await asyncio.gather(*asked)] == ["11", "22"]
            assert scope.connects == 2
            service.close()

    run(go())


def test_a_stream_stores_messages(run: Run, server: str) -> None:
    async def go() -> None:
        async with client() as vu:
            name = f"S{id(vu)}"
            config = {"name": name, "subjects": [name], "max_msgs": 2, "discard": "new"}
            made = await vu.nats.request(server, f"$JS.API.STREAM.CREATE.{name}", config)
            assert "error" not in made.json(), made.text()
            for sequence in (1, 2):
                got = await vu.nats.publish(server, name, "x", jetstream=True)
                assert (got.ok, got.stream, got.sequence) == (True, name, sequence), got.error
            full = await vu.nats.publish(server, name, "x", jetstream=True)
            assert full.outcome is Outcome.STATUS
            assert "maximum messages exceeded" in full.error
            nowhere = await vu.nats.publish(server, f"{name}.not", "x", jetstream=True)
            assert (nowhere.outcome, nowhere.status) == (Outcome.STATUS, 503)

    run(go())


def test_what_does_not_come_is_a_timeout_and_comes_later(run: Run, server: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            topic = f"late{id(vu)}"
            assert (await vu.nats.subscribe(server, topic)).ok
            got = await vu.nats.consume(server, topic, timeout=0.05)
            assert got.outcome is Outcome.TIMEOUT
            with pytest.raises(CallFailed):
                got.text()
            assert (await vu.nats.publish(server, topic, "a")).ok
            assert (await vu.nats.consume(server, topic)).text() == "a"
            long = await vu.nats.publish(server, topic, b"x" * 400_001)
            assert (long.outcome, long.code) == (Outcome.STATUS, "Maximum Payload Violation")
            assert scope.connects == 1, "the connection is kept"

    run(go())


def test_logins_and_subjects_that_are_not_allowed(run: Run) -> None:
    allowed = '{publish: "shop.>", subscribe: ["shop.>", "_INBOX.>"]}'
    users = f"authorization {{ users: [{{user: me, password: right, permissions: {allowed}}}] }}"

    async def go(port: int) -> None:
        where = f"127.0.0.1:{port}"
        url = f"nats://me:right@{where}"
        async with user() as (vu, scope, _):
            calls = [
                vu.nats.publish(url, "shop.a", "x"),
                vu.nats.publish(url, "bank.a", "x"),
                vu.nats.publish(url, "shop.b", "x"),
                vu.nats.request(url, "bank.b", "x"),
                vu.nats.subscribe(url, "bank.c"),
                vu.nats.consume(url, "bank.d", timeout=2),
                vu.nats.subscribe(url, "shop.c"),
            ]
            got = await asyncio.gather(*calls)
            assert [one.ok for one in got] == [True, False, True, False, False, False, True]
            for one in got:
                assert one.ok or one.code == "Permissions Violation", one.error
            assert scope.connects == 1, "a refusal does not end the connection"
            for login in ("me:wrong@", "you:right@", "token@", ""):
                bad = await vu.nats.publish(f"nats://{login}{where}", "shop.a", "x")
                assert bad.outcome is Outcome.STATUS, bad.error
                assert "refused the connection: Authorization Violation" in bad.error

    with nats_server(users) as port:
        run(go(port))


def test_tls_and_where_it_is_not_spoken(run: Run, server: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("localhost")

    async def go(port: int) -> None:
        async with client(ca=authority.ca) as vu:
            for scheme in ("nats", "natss"):
                got = await vu.nats.publish(f"{scheme}://127.0.0.1:{port}", "a", "x" * 100_000)
                assert got.ok, got.error
                assert got.connect is not None
                assert got.connect.tls_s > 0
            reverse = await vu.nats.publish(server.replace("nats", "natss"), "a", "x", timeout=2)
            assert reverse.outcome is Outcome.TLS, reverse.error
        async with client() as vu:
            got = await vu.nats.publish(f"nats://127.0.0.1:{port}", "a", "x")
            assert (got.outcome, "certificate of 127.0.0.1" in got.error) == (Outcome.TLS, True)

    with nats_server(f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as port:
        run(go(port))


INFO = b'INFO {"max_payload":1000}\r\n'


def says(*parts: bytes, stays: bool = False) -> Handler:
    """The first at once, each other when something has come."""

    async def handler(peer: Peer) -> None:
        for at, part in enumerate(parts):
            if at:
                await peer.reader.read(1000)
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


async def endless(peer: Peer) -> None:
    await peer.send(INFO)
    await peer.reader.read(1000)
    await peer.send(b"PONG\r\n")
    while True:
        await peer.send(b"x" * 60_000)


P = b"PONG\r\n"


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Outcome.PROTOCOL, "NATS"),
        (says(b"\x00\x01\x02\x03\x04", stays=True), Outcome.PROTOCOL, "NATS"),
        (says(b"INFO nothing\r\n", stays=True), Outcome.PROTOCOL, "NATS"),
        (says(b"MSG a 1 0\r\n\r\n", stays=True), Outcome.PROTOCOL, "NATS"),
        (says(b""), Outcome.RESET, "closed the connection"),
        (says(b"INFO {"), Outcome.RESET, "closed the connection"),
        (says(stays=True), Outcome.TIMEOUT, "no answer"),
        (says(INFO, b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(INFO, b"-ERR 'maximum connections exceeded'\r\n"), Outcome.STATUS, "maximum conn"),
        (says(INFO, stays=True), Outcome.TIMEOUT, "no answer"),
        (says(INFO, P, b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(INFO, P, b"PON"), Outcome.RESET, "(closed|reset) the connection"),
        (says(INFO, P, b"", stays=True), Outcome.TIMEOUT, "no answer"),
        (says(INFO, P + b"PONG\r\n", stays=True), Outcome.PROTOCOL, "nobody asked for"),
        (says(INFO, P, b"HELLO\r\n", stays=True), Outcome.PROTOCOL, "HELLO"),
        (says(INFO, P, b"MSG a b c\r\n", stays=True), Outcome.PROTOCOL, "head"),
        (says(INFO, P, b"HMSG a 1 9 3\r\nabc\r\n", stays=True), Outcome.PROTOCOL, "longer"),
        (says(INFO, P, b"HMSG a 1 3 3\r\nabc\r\n", stays=True), Outcome.PROTOCOL, "'abc'"),
        (says(INFO, P, b"MSG a 1 2\r\nabc\r\n", stays=True), Outcome.PROTOCOL, "longer"),
        (says(INFO, P, b"MSG a 1 99999999\r\n", stays=True), Outcome.PROTOCOL, "a message of"),
        (says(INFO, P, b"-ERR 'Stale Connection'\r\n", stays=True), Outcome.STATUS, "Stale"),
        (endless, Outcome.PROTOCOL, "a line of more than"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        options = {"max_response_bytes": 1_000_000}
        async with serve(handler=handler) as server, user(**options) as (vu, scope, _):
            got = await vu.nats.publish(f"nats://127.0.0.1:{server.port}", "a", "x", timeout=0.4)
            assert got.outcome is outcome, (got.outcome, got.error)
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


@pytest.mark.parametrize(
    ("subject", "more", "reason"),
    [
        ("", {}, "not a subject"),
        (5, {}, "not a subject"),
        ("a..b", {}, "not a subject"),
        ("a.*", {}, "wildcard"),
        ("a b", {}, "not one word"),
        ("a\r\nPUB b", {}, "not one word"),
        ("a", {"headers": [1]}, "headers"),
        ("a", {"headers": {"A": "b\r\nc"}}, "not a header"),
    ],
)
def test_what_the_author_got_wrong(
    run: Run, server: str, subject: Any, more: dict[str, Any], reason: str
) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.nats.publish(server, subject, "x", **more)
            assert (await vu.nats.publish(server, "a", "x")).ok

    run(go())

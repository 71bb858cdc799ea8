"""Kafka: the mock cluster of librdkafka, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.clients import kafka
from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.brokers import kafka_mock

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import free_port, user


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with kafka_mock() as port:
        yield f"kafka://127.0.0.1:{port}"


def test_records_come_as_they_were_sent_and_say_how_long_they_took(run: Run, broker: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, made):
            measured: list[str] = []
            scope.measure = lambda name, kind, value: measured.append(name)  # type: ignore[method-assign]
            topic, reader = f"t{id(vu)}", made.client()
            assert (await reader.kafka.subscribe(broker, topic)).ok
            sent = [
                vu.kafka.produce(broker, topic, {"n": n}, key="k", headers={"X": 7}, acks=acks)
                for n, acks in enumerate(("all", 1, "all"))
            ]
            answers = await asyncio.gather(*sent)
            assert all(one.ok for one in answers), [one.error for one in answers]
            assert len({one.partition for one in answers}) == 1, "the same key"
            assert sorted(one.offset for one in answers) == [0, 1, 2]
            for _ in range(3):
                got = await reader.kafka.consume(broker, topic)
                assert (got.key, got.headers["X"], got.topic) == (b"k", "7", topic)
                assert got.json()["n"] in (0, 1, 2)
                assert got.latency_ms is not None
            assert measured == ["kafka_msg_latency"] * 3
            assert (await vu.kafka.produce(broker, topic, "x", acks=0)).ok
            again = await vu.kafka.consume(broker, topic, start="earliest")
            assert again.ok, again.error
            got = await vu.kafka.produce(broker, topic, "x", partition=99)
            assert (got.outcome, got.status) == (Outcome.STATUS, 3)
            assert scope.connects == 2
            assert {row[-1] > 0 for row in scope.rows} == {True, False}
            vu.close()
            reader.close()

    run(go())


def test_what_does_not_come_is_a_timeout_and_comes_later(run: Run, broker: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            topic = f"late{id(vu)}"
            got = await vu.kafka.consume(broker, topic, timeout=0.3)
            assert got.outcome is Outcome.TIMEOUT
            with pytest.raises(CallFailed):
                got.text()
            assert (await vu.kafka.produce(broker, topic, "a")).ok
            assert (await vu.kafka.consume(broker, topic)).text() == "a"
            assert scope.connects == 1, "the connection is kept"
            vu.close()

    run(go())


def test_a_group_shares_the_records() -> None:
    async def go(broker: str) -> None:
        async with client() as vu:
            assert (await vu.kafka.produce(broker, "shared", "a")).ok
            got = await vu.kafka.consume(broker, "shared", group="g", start="earliest")
            assert got.text() == "a"
            vu.close()

    with kafka_mock() as port:
        asyncio.run(go(f"kafka://127.0.0.1:{port}"))


def test_a_cluster_that_dies_and_tls_where_it_is_not_spoken(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(authority.issue("localhost"))

    async def go() -> None:
        async with user() as (vu, scope, _):
            with kafka_mock() as port:
                url = f"kafka://127.0.0.1:{port}"
                assert (await vu.kafka.produce(url, "t", "x")).ok
                secure = await vu.kafka.produce(url.replace("kafka", "kafkas"), "t", "x", timeout=2)
                assert secure.outcome is Outcome.TLS, secure.error
            got = await vu.kafka.produce(url, "t", "x", timeout=0.5)
            assert got.outcome in (Outcome.TIMEOUT, Outcome.RESET), got.error
            refused = await vu.kafka.produce(url, "t", "x")
            assert refused.outcome is Outcome.REFUSED, refused.error
            assert len(scope.failures) == 3
            async with serve(handler=silent, tls=tls) as server:
                plain = await vu.kafka.produce(f"kafka://127.0.0.1:{server.port}", "t", "x")
                assert plain.outcome in (Outcome.RESET, Outcome.PROTOCOL), plain.error
            vu.close()

    run(go())


async def silent(peer: Peer) -> None:
    await peer.gone()


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def answers(own: dict[int, bytes]) -> Handler:
    """A broker that knows a few kinds of requests, in their first versions, and no topic."""
    kinds = b"".join(struct.pack(">hhh", kind, 0, kind == 17) for kind in (3, 17, 18, 36))

    async def handler(peer: Peer) -> None:
        _, port = peer.writer.get_extra_info("sockname")
        brokers = struct.pack(">ii", 1, 0) + text("127.0.0.1") + struct.pack(">i", port)
        known = {
            3: brokers + struct.pack(">ih", 1, 3) + text("missing") + struct.pack(">i", 0),
            17: struct.pack(">hi", 0, 1) + text("PLAIN"),
            18: struct.pack(">hi", 0, 4) + kinds,
            **own,
        }
        while head := await peer.reader.read(4):
            request = await peer.reader.readexactly(int.from_bytes(head, "big"))
            kind, _, number = struct.unpack_from(">hhi", request)
            body = struct.pack(">i", number) + known[kind]
            await peer.send(struct.pack(">i", len(body)) + body)

    return handler


def test_wrong_credentials_and_unknown_topics(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "TOPIC_S", 0.2)
    refused = answers({36: struct.pack(">h", 58) + text("wrong password") + struct.pack(">i", 0)})

    async def go() -> None:
        async with serve(handler=refused) as server, user() as (vu, scope, _):
            where = f"127.0.0.1:{server.port}"
            bad = await vu.kafka.produce(f"kafka://me:wrong@{where}", "missing", "x", timeout=5)
            assert bad.outcome is Outcome.STATUS, bad.error
            assert "wrong password" in bad.error
            for call in (
                vu.kafka.produce(where, "missing", "x"),
                vu.kafka.consume(where, "missing"),
            ):
                got = await call
                assert got.outcome is Outcome.STATUS, got.error
                assert got.code == "UNKNOWN_TOPIC_OR_PARTITION"
            assert len(scope.failures) == 3
            assert scope.connects == 2
            vu.close()

    run(go())


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        for part in parts:
            await peer.reader.read(5000)
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Outcome.PROTOCOL, "does not speak Kafka"),
        (says(b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(b"\x00\x00\x00"), Outcome.RESET, "(closed|reset) the connection"),
        (says(b"", stays=True), Outcome.TIMEOUT, "no answer"),
        (answers({3: b"\xff" * 9}), Outcome.TIMEOUT, "no answer"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user() as (vu, scope, _):
            got = await vu.kafka.produce(f"kafka://127.0.0.1:{server.port}", "a", "x", timeout=0.5)
            assert got.outcome is outcome, (got.outcome, got.error)
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


def test_nobody_listens(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            got = await vu.kafka.produce(f"kafka://127.0.0.1:{free_port()}", "a", "x")
            assert got.outcome is Outcome.REFUSED

    run(go())


@pytest.mark.parametrize(
    ("topic", "more", "reason"),
    [
        ("", {}, "not a topic"),
        (5, {}, "not a topic"),
        ("a", {"acks": 2}, "acks"),
        ("a", {"key": 5}, "key"),
        ("a", {"partition": -1}, "partition"),
        ("a", {"headers": [1]}, "headers"),
    ],
)
def test_what_the_author_got_wrong(run: Run, topic: Any, more: dict[str, Any], reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.kafka.produce("kafka://127.0.0.1:1", topic, "x", **more)
            with pytest.raises(BadInput, match="mechanism"):
                await vu.kafka.produce("kafka://127.0.0.1:1?mechanism=x", "a", "x")

    run(go())

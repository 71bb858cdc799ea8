"""MQTT: mosquitto, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.brokers import mosquitto, program

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import user


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with mosquitto("allow_anonymous true") as port:
        yield f"mqtt://127.0.0.1:{port}"


def test_messages_come_as_they_were_sent_and_say_how_long_they_took(run: Run, broker: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, made):
            measured: list[tuple[str, float]] = []
            scope.measure = lambda name, kind, value: measured.append((name, value))  # type: ignore[method-assign]
            reader = made.client()
            assert (await reader.mqtt.subscribe(broker, "shop/+/new")).ok
            assert (await reader.mqtt.subscribe(broker, "$share/all/other/#")).ok
            for qos in (0, 1, 2):
                sent = await vu.mqtt.publish(
                    broker, "shop/a/new", {"n": qos}, qos=qos, headers={"X": 7}
                )
                assert sent.ok, sent.error
                got = await reader.mqtt.consume(broker, "shop/+/new", qos=qos)
                assert (got.json(), got.topic, got.headers["X"]) == ({"n": qos}, "shop/a/new", "7")
                assert got.latency_ms is not None
                assert 0 <= got.latency_ms < 30_000
            assert [name for name, _ in measured] == ["mqtt_msg_latency"] * 3
            big = b"x" * 300_000
            many = [vu.mqtt.publish(broker, "other/b", big, qos=1) for _ in range(40)]
            assert all(one.ok for one in await asyncio.gather(*many))
            for _ in range(40):
                got = await reader.mqtt.consume(broker, "$share/all/other/#")
                assert got.data == big
                assert got.bytes_in > len(big)
            assert scope.connects == 2
            assert not scope.failures
            reader.close()

    run(go())


def test_what_does_not_come_is_a_timeout_and_comes_later(run: Run, broker: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            topic = f"late/{id(vu)}"
            assert (await vu.mqtt.subscribe(broker, topic)).ok
            got = await vu.mqtt.consume(broker, topic, timeout=0.05)
            assert got.outcome is Outcome.TIMEOUT
            with pytest.raises(CallFailed):
                got.text()
            assert (await vu.mqtt.publish(broker, topic, "a", qos=1)).ok
            both = await asyncio.gather(
                vu.mqtt.consume(broker, topic), vu.mqtt.publish(broker, topic, "b")
            )
            assert both[0].text() == "a"
            assert (await vu.mqtt.consume(broker, topic)).text() == "b"
            assert scope.connects == 1, "the connection is kept"
            vu.mqtt.disconnect(broker)
            assert (await vu.mqtt.connect(broker)).ok
            assert scope.connects == 2

    run(go())


def test_logins_and_topics_that_are_not_allowed(run: Run, tmp_path: Path) -> None:
    passwords, rules = tmp_path / "passwords", tmp_path / "rules"
    make = program("mosquitto_passwd", "mosquitto")
    subprocess.run([make, "-b", "-c", str(passwords), "me", "right"], check=True)
    rules.write_text("user me\ntopic readwrite shop/#\n")

    async def go(port: int) -> None:
        where = f"127.0.0.1:{port}"
        async with user() as (vu, scope, _):
            good = await vu.mqtt.publish(f"mqtt://me:right@{where}", "shop/a", "x")
            assert good.ok, good.error
            for qos in (1, 2):
                bad = await vu.mqtt.publish(f"mqtt://me:right@{where}", "bank/a", "x", qos=qos)
                assert bad.outcome is Outcome.STATUS, (qos, bad.outcome, bad.error)
            assert (await vu.mqtt.publish(f"mqtt://me:right@{where}", "bank/a", "x")).error == (
                "not authorized"
            )
            assert scope.connects == 1, "a refusal does not end the connection"
            for login in ("me:wrong@", "you:right@", ""):
                got = await vu.mqtt.publish(f"mqtt://{login}{where}", "shop/a", "x")
                assert got.outcome is Outcome.STATUS, got.error
                assert re.search("refused the connection: (not authorized|bad user)", got.error)

    with mosquitto(
        "allow_anonymous false", f"password_file {passwords}", f"acl_file {rules}"
    ) as port:
        run(go(port))


def test_tls_and_where_it_is_not_spoken(run: Run, broker: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("localhost")

    async def go(port: int) -> None:
        async with client(ca=authority.ca) as vu:
            got = await vu.mqtt.publish(f"mqtts://127.0.0.1:{port}", "a", "x" * 100_000)
            assert got.ok, got.error
            assert got.connect is not None
            assert got.connect.tls_s > 0
            plain = await vu.mqtt.publish(f"mqtt://127.0.0.1:{port}", "a", "x", timeout=2)
            assert plain.outcome in (Outcome.RESET, Outcome.PROTOCOL), plain.error
            reverse = await vu.mqtt.publish(broker.replace("mqtt", "mqtts"), "a", "x", timeout=2)
            assert reverse.outcome is Outcome.TLS, reverse.error
        async with client() as vu:
            got = await vu.mqtt.publish(f"mqtts://127.0.0.1:{port}", "a", "x")
            assert (got.outcome, "certificate of 127.0.0.1" in got.error) == (Outcome.TLS, True)

    with mosquitto("allow_anonymous true", f"certfile {pem}", f"keyfile {pem}") as port:
        run(go(port))


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        for at, part in enumerate(parts):
            if at:
                await peer.reader.read(1000)
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


CONNACK = b"\x20\x03\x00\x00\x00"


async def endless(peer: Peer) -> None:
    await peer.send(CONNACK + b"\x30\xff\xff\xff\x7f")
    while True:
        await peer.send(b"x" * 60_000)


async def floods(peer: Peer) -> None:
    await peer.send(CONNACK)
    topic = await peer.reader.read(1000)
    await peer.send(b"\x90\x04" + topic[-7:-5] + b"\x00\x00")
    while True:
        await peer.send((b"\x30\x0a\x00\x01a\x00" + b"x" * 6) * 1000)


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Outcome.PROTOCOL, "MQTT"),
        (says(b"\xf0\x00" * 9, stays=True), Outcome.PROTOCOL, "MQTT"),
        (says(b"\x20\x03\x00\x88\x00", stays=True), Outcome.STATUS, "server unavailable"),
        (says(b"\x20\x03\x00\xfe\x00", stays=True), Outcome.STATUS, "0xfe"),
        (says(b"\x20\x05\x00\x00\x02\x77\x00", stays=True), Outcome.PROTOCOL, "property 0x77"),
        (says(b"\x20\xff\xff\xff\xff\xff", stays=True), Outcome.PROTOCOL, "four bytes"),
        (says(), Outcome.RESET, "closed the connection"),
        (says(b"\x20\x03"), Outcome.RESET, "closed the connection"),
        (says(stays=True), Outcome.TIMEOUT, "no answer"),
        (says(CONNACK, b""), Outcome.RESET, "closed the connection"),
        (says(CONNACK, b"\x40"), Outcome.RESET, "closed the connection"),
        (says(CONNACK, stays=True), Outcome.TIMEOUT, "no answer"),
        (says(CONNACK, b"\x40\x05\x00\x01\x00\x09x", stays=True), Outcome.PROTOCOL, "MQTT"),
        (says(CONNACK, b"\xe0\x01\x8b", stays=True), Outcome.STATUS, "server shutting down"),
        (endless, Outcome.PROTOCOL, "a packet of more than"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        options = {"max_response_bytes": 1_000_000}
        async with serve(handler=handler) as server, user(**options) as (vu, scope, _):
            url = f"mqtt://127.0.0.1:{server.port}"
            got = await vu.mqtt.publish(url, "a", "x", timeout=0.5)
            assert got.outcome is outcome, (got.outcome, got.error)
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


def test_messages_that_nobody_consumes_have_a_limit(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=floods) as server, client(max_response_bytes=100_000) as vu:
            url = f"mqtt://127.0.0.1:{server.port}"
            got = await vu.mqtt.subscribe(url, "a", timeout=2)
            while got.ok:
                got = await vu.mqtt.publish(url, "a", "x", timeout=2)
            assert got.outcome is Outcome.PROTOCOL, got.error
            assert "unconsumed" in got.error

    run(go())


@pytest.mark.parametrize(
    ("topic", "more", "reason"),
    [
        ("", {}, "not a topic"),
        (5, {}, "not a topic"),
        ("a/#", {}, "wildcard"),
        ("a" * 70_000, {}, "65535"),
        ("a", {"qos": 3}, "qos"),
        ("a", {"headers": [1]}, "headers"),
        ("a\0", {}, "not a topic"),
    ],
)
def test_what_the_author_got_wrong(
    run: Run, broker: str, topic: Any, more: dict[str, Any], reason: str
) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.mqtt.publish(broker, topic, "x", **more)
            assert (await vu.mqtt.publish(broker, "a", "x")).ok

    run(go())

"""RabbitMQ: a real server, which is started once, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands, frame
from pamqp.base import Frame
from pamqp.header import ContentHeader

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.brokers import free_port, rabbitmq
from tests.integration.test_examples import assert_messages
from tests.integration.test_examples import run as run_example

from .certificates import Authority
from .conftest import LOOPS, Run, runner_of
from .scripted import Handler, Peer, client, serve
from .test_contract import user


def test_a_real_server(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("localhost")
    port, secure = free_port(), free_port()
    settings = (
        f"listeners.ssl.1 = 127.0.0.1:{secure}",
        f"ssl_options.certfile = {pem}",
        f"ssl_options.keyfile = {pem}",
        f"ssl_options.cacertfile = {authority.ca}",
    )
    with rabbitmq(port, *settings):
        for loop in LOOPS.values():
            run = runner_of(loop)
            run(messages_come_as_they_were_sent(f"amqp://127.0.0.1:{port}"))
            run(what_does_not_come_is_a_timeout(f"amqp://127.0.0.1:{port}"))
            run(refusals_are_the_servers_own_words(f"127.0.0.1:{port}"))
            run(tls_and_where_it_is_not_spoken(port, secure, authority.ca))
        where = f"amqp://127.0.0.1:{port}"
        words = ("-d", "1s", "-w", 1)
        results = run_example("rabbitmq_orders.py", tmp_path, "", *words, RABBITMQ=where)
        assert_messages(results, "order", "work", "rabbitmq_msg_latency")


async def messages_come_as_they_were_sent(url: str) -> None:
    async with user() as (vu, scope, made):
        measured: list[str] = []
        scope.measure = lambda name, kind, value: measured.append(name)  # type: ignore[method-assign]
        queue, reader = f"q{id(vu)}", made.client()
        assert (await vu.rabbitmq.declare(url, queue)).ok
        big = b"x" * 300_000
        sent = [
            vu.rabbitmq.publish(url, queue, big, headers={"X": 7}, persistent=True)
            for _ in range(150)
        ]
        assert all(one.ok for one in await asyncio.gather(*sent))
        for _ in range(150):
            got = await reader.rabbitmq.consume(url, queue)
            assert (got.data, got.topic, got.headers["X"]) == (big, queue, "7")
            assert got.latency_ms is not None
            assert got.bytes_in > len(big)
        assert measured == ["rabbitmq_msg_latency"] * 150
        assert (await vu.rabbitmq.publish(url, queue, "")).ok
        assert (await reader.rabbitmq.consume(url, queue)).data == b""
        assert scope.connects == 2
        assert not scope.failures
        reader.close()
        assert (await vu.rabbitmq.consume(url, queue, timeout=0.1)).outcome is Outcome.TIMEOUT
        vu.close()


async def what_does_not_come_is_a_timeout(url: str) -> None:
    async with user() as (vu, scope, _):
        queue = f"q{id(vu)}"
        assert (await vu.rabbitmq.declare(url, queue, auto_delete=True)).ok
        got = await vu.rabbitmq.consume(url, queue, timeout=0.5)
        assert got.outcome is Outcome.TIMEOUT
        with pytest.raises(CallFailed):
            got.text()
        assert (await vu.rabbitmq.publish(url, queue, "a")).ok
        assert (await vu.rabbitmq.consume(url, queue)).text() == "a"
        assert scope.connects == 1, "the connection is kept"
        vu.close()


async def refusals_are_the_servers_own_words(where: str) -> None:
    url = f"amqp://{where}"
    async with user() as (vu, scope, _):
        queue = f"q{id(vu)}"
        assert (await vu.rabbitmq.declare(url, queue, auto_delete=True)).ok
        other = await vu.rabbitmq.declare(url, queue, durable=True)
        assert (other.outcome, other.code) == (Outcome.STATUS, "PRECONDITION_FAILED"), other.error
        unrouted = await vu.rabbitmq.publish(url, "nowhere", "x")
        assert (unrouted.outcome, unrouted.status) == (Outcome.STATUS, 312)
        assert (await vu.rabbitmq.publish(url, "nowhere", "x", mandatory=False)).ok
        nowhere = await vu.rabbitmq.publish(url, queue, "x", exchange="nowhere")
        assert "404 NOT_FOUND - no exchange 'nowhere'" in nowhere.error
        missing = await vu.rabbitmq.consume(url, "missing")
        assert "404 NOT_FOUND - no queue 'missing'" in missing.error
        assert (await vu.rabbitmq.publish(url, queue, "x")).ok
        assert (await vu.rabbitmq.consume(url, queue)).ok
        assert scope.connects == 1, "a refusal does not end the connection"
        vu.close()
        for bad, why in (
            (f"amqp://guest:wrong@{where}", "403 ACCESS_REFUSED"),
            (f"amqp://{where}/other", "530 NOT_ALLOWED"),
        ):
            got = await vu.rabbitmq.publish(bad, queue, "x")
            assert got.outcome is Outcome.STATUS, got.error
            assert f"refused the connection: {why}" in got.error


async def tls_and_where_it_is_not_spoken(port: int, secure: int, ca: str) -> None:
    async with client(ca=ca) as vu:
        url = f"amqps://127.0.0.1:{secure}"
        assert (await vu.rabbitmq.declare(url, "tls", auto_delete=True)).ok
        got = await vu.rabbitmq.publish(url, "tls", "x" * 300_000)
        assert got.ok, got.error
        plain = await vu.rabbitmq.publish(f"amqp://127.0.0.1:{secure}", "tls", "x", timeout=3)
        assert plain.outcome in (Outcome.RESET, Outcome.PROTOCOL), plain.error
        reverse = await vu.rabbitmq.publish(f"amqps://127.0.0.1:{port}", "tls", "x", timeout=3)
        assert reverse.outcome is Outcome.TLS, reverse.error
        vu.close()
    async with client() as vu:
        got = await vu.rabbitmq.publish(url, "tls", "x")
        assert (got.outcome, "certificate of 127.0.0.1" in got.error) == (Outcome.TLS, True)


def says(*parts: bytes | Frame, stays: bool = False) -> Handler:
    """Each when something has come; frames are of the connection or of channel 1."""

    async def handler(peer: Peer) -> None:
        for part in parts:
            await peer.reader.read(5000)
            if isinstance(part, bytes):
                await peer.send(part)
            else:
                channel = 0 if part.name.startswith("Connection") else 1
                await peer.send(frame.marshal(part, channel))
        if stays:
            await peer.gone()

    return handler


START, TUNE = commands.Connection.Start(), commands.Connection.Tune(0, 131_072, 0)
LOGGED_IN = (START, TUNE, commands.Connection.OpenOk())
READY = (*LOGGED_IN, commands.Channel.OpenOk(), commands.Confirm.SelectOk())
FORCED = commands.Connection.Close(320, "FORCED", 0, 0)
UNKNOWN = b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x77\x77\xce"
DELIVER = frame.marshal(commands.Basic.Deliver("", 1, False, "", "a"), 1)
HUGE = frame.marshal(ContentHeader(0, 10**12, commands.Basic.Properties()), 1)


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Outcome.PROTOCOL, "AMQP"),
        (says(b"AMQP\x00\x01\x00\x00"), Outcome.PROTOCOL, "AMQP"),
        (says(b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(b"\x01\x00\x00\x00"), Outcome.RESET, "(closed|reset) the connection"),
        (says(b"", stays=True), Outcome.TIMEOUT, "no answer"),
        (says(UNKNOWN, stays=True), Outcome.PROTOCOL, "AMQP"),
        (says(b"\x01\x00\x00\x7f\xff\xff\xff", stays=True), Outcome.PROTOCOL, "AMQP"),
        (says(START, FORCED), Outcome.STATUS, "320 FORCED"),
        (says(*LOGGED_IN, b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(*READY, b""), Outcome.RESET, "(closed|reset) the connection"),
        (says(*READY, b"\x01\x00\x01"), Outcome.RESET, "(closed|reset) the connection"),
        (says(*READY, b"", stays=True), Outcome.TIMEOUT, "no answer"),
        (says(*READY, commands.Basic.Nack(1), stays=True), Outcome.STATUS, "did not take it"),
        (says(*READY, HUGE, stays=True), Outcome.PROTOCOL, "never began"),
        (says(*READY, DELIVER + HUGE, stays=True), Outcome.PROTOCOL, "a message of more than"),
        (says(*READY, FORCED, stays=True), Outcome.STATUS, "320 FORCED"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user() as (vu, scope, _):
            url = f"amqp://127.0.0.1:{server.port}"
            got = await vu.rabbitmq.publish(url, "a", "x", timeout=0.4)
            assert got.outcome is outcome, (got.outcome, got.error)
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


@pytest.mark.parametrize(
    ("key", "more", "reason"),
    [
        ("", {}, "not a name"),
        (5, {}, "not a name"),
        ("a" * 300, {}, "255"),
        ("a", {"exchange": 5}, "not a name"),
        ("a", {"headers": [1]}, "headers"),
    ],
)
def test_what_the_author_got_wrong(run: Run, key: Any, more: dict[str, Any], reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.rabbitmq.publish("amqp://127.0.0.1:1", key, "x", **more)

    run(go())

"""Every client, whatever it speaks: what it counts is what the server saw, and nothing raises."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hyperscale.clients import Client, ClientPool
from hyperscale.workload.results import CallFailed, CallResult, Outcome
from hyperscale.workload.scope import CURRENT, Label, Note, Unrecorded

from .broker_peers import MongoDBPeer, MQTTPeer, NATSPeer, RabbitMQPeer
from .certificates import Authority
from .conftest import Run
from .h2_server import Peer, hello, serve_h2
from .h3_server import Peer as QuicPeer
from .h3_server import serve_h3
from .scripted import pool, until
from .websocket_server import Upgraded


class CountingScope(Unrecorded):
    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, str, str]] = []
        self.rows: list[tuple[float, ...]] = []
        self.failures: list[tuple[CallResult, bool]] = []
        self.connects = 0

    def open(self, label: Label) -> Note:
        def note(row: tuple[float, ...]) -> None:
            self.noted.append((label.kind, label.method, label.name))
            self.rows.append(row)

        return note

    def leave_out_upgrades(self) -> None:
        """A WebSocket begins with one, which is a call of its own."""
        kept = [at for at, (_, method, _) in enumerate(self.noted) if method != "CONNECT"]
        self.noted = [self.noted[at] for at in kept]
        self.rows = [self.rows[at] for at in kept]

    def connected(self, label: Label, connect: object) -> None:
        self.connects += 1

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        self.failures.append((result, sent))


@dataclass
class Server:
    """A server of any kind, which answers as `behaviour` says."""

    port: int = 0
    seen: int = 0
    behaviour: str = "echo"  # silent, closes, chunks
    peers: list[Any] = field(default_factory=list)


class Stream(asyncio.Protocol):
    def __init__(self, server: Server, answer: bytes) -> None:
        self._server = server
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._server.peers.append(transport)

    def data_received(self, data: bytes) -> None:
        seen = data.count(b"\n\n") + data.count(b"\r\n\r\n") + data.count(b"*2\r\n")
        self._server.seen += seen
        match self._server.behaviour:
            case "echo":
                self._transport.write(self._answer * seen)
            case "closes":
                self._transport.close()


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._server.peers.append(transport)

    def datagram_received(self, data: bytes, address: Any) -> None:
        self._server.seen += 1
        if self._server.behaviour == "echo":
            self._transport.sendto(data, address)


def say(peer: Peer, stream: int) -> None:
    message = b"\0\0\0\0\2ok"
    fields = ("content-type", "application/grpc")
    peer.reply(stream, message, fields, trailers=[("grpc-status", "0")])


OVER_HTTP2: dict[str, Callable[[Peer, int], None]] = {"http2": hello, "grpc": say}
KEPT = ("udp", *OVER_HTTP2)  # what comes too late is told apart without a new connection
ANSWERS = {
    "http": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "tcp": b"ok\n\n",
    "ws": b"ok",
    "redis": b"+ok\r\n",
    "mongodb": b"",
    "mqtt": b"",
    "nats": b"",
    "rabbitmq": b"",
    "sse": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ok\n\n",
}
PROTOCOLS: dict[str, Any] = {
    "ws": Upgraded,
    "mongodb": MongoDBPeer,
    "mqtt": MQTTPeer,
    "nats": NATSPeer,
    "rabbitmq": RabbitMQPeer,
}


def quic_answer(server: Server) -> Callable[[QuicPeer, int], None]:
    def answer(peer: QuicPeer, stream: int) -> None:
        server.seen += 1
        if server.behaviour == "echo":
            peer.reply(stream)
        elif server.behaviour == "closes":
            peer.close()

    return answer


@asynccontextmanager
async def serving(kind: str) -> AsyncIterator[Server]:
    loop = asyncio.get_running_loop()
    server = Server()
    if kind in OVER_HTTP2:

        def answer(peer: Peer, stream: int) -> None:
            server.seen += 1
            if server.behaviour == "echo":
                OVER_HTTP2[kind](peer, stream)
            elif server.behaviour == "closes":
                peer.transport.close()

        async with serve_h2(answer) as over:
            server.port, server.peers = over.port, over.peers
            yield server
        return
    if kind == "http3":
        with TemporaryDirectory() as folder:
            cert = Authority(Path(folder)).issue("localhost")
            async with serve_h3(cert, quic_answer(server)) as quic:
                server.port, server.peers = quic.port, quic.peers
                yield server
        return
    if kind == "udp":
        transport, _ = await loop.create_datagram_endpoint(
            lambda: Datagrams(server), ("127.0.0.1", 0)
        )
        server.port = transport.get_extra_info("sockname")[1]
        try:
            yield server
        finally:
            transport.close()
        return
    made = await loop.create_server(
        lambda: PROTOCOLS.get(kind, Stream)(server, ANSWERS[kind]), "127.0.0.1", 0
    )
    server.port = made.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        made.close()
        for peer in server.peers:
            peer.abort()


Ask = Callable[[Client, int, Any], Awaitable[Any]]
ASK: dict[str, Ask] = {
    "http": lambda vu, port, timeout: vu.http.get(f"http://127.0.0.1:{port}/", timeout=timeout),
    "grpc": lambda vu, port, timeout: vu.grpc.unary(
        f"grpc://127.0.0.1:{port}", "shop.Shop/Buy", b"hi", timeout=timeout
    ),
    "http2": lambda vu, port, timeout: vu.http2.get(f"http://127.0.0.1:{port}/", timeout=timeout),
    "http3": lambda vu, port, timeout: vu.http3.get(f"https://127.0.0.1:{port}/", timeout=timeout),
    "tcp": lambda vu, port, timeout: vu.tcp.request(
        f"tcp://127.0.0.1:{port}", "hi\n\n", until="\n\n", timeout=timeout
    ),
    "udp": lambda vu, port, timeout: vu.udp.request(
        f"udp://127.0.0.1:{port}", b"hi", timeout=timeout
    ),
    "mongodb": lambda vu, port, timeout: vu.mongodb.command(
        f"mongodb://127.0.0.1:{port}", {"ping": 1}, timeout=timeout
    ),
    "mqtt": lambda vu, port, timeout: vu.mqtt.publish(
        f"mqtt://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "nats": lambda vu, port, timeout: vu.nats.publish(
        f"nats://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "rabbitmq": lambda vu, port, timeout: vu.rabbitmq.publish(
        f"amqp://127.0.0.1:{port}", "a", "hi", timeout=timeout
    ),
    "redis": lambda vu, port, timeout: vu.redis.get(f"127.0.0.1:{port}", "a", timeout=timeout),
    "sse": lambda vu, port, timeout: vu.sse.subscribe(f"http://127.0.0.1:{port}/", timeout=timeout),
    "ws": lambda vu, port, timeout: vu.websocket.request(
        f"ws://127.0.0.1:{port}", "hi", timeout=timeout
    ),
}
KINDS = list(ASK)
OVER_TCP = [kind for kind in KINDS if kind != "udp"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def user(**options: object) -> AsyncIterator[tuple[Client, CountingScope, ClientPool]]:
    async with pool(**options) as made:
        scope = CountingScope()
        CURRENT.set(scope)
        yield made.client(), scope, made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_each_exchange_is_counted_once_and_its_phases_are_in_order(
    run_each_way: Run, kind: str
) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, scope, _):
            for _ in range(5):
                assert (await ASK[kind](vu, server.port, None)).ok
            scope.leave_out_upgrades()
            assert len(scope.noted) == server.seen == 5
            told = "http" if kind in ("http2", "http3") else kind
            assert {noted[0] for noted in scope.noted} == {told}
            for started, sent, first_byte, ended, *_ in scope.rows:
                assert started <= sent <= first_byte <= ended
            assert all(row[-2] > 0 and row[-1] > 0 for row in scope.rows)
            assert len(server.peers) == (5 if kind == "sse" else 1), "the connection is kept"
            assert scope.connects == {"udp": 0, "sse": 5}.get(kind, 1)

    run_each_way(go())


def test_nobody_listens(run_each_way: Run, kind: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            got = await ASK[kind](vu, free_port(), None)
            assert got.outcome is Outcome.REFUSED
            assert "127.0.0.1:" in got.error
            assert [result for result, _ in scope.failures] == [got]
            assert not scope.noted
            with pytest.raises(CallFailed):
                got.text()

    run_each_way(go())


def test_a_host_that_does_not_exist(run_each_way: Run) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            got = await vu.tcp.request("no-such-host.invalid:1", b"x")
            assert got.outcome is Outcome.DNS
            assert scope.failures == [(got, False)]

    run_each_way(go())


def test_a_silent_server_is_a_timeout_and_its_late_answer_is_nobodys(
    run_each_way: Run, kind: str
) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, scope, _):
            server.behaviour = "silent"
            # A handshake of QUIC comes first, however busy the machine is.
            got = await ASK[kind](vu, server.port, 1.0 if kind == "http3" else 0.1)
            assert (got.outcome, got.bytes_in) == (Outcome.TIMEOUT, 0)
            assert scope.failures == [(got, True)]
            assert server.seen == 1
            server.behaviour = "echo"
            assert (await ASK[kind](vu, server.port, None)).ok
            assert server.seen == 2
            if kind != "http3":  # whether the peer had said something meanwhile
                assert len(server.peers) == (1 if kind in KEPT else 2)

    run_each_way(go())


@pytest.mark.parametrize("kind", OVER_TCP)
def test_a_server_that_closes(run_each_way: Run, kind: str) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, _, _):
            server.behaviour = "closes"
            got = await ASK[kind](vu, server.port, None)
            assert got.outcome is Outcome.RESET
            assert "closed the connection" in got.error
            server.behaviour = "echo"
            assert (await ASK[kind](vu, server.port, None)).ok

    run_each_way(go())


def test_a_cancelled_call_that_was_sent_counts(run_each_way: Run, kind: str) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, scope, _):
            server.behaviour = "silent"
            call = asyncio.ensure_future(ASK[kind](vu, server.port, None))
            await until(lambda: server.seen == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            ((result, sent),) = scope.failures
            assert (result.outcome, sent) == (Outcome.CANCELLED, True)

    run_each_way(go())


def test_the_end_of_a_run_ends_calls_and_lets_no_other_begin(run_each_way: Run, kind: str) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, _, made):
            server.behaviour = "silent"
            call = asyncio.ensure_future(ASK[kind](vu, server.port, None))
            await until(lambda: server.seen == 1)
            await made.finish(0.05)
            assert (await call).outcome is Outcome.CANCELLED
            assert (await ASK[kind](vu, server.port, None)).outcome is Outcome.CANCELLED
            assert server.seen == 1

    run_each_way(go())


def test_calls_at_the_same_time_get_their_own_answers(run_each_way: Run, kind: str) -> None:
    async def go() -> None:
        async with serving(kind) as server, user(verify=False) as (vu, scope, _):
            got = await asyncio.gather(*(ASK[kind](vu, server.port, None) for _ in range(20)))
            assert all(one.ok for one in got)
            if kind in ("tcp", "redis", "ws", "mongodb", "mqtt", "nats", "rabbitmq"):
                assert len(server.peers) == 1, "the first one opens it for all"
            scope.leave_out_upgrades()
            assert server.seen == len(scope.noted) == 20

    run_each_way(go())


def test_bad_timeouts_are_the_authors(run_each_way: Run, kind: str) -> None:
    from hyperscale.errors import BadInput

    async def go() -> None:
        async with user() as (vu, _, _):
            with pytest.raises(BadInput, match="timeout"):
                await ASK[kind](vu, 1, -1)

    run_each_way(go())

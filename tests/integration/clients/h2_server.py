"""A real HTTP/2 server on loopback, of the `h2` package, that does what a test says."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from hyperscale.http2 import frames

Answer = Callable[["Peer", int], None]
"""Called when the request of a stream is complete."""


class Peer(asyncio.Protocol):
    """`http` is the connection of h2; `raw` writes what that would refuse to."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.http.local_settings = h2.settings.Settings(
            client=False, initial_values=server.settings
        )
        self.headers: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.server.peers.append(self)
        self.http.initiate_connection()
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            events = self.http.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.server.errors.append(repr(error))
            self.flush()
            self.transport.close()
            return
        for event in events:
            self._happened(event)
        self.flush()

    def _happened(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                pairs = [(bytes(n).decode(), bytes(v).decode("latin-1")) for n, v in event.headers]
                self.headers[event.stream_id] = dict(pairs)
                self.bodies[event.stream_id] = b""
            case h2.events.DataReceived():
                self.bodies[event.stream_id] += event.data
                if self.server.acknowledges:
                    self.http.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
            case h2.events.StreamEnded():
                self.server.seen += 1
                self.server.answer(self, event.stream_id)
            case h2.events.StreamReset():
                self.server.resets.append(int(event.error_code))
            case h2.events.PingAckReceived():
                self.server.pings += 1

    def flush(self) -> None:
        self.raw(self.http.data_to_send())

    def raw(self, data: bytes) -> None:
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def reply(
        self,
        stream: int,
        body: bytes = b"ok",
        *fields: tuple[str, str],
        status: int = 200,
        trailers: list[tuple[str, str]] | None = None,
    ) -> None:
        self.http.send_headers(stream, [(":status", str(status)), *fields], end_stream=False)
        for at in range(0, len(body), 16384):
            last = at + 16384 >= len(body) and not trailers
            self.http.send_data(stream, body[at : at + 16384], end_stream=last)
        if trailers:
            self.http.send_headers(stream, trailers, end_stream=True)
        self.flush()

    def frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self.flush()
        self.raw(frames.frame(kind, flags, stream, payload))


class Server:
    def __init__(self, answer: Answer, settings: dict[Any, int] | None) -> None:
        self.answer = answer
        self.settings = settings or {}
        self.acknowledges = True
        self.peers: list[Peer] = []
        self.errors: list[str] = []
        self.resets: list[int] = []
        self.seen = self.pings = self.port = 0
        self.url = ""


def hello(peer: Peer, stream: int) -> None:
    peer.reply(stream, b"hello")


@asynccontextmanager
async def serve_h2(
    answer: Answer = hello,
    settings: dict[Any, int] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    server = Server(answer, settings)
    made = await asyncio.get_running_loop().create_server(
        lambda: Peer(server), "127.0.0.1", 0, ssl=tls
    )
    server.port = made.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    try:
        yield server
        assert not server.errors
    finally:
        made.close()
        for peer in server.peers:
            peer.transport.abort()

"""A real HTTP/3 server on loopback, of `aioquic`, that does what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
    QuicEvent,
    StreamReset,
)
from aioquic.tls import SessionTicket

Answer = Callable[["Peer", int], None]
"""Called when the request of a stream is complete."""


class Peer(QuicConnectionProtocol):
    def __init__(self, server: Server, quic: Any) -> None:
        super().__init__(quic)
        self.server = server
        self.headers: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}
        server.peers.append(self)

    def quic_event_received(self, event: QuicEvent) -> None:
        match event:
            case ProtocolNegotiated():
                self.http = H3Connection(self._quic)
            case HandshakeCompleted():
                self.server.early.append(event.early_data_accepted)
            case StreamReset():
                self.server.resets.append(event.error_code)
            case ConnectionTerminated():
                self.server.ended.append(event.error_code)
                return
        for told in self.http.handle_event(event):
            if isinstance(told, HeadersReceived):
                pairs = [(name.decode(), value.decode()) for name, value in told.headers]
                self.headers[told.stream_id] = dict(pairs)
                self.bodies[told.stream_id] = b""
            elif isinstance(told, DataReceived):
                self.bodies[told.stream_id] += told.data
            if told.stream_ended:
                self.server.seen += 1
                self.server.answer(self, told.stream_id)

    def reply(
        self,
        stream: int,
        body: bytes = b"ok",
        *fields: tuple[str, str],
        status: int = 200,
        trailers: list[tuple[str, str]] | None = None,
    ) -> None:
        self.fields(stream, (":status", str(status)), *fields)
        self.http.send_data(stream, body, end_stream=not trailers)
        if trailers:
            self.fields(stream, *trailers, end=True)
        self.transmit()

    def fields(self, stream: int, *fields: tuple[str, str], end: bool = False) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in fields]
        self.http.send_headers(stream, pairs, end_stream=end)

    def raw(self, stream: int, data: bytes, end: bool = False) -> None:
        self._quic.send_stream_data(stream, data, end)
        self.transmit()

    def reset(self, stream: int, code: int) -> None:
        self._quic.reset_stream(stream, code)
        self.transmit()


class Server:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.peers: list[Peer] = []
        self.early: list[bool] = []
        self.resets: list[int] = []
        self.ended: list[int] = []
        self.seen = self.port = 0
        self.url = ""


def hello(peer: Peer, stream: int) -> None:
    peer.reply(stream, b"hello")


@asynccontextmanager
async def serve_h3(
    cert: str, answer: Answer = hello, alpn: str = "h3", **settings: Any
) -> AsyncIterator[Server]:
    """`cert` is a PEM file with its key."""
    server = Server(answer)
    configuration = QuicConfiguration(alpn_protocols=[alpn], is_client=False, **settings)
    configuration.load_cert_chain(cert, cert)
    tickets: dict[bytes, SessionTicket] = {}
    transport, made = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: QuicServer(
            configuration=configuration,
            create_protocol=lambda quic, stream_handler=None: Peer(server, quic),
            session_ticket_fetcher=tickets.get,
            session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        ),
        local_addr=("127.0.0.1", 0),
    )
    server.port = transport.get_extra_info("sockname")[1]
    server.url = f"https://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        made.close()

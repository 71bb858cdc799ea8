"""Answers that do not end: a WebSocket that echoes, and a stream of events."""

from __future__ import annotations

import asyncio

from hyperscale.target.connection import Connection
from hyperscale.target.message import Outlet, Request
from hyperscale.target.site import Site
from hyperscale.websocket_frames import (
    BINARY,
    CLOSE,
    COMPRESSED,
    PING,
    PONG,
    Deflate,
    FrameReader,
    accept_of,
    closing,
    frame,
)

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
SESSION = "WS message"  # what a message is counted as


class WebSocket:
    """Says 101 and hands the connection over."""

    def perform(self, connection: Outlet, request: Request) -> None:
        if not isinstance(connection, Connection):
            connection.hang_up()  # a stream of HTTP/2 becomes no WebSocket here
            return
        accept = accept_of(request.header("sec-websocket-key").encode())
        lines = [
            b"HTTP/1.1 101 Switching Protocols",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Accept: " + accept,
        ]
        deflate = None
        if "permessage-deflate" in request.header("sec-websocket-extensions"):
            deflate = Deflate()
            lines.append(b"Sec-WebSocket-Extensions: permessage-deflate")
        protocols = request.header("sec-websocket-protocol").partition(",")[0].strip()
        if protocols:
            lines.append(b"Sec-WebSocket-Protocol: " + protocols.encode())
        connection.transport.write(b"\r\n".join(lines) + b"\r\n\r\n")
        echo = _Echo(connection, deflate)
        connection.transport.set_protocol(echo)
        if connection.after_upgrade:
            echo.data_received(connection.after_upgrade)


class _Echo(asyncio.Protocol):
    """What is sent comes back; a message counts as a request of the site."""

    def __init__(self, connection: Connection, deflate: Deflate | None) -> None:
        self._connection = connection
        self._site: Site = connection.site
        self._transport = connection.transport
        self._reader = FrameReader(True, MESSAGE_BYTES_MAX, deflate)
        self._deflate = deflate

    def data_received(self, data: bytes) -> None:
        out = []
        paths = self._site.paths
        is_over = False
        for kind, payload in self._reader.feed(data):
            if kind <= BINARY:
                paths[SESSION] = paths.get(SESSION, 0) + 1
                if self._deflate is not None:
                    kind, payload = kind | COMPRESSED, self._deflate.compress(payload)
                out.append(frame(kind, payload, masked=False))
            elif kind == PING:
                out.append(frame(PONG, payload, masked=False))
            elif kind == CLOSE:
                out.append(frame(CLOSE, payload, masked=False))
                is_over = True
                break
        if self._reader.error is not None:
            out.append(frame(CLOSE, closing(self._reader.error.code), masked=False))
            is_over = True
        self._transport.write(b"".join(out))
        if is_over:
            self._transport.close()

    # A client that sends and does not receive is not read any further.
    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)


class Events:
    """So many events, one each so many seconds, in a chunked answer."""

    HEAD = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )

    def __init__(self, first: int, count: int, every_s: float) -> None:
        self._next = first
        self._last = first + count
        self._every_s = every_s

    def perform(self, connection: Outlet, request: Request) -> None:
        if not isinstance(connection, Connection):
            connection.hang_up()  # its chunks are those of HTTP/1.1
            return
        connection.transport.write(self.HEAD)
        loop = asyncio.get_running_loop()

        def tell() -> None:
            if connection.transport.is_closing():
                return
            if self._next >= self._last:
                connection.send(b"0\r\n\r\n", request)
                connection.done()
                return
            if connection.writable:
                event = b'id: %d\nevent: tick\ndata: {"number": %d}\n\n' % (self._next, self._next)
                connection.transport.write(b"%x\r\n%b\r\n" % (len(event), event))
                self._next += 1
            loop.call_later(self._every_s, tell)

        tell()

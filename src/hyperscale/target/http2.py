"""The target in HTTP/2: the same paths on the same port, and echoes of gRPC.

A connection is handed over to here when it begins with the preface of HTTP/2, over TLS as without.
Replies are written as for HTTP/1.1 and turned into frames, so that there is one set of routes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block, Field
from hyperscale.http2.session import Session
from hyperscale.http2.stream import CLOSED, Stream
from hyperscale.target import grpc
from hyperscale.target.message import Refusal, Request
from hyperscale.target.site import Site

BODY_BYTES_KEPT = 1024 * 1024
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n")
_OF_A_CONNECTION = frozenset((b"connection", b"transfer-encoding"))


class HTTP2Connection(asyncio.Protocol):
    def __init__(self, site: Site, transport: asyncio.Transport) -> None:
        self.site = site
        self.transport = transport
        self._preface = b""
        self.session = Session(site.tables, lambda: ServerStream(self))
        site.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if len(self._preface) < len(frames.PREFACE):
            missing = len(frames.PREFACE) - len(self._preface)
            self._preface += data[:missing]
            data = data[missing:]
            if not frames.PREFACE.startswith(self._preface):
                self.transport.close()
                return
        self.session.receive(data, 0.0)
        self.flush()
        if self.session.fault:
            self.transport.close()

    def flush(self) -> None:
        out = self.session.out
        if out and not self.transport.is_closing():
            self.transport.write(b"".join(out))
            out.clear()

    # A client that asks and does not read is not asked any further.
    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.site.connections.discard(self)


class ServerStream(Stream):
    """A request and its reply; to an effect it looks like a connection of its own."""

    __slots__ = ("_body", "_body_bytes", "_fields", "_messages", "connection", "on_writable")
    writable = True  # what the client does not read waits in its window

    def __init__(self, connection: HTTP2Connection) -> None:
        super().__init__()
        self.connection = connection
        self.on_writable: Callable[[], None] | None = None
        self._fields: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._messages: grpc.Echo | None = None

    @property
    def site(self) -> Site:
        return self.connection.site

    @property
    def transport(self) -> asyncio.Transport:
        return self.connection.transport

    def on_headers(self, block: Block, now: float) -> None:
        if self._fields:
            return  # trailers
        for name, value in block.fields:
            known = self._fields.get(name)
            joined = known + b", " + value if known is not None else value
            self._fields[name] = joined
        if self._fields.get(b"content-type", b"").startswith(b"application/grpc"):
            path = self._fields.get(b":path", b"").decode("latin-1")
            self._count(path)
            self._messages = grpc.Echo(path, self._fields, self._reply, self._end)

    def on_data(self, data: bytes, now: float) -> None:
        if self._messages is not None:
            self._messages.feed(data)
            return
        room = BODY_BYTES_KEPT - self._body_bytes
        self._body_bytes += len(data)
        if room > 0:
            self._body.append(data[:room])

    def on_end(self, now: float) -> None:
        if self._messages is not None:
            self._messages.end()
            return
        request = self._request()
        self._count(request.path)
        try:
            answer = request.handler(self.site, request)
        except Refusal as refusal:
            answer = refusal.reply
        if isinstance(answer, bytes):
            self.send(answer, request)
        else:
            answer.perform(self, request)

    def _count(self, path: str) -> None:
        paths, key = self.site.paths, self.site.counted_as(path)
        paths[key] = paths.get(key, 0) + 1

    def _request(self) -> Request:
        fields = {name: value.decode("latin-1") for name, value in self._fields.items()}
        path, _, query = fields.get(b":path", "/").partition("?")
        handler, argument = self.site.route(path)
        headers = [(n.decode("latin-1"), v) for n, v in fields.items() if n[:1] != b":"]
        return Request(
            method=fields.get(b":method", "GET"),
            path=path,
            query=query,
            headers=[("host", fields.get(b":authority", "")), *headers],
            body=b"".join(self._body),
            body_bytes=self._body_bytes,
            handler=handler,
            argument=argument,
        )

    def send(self, payload: bytes, request: Request) -> None:
        """A whole reply, written as for HTTP/1.1."""
        if self.state == CLOSED:
            return
        head, _, body = payload.partition(b"\r\n\r\n")
        fields, is_chunked = _fields_of(head)
        if is_chunked:
            body = _joined(body)
        if request.method == "HEAD":
            body = b""
        session = self.connection.session
        session.send_fields(self, fields, end=not body)
        if body:
            session.send(self, body, True)
        self.connection.flush()

    def write_raw(self, payload: bytes, request: Request) -> None:
        if payload.startswith(b"HTTP/1.1 "):
            self.send(payload, request)
        else:
            self.transport.write(payload)

    def _reply(self, fields: list[Field], data: bytes) -> None:
        session = self.connection.session
        if self.state == CLOSED:
            return
        if fields:
            session.send_fields(self, fields)
        if data:
            session.send(self, data, False)

    def _end(self, trailers: list[Field]) -> None:
        if self.state != CLOSED:
            if self.outbox is not None:  # trailers come behind all of it
                self.on_writable = lambda: self._end(trailers)
                return
            self.connection.session.send_fields(self, trailers, end=True)
            if self.state != CLOSED:
                self.connection.session.reset(self, frames.NO_ERROR)
            self.connection.flush()

    def on_room(self, now: float) -> None:
        if self.on_writable is not None:
            self.on_writable()

    def hang_up(self) -> None:
        self.connection.session.close()
        self.connection.flush()
        self.transport.close()

    def done(self) -> None:
        """Other streams did not wait."""

    def on_reset(self, code: int, now: float) -> None:
        """Whoever asked does not wait any more; what is under way finds the stream closed."""

    def on_refused(self, now: float) -> None:
        """As when it is reset."""

    def on_fault(self, code: int, fault: str, now: float) -> None:
        """As when it is reset."""


@lru_cache(maxsize=256)
def _fields_of(head: bytes) -> tuple[tuple[Field, ...], bool]:
    """The fields, and whether the body is in chunks."""
    first, *lines = head.split(b"\r\n")
    fields = [(b":status", first.split(b" ")[1])]
    chunked = False
    for line in lines:
        name, _, value = line.partition(b": ")
        lower = name.lower()
        chunked = chunked or lower == b"transfer-encoding"
        if lower not in _OF_A_CONNECTION:
            fields.append((lower, value))
    return tuple(fields), chunked


def _joined(chunks: bytes) -> bytes:
    pieces, at = [], 0
    while size := int(cast(re.Match[bytes], line := _CHUNK.match(chunks, at))[1], 16):
        assert line is not None
        pieces.append(chunks[line.end() : line.end() + size])
        at = line.end() + size + 2
    return b"".join(pieces)

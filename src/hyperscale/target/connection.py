"""One connection: bytes in, requests in order, replies out in the same order.

Requests that arrive while an earlier one is still being answered (a delay, a slow reader) wait in
a queue, and reading stops when it is long, so pipelining is correct and memory is bounded. A
chunk of bytes that was seen before as exactly one request skips the parser: that makes the target
fast enough to measure load generators with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from hyperscale.target.message import Refusal, Request, fitted
from hyperscale.target.site import Site

# Enough for any real header block; one that goes on for longer is refused, not kept.
HEADER_BYTES = 64 * 1024
# Longer bodies are read and counted to their end, but only this much is kept.
BODY_BYTES_KEPT = 1024 * 1024
PIPELINED_REQUESTS = 128
HTTP2_START = b"PRI * HTTP/2"


class Connection(asyncio.Protocol):
    def __init__(self, site: Site) -> None:
        self.site = site
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)  # until connection_made
        self.writable = True
        self.on_writable: Callable[[], None] | None = None  # for effects that write without end
        self._remembered = site.remembered
        self._paths = site.paths
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Request] = deque()
        self._fresh = True  # nothing was received yet
        self._idle = True  # nothing half parsed, queued or being answered: the short way is open
        self._busy = False  # an effect has yet to call `done`
        self._last = False  # the request after which the connection closes has been parsed
        self._reading = True
        self._at_boundary = True  # no message is half parsed
        self._in_head = False
        self._completed = 0  # requests parsed from the bytes being fed
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._late_head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self.after_upgrade = b""  # what a client sent before it knew the answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.site.connections.add(self)
        self.site.accepted += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.site.connections.discard(self)
        self._queue.clear()
        self._last = True
        del self._parser  # it holds this object's methods

    def data_received(self, data: bytes) -> None:
        if self._idle and (request := self._remembered.get(data)) is not None:
            self._answer(request)
        elif not self._last:
            if self._fresh and data.startswith(HTTP2_START):
                self._hand_over(data)
                return
            self._fresh = False
            self._feed(data)

    def _hand_over(self, data: bytes) -> None:
        """To HTTP/2, in which the client begins."""
        from hyperscale.target.http2 import HTTP2Connection

        self.site.connections.discard(self)
        del self._parser
        successor = HTTP2Connection(self.site, self.transport)
        self.transport.set_protocol(successor)
        successor.data_received(data)

    def _feed(self, data: bytes) -> None:
        alone = self._at_boundary and not self._queue
        if self._in_head:
            self._late_head_bytes += len(data)
        self._completed = 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._last = True
            self.after_upgrade = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(
                cause if isinstance(cause, Refusal) else Refusal(400, f"not HTTP: {error}")
            )
        else:
            if alone and self._completed == 1 and self._at_boundary:
                self.site.remember(data, self._queue[-1])
            elif self._in_head and self._late_head_bytes > HEADER_BYTES:
                self._refuse(Refusal(431, f"more than {HEADER_BYTES} bytes of headers"))
        self._drain()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what came before, say why, hang up: nothing after it can be trusted."""
        if not self._last:
            self._last = True
            self._queue.append(
                Request(
                    method="",
                    path="",
                    keep_alive=False,
                    connection=b"close",
                    handler=lambda site, request: refusal.reply,
                    counted_as="(malformed)",
                )
            )

    def _drain(self) -> None:
        queue = self._queue
        while queue and self.writable and not self._busy:
            self._answer(queue.popleft())
        self._idle = self.writable and self._at_boundary and not (queue or self._busy)
        wanted = self.writable and len(queue) < PIPELINED_REQUESTS
        if wanted != self._reading and not self.transport.is_closing():
            self._reading = wanted
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def _answer(self, request: Request) -> None:
        paths = self._paths
        key = request.counted_as
        paths[key] = paths.get(key, 0) + 1
        try:
            answer = request.handler(self.site, request)
        except Refusal as refusal:
            answer = refusal.reply
        if isinstance(answer, bytes):
            if request.plain:
                self.transport.write(answer)
            else:
                self.send(answer, request)
        else:
            self._busy = True
            self._idle = False
            answer.perform(self, request)

    def send(self, payload: bytes, request: Request) -> None:
        self.transport.write(payload if request.plain else fitted(payload, request))
        if not request.keep_alive:
            self.hang_up()

    def write_raw(self, payload: bytes, request: Request) -> None:
        self.transport.write(payload)

    def hang_up(self) -> None:
        """Close once everything written has left; whatever else was asked is not answered."""
        self._last = True
        self._busy = True
        self._idle = False
        self.transport.close()

    def done(self) -> None:
        """An effect has given its whole answer; the next request may have its turn."""
        if not self.transport.is_closing():
            self._busy = False
            self._drain()

    def pause_writing(self) -> None:
        self.writable = False
        self._idle = False
        if self._reading and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.writable = True
        if self.on_writable is not None:
            self.on_writable()
        elif not self.transport.is_closing():
            self._drain()

    # What the parser calls, in this order for every message.

    def on_message_begin(self) -> None:
        self._at_boundary = False
        self._in_head = True
        self._late_head_bytes = 0
        self._url = b""
        self._headers = []
        self._body = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._in_head = False
        if any(n.lower() == "expect" and v.lower() == "100-continue" for n, v in self._headers):
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        room = BODY_BYTES_KEPT - self._body_bytes
        self._body_bytes += len(body)
        if room > 0:
            self._body.append(body[:room])

    def on_message_complete(self) -> None:
        self._at_boundary = True
        self._completed += 1
        self._queue.append(self._request())

    def _request(self) -> Request:
        parser = self._parser
        try:
            url = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError:
            raise Refusal(400, "the request target is not a path or a URL") from None
        path = (url.path or b"/").decode("latin-1")
        handler, argument = self.site.route(path)
        keep_alive = parser.should_keep_alive() and not parser.should_upgrade()
        connection = b"" if keep_alive else b"close"
        if keep_alive and parser.get_http_version() == "1.0":
            connection = b"keep-alive"
        self._last = not keep_alive
        return Request(
            method=parser.get_method().decode(),
            path=path,
            query=(url.query or b"").decode("latin-1"),
            headers=self._headers,
            body=b"".join(self._body),
            body_bytes=self._body_bytes,
            keep_alive=keep_alive,
            connection=connection,
            handler=handler,
            argument=argument,
            counted_as=self.site.counted_as(path),
        )

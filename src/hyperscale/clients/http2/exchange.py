"""One request and its response, as a stream of a connection."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http.head import BadHead
from hyperscale.clients.http.reader import DISCARD, Sink
from hyperscale.clients.http.upload import Upload
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.http2.head import FieldsHead, head_of, trailers_of
from hyperscale.clients.http2.request import HTTP2Request, fields_of
from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block
from hyperscale.http2.stream import CLOSED
from hyperscale.workload.responses import NO_HEADERS, HTTP2Response
from hyperscale.workload.results import Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.connection import Connection

Waiter = asyncio.Future[HTTP2Response]
_INTERIM_MAX = 100  # 1xx answers before the one that counts


class Exchange(StreamCall):
    """`ask` has it written with those of others; the response is in the future that it gives."""

    __slots__ = (
        "_head",
        "_interim",
        "_parts",
        "_room",
        "_sink",
        "_size",
        "_trailers",
        "_upload",
        "request",
        "waiter",
    )

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.waiter: Waiter | None = None
        self._head: FieldsHead | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._interim = 0
        self._trailers = NO_HEADERS
        self._upload: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def ask(self, request: HTTP2Request, timeout: float, sink: Sink | None) -> Waiter:
        self.request = request
        self.timeout = timeout
        self._sink = sink
        connection = self.connection
        waiter: Waiter = connection.loop.create_future()
        self.waiter = waiter
        connection.submit(self)
        return waiter

    def settle(self) -> None:
        """Nothing is left of it on the connection."""

    # -- sending -----------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        request = self.request
        self.started = self.moved = now
        if len(request.wire) > request.body_at:
            self.outbox = memoryview(request.wire)[request.body_at :]
        self.ends = request.stream is None
        self.connection.http.open(self, request.head, fields_of)
        if request.stream is not None:
            upload = self._send_pieces(request.stream)
            self._upload = self.connection.loop.create_task(upload, context=request.stream.context)

    @property
    def is_sending(self) -> bool:
        return self.outbox is not None or self._upload is not None

    async def _send_pieces(self, upload: Upload) -> None:
        """A body, as fast as the author's code gives it and the server takes it."""
        connection = self.connection
        try:
            async with aclosing(upload.pieces()) as pieces:
                async for piece in pieces:
                    connection.http.send(self, piece, False)
                    connection.flush(perf_counter())
                    while self.state != CLOSED and (self.outbox or connection.unsent is not None):
                        self._room = connection.loop.create_future()
                        await self._room
                    if self.state == CLOSED:
                        return
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            if self.waiter is not None and not self.waiter.done():
                self.waiter.set_exception(error)
            return
        self._upload = None
        connection.http.send(self, b"", True)
        connection.flush(perf_counter())

    def on_room(self, now: float) -> None:
        super().on_room(now)
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # -- receiving ---------------------------------------------------------------------------------

    def on_headers(self, block: Block, now: float) -> None:
        try:
            if self._head is None:
                self._begin_response(block, now)
            else:
                self._trailers = trailers_of(block)
        except BadHead as error:
            self.give_up(frames.PROTOCOL_ERROR, Outcome.PROTOCOL, f"sent {error}", now)

    def _begin_response(self, block: Block, now: float) -> None:
        head = block.meaning
        if head is None:
            pool = self.connection.pool
            head = head_of(block, pool.heads.max_body_bytes, pool.heads.decompress)
        if not self.first_byte:
            self.first_byte = now
        self.moved = now
        if head.status >= 200:
            self._head = head
            if head.length > self._limit and not self.request.bodiless:
                self._too_large(now)
            return
        self._interim += 1
        if self._interim > _INTERIM_MAX:
            text = f"keeps sending {head.status} and no final response"
            self.give_up(frames.ENHANCE_YOUR_CALM, Outcome.PROTOCOL, text, now)

    @property
    def _limit(self) -> int:
        pool = self.connection.pool
        return pool.heads.max_body_bytes if self._sink is None else frames.WINDOW_BYTES_MAX << 32

    def _too_large(self, now: float) -> None:
        limit = self.connection.pool.heads.max_body_bytes
        text = f"sent a body of more than {limit} bytes (max_response_bytes)"
        self.give_up(frames.CANCEL, Outcome.PROTOCOL, text, now)

    def on_data(self, data: bytes, now: float) -> None:
        self.moved = now
        if self._head is None:
            text = "sent a body before its headers"
            self.give_up(frames.PROTOCOL_ERROR, Outcome.PROTOCOL, text, now)
            return
        self._size += len(data)
        if self._sink is None:
            self._parts.append(data)
            if self._size > self._limit:
                self._too_large(now)
        elif self._sink is not DISCARD:
            try:
                self._sink(data)
            except Exception as error:  # noqa: BLE001 - a sink of the author's may raise anything
                if self.waiter is not None and not self.waiter.done():
                    self.waiter.set_exception(error)

    def on_end(self, now: float) -> None:
        head, request = self._head, self.request
        if head is None:
            text = "ended a stream without an answer"
            self.give_up(frames.PROTOCOL_ERROR, Outcome.PROTOCOL, text, now)
            return
        if head.length >= 0 and self._size != head.length and not request.bodiless:
            text = f"sent {self._size} of {head.length} bytes of the body"
            self.give_up(frames.PROTOCOL_ERROR, Outcome.PROTOCOL, text, now)
            return
        if self.state != CLOSED:  # answered before it was asked to the end
            self.connection.http.reset(self, frames.CANCEL)
        parts = self._parts
        first = self.first_byte
        self._resolve(
            HTTP2Response(
                request,
                head,
                parts[0] if len(parts) == 1 else b"".join(parts),
                0,
                self.started,
                min(self.sent or first, first),  # it may answer before it has read all
                first,
                now,
                self.received,
                self.sent_bytes,
                head.status,
                head.outcome,
                head.error,
                None,
                self._trailers,
            )
        )

    def fail(self, outcome: Outcome, error: str, now: float) -> None:
        began = self.started or now
        self._resolve(
            HTTP2Response.failed(
                self.request, outcome, error, began, now, self.received, self.written
            )
        )

    def _resolve(self, response: HTTP2Response) -> None:
        self.finish()
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    def finish(self) -> None:
        super().finish()
        if self._upload is not None:
            self._upload.cancel()
            self._upload = None

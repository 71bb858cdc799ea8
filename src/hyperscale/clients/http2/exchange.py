"""One request and its response, as a stream of a connection."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from hyperscale.clients.http.head import BadHead
from hyperscale.clients.http.reader import DISCARD, Sink
from hyperscale.clients.http.upload import Upload
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.http2.head import FieldsHead, head_of, trailers_of
from hyperscale.clients.http2.request import HTTP2Request, UsualAnswer, fields_of
from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block
from hyperscale.http2.stream import CLOSED, LOCAL_ENDED
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

    response: ClassVar[type[HTTP2Response]] = HTTP2Response

    def __init__(self, connection: Connection) -> None:
        StreamCall.__init__(self, connection)
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
        stream = request.stream
        self.ends = stream is None
        self.connection.http.open(self, request.head, fields_of)
        if stream is not None:
            upload = self._send_pieces(stream)
            self._upload = self.connection.loop.create_task(upload, context=stream.context)

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

    def recognise(self, data: bytes, now: float) -> bool:
        """Whether the data is an answer as the last one, all of it: the response then."""
        request = self.request
        usual = request.shape
        if usual is None or len(data) != usual.size:
            return False
        at = usual.split
        if (
            self.state != LOCAL_ENDED
            or self._head is not None
            or self._sink is not None
            or data[:5] != usual.headers
            or data[at : at + 5] != usual.data
            or data[5:9] != data[at + 5 : at + 9]
        ):
            return False
        connection = self.connection
        http = connection.http
        block = http.known_block(data[9:at])
        if block is None:
            return False
        head = block.meaning
        if head is None or head.status < 200 or head.length not in (usual.data_bytes, -1):
            return False
        http.answered(self, block, usual.data_bytes)
        self.is_over = True
        connection.done(self)
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(
                HTTP2Response(
                    request,
                    head,
                    data,
                    at + frames.HEAD_BYTES,
                    self.started,
                    self.sent or now,
                    now,
                    now,
                    usual.size,
                    self.sent_bytes,
                    head.status,
                    head.outcome,
                    head.error,
                )
            )
        return True

    def learn(self, data: bytes) -> None:
        """What came may come again."""
        if self._head is not None and self.is_over:
            self.request.shape = UsualAnswer.of(data)

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
            if (
                head.length > self.connection.body_bytes_max
                and self._sink is None
                and not self.request.bodiless
            ):
                self._too_large(now)
            return
        self._interim += 1
        if self._interim > _INTERIM_MAX:
            text = f"keeps sending {head.status} and no final response"
            self.give_up(frames.ENHANCE_YOUR_CALM, Outcome.PROTOCOL, text, now)

    def _too_large(self, now: float) -> None:
        limit = self.connection.body_bytes_max
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
            if self._size > self.connection.body_bytes_max:
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
            self.response(
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
            self.response.failed(
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

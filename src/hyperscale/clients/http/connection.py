"""One connection: writes a request, turns what comes back into a response.

The common answer, one packet whose head was seen before and whose body has the announced length,
is recognised with one lookup and one comparison. What takes several packets, or has a body without
a length, goes through the reader. There is no timer per request: the pool's sweep looks at
`deadline`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http.head import Head
from hyperscale.clients.http.reader import ResponseReader, Sink
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.upload import Upload
from hyperscale.clients.io.channel import NOT_NOW, RECEIVE_BYTES, RECEIVE_BYTES_MAX, Channel
from hyperscale.clients.net import failures
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http.pool import HTTPPool

Waiter = asyncio.Future[HTTPResponse]
# Longer ones are not kept to be compared with: there is one for each request that is kept.
ANSWER_BYTES_MAX = 1024


class Connection(Channel):
    """`alive` says whether it may carry another request; `connect` how long opening it took.

    `connect` is taken by the first call, so a connection without it is one that was kept.
    """

    __slots__ = (
        "_drain",
        "_first_byte",
        "_is_special",
        "_moved",
        "_pool",
        "_reader",
        "_received",
        "_sink",
        "_started",
        "_uploaded",
        "_uploading",
        "alive",
        "connect",
        "idle",
        "outgoing",
        "request",
        "route",
        "sent",
        "timeout",
        "waiter",
    )

    def __init__(
        self,
        pool: HTTPPool,
        route: Route,
        idle: list[Connection],
        sock: socket.socket,
        connect: Connect,
    ) -> None:
        self._pool = pool
        self.outgoing = pool.readiness.outgoing
        self.waiter: Waiter | None = None
        self._reader: ResponseReader | None = None
        self._received = 0
        self._started = 0.0  # when the request was written
        self.sent = 0.0  # when all of it was handed over; 0: not yet
        self._moved = 0.0  # when bytes went or came last
        self.alive = True
        self._uploaded = 0  # bytes of a body that is streamed
        self._uploading: asyncio.Task[None] | None = None
        self._drain: asyncio.Future[None] | None = None
        self.connect: Connect | None = connect
        self.settle()
        self.idle = idle  # where it rests between requests
        self.route = route
        self.open(pool.readiness, sock)
        if not isinstance(sock, ssl.SSLSocket):
            self._receive_bytes = pool.receive_bytes
        pool.connections.add(self)

    def ask(self, request: Request, timeout: float, sink: Sink | None) -> Waiter:
        """Have the request written with those of others, and answered. `HTTPClient._send` has
        this written out, for calls without settings of their own."""
        self.timeout = timeout
        self._sink = sink
        self._is_special = True
        self.request = request
        self.waiter = waiter = self._pool.loop.create_future()
        self.sent = 0.0
        if not self.outgoing:
            self.readiness.transmit_soon()
        self.outgoing.append(self)
        return waiter

    def transmit(self, now: float) -> float:
        """Write the request, unless the call was given up meanwhile; the time after that."""
        if self.waiter is None:
            return now
        request = self.request
        self._started = now
        if request.needs_reader or self._is_special:
            return self._transmit_special(request, now)
        # `write`, written out for the request that goes at once
        try:
            send = self.send
            sent = send(request.wire)
        except NOT_NOW:
            sent = 0
        except OSError:
            return self._broken(now)
        now = perf_counter()
        if sent == request.size:
            self.sent = now
        else:
            self.send_later(memoryview(request.wire)[sent:])
        return now

    def _transmit_special(self, request: Request, now: float) -> float:
        if request.needs_reader or self._sink is not None or self._pool.read_timeout:
            self._reader = ResponseReader(self._pool.heads, request.bodiless, self._sink)
        try:
            self.write(request.wire)
        except OSError:
            return self._broken(now)
        now = perf_counter()
        if request.stream is not None:
            upload = self._upload(request.stream)
            self._uploading = self._pool.loop.create_task(upload, context=request.stream.context)
        self.drained(now)
        return now

    def _broken(self, now: float) -> float:
        """Nothing of the request could be sent."""
        self.fail(Outcome.RESET, f"{self.route.where} closed the connection", now)
        return now

    async def _upload(self, upload: Upload) -> None:
        """Write a body behind the head of the request, as fast as the author's code gives it and
        the peer takes it."""
        try:
            async with aclosing(upload()) as pieces:
                await self._room()
                async for piece in pieces:
                    try:
                        self.write(piece)
                    except OSError:
                        return  # what it has answered, or that it has not, is read
                    self._uploaded += len(piece)
                    self._moved = perf_counter()
                    await self._room()
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            self._raise(error)
            return
        self._uploading = None
        self.drained(perf_counter())

    def _raise(self, error: Exception) -> None:
        """What the author's own code raised comes out of the call, which ends the connection."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(error)

    async def _room(self) -> None:
        """Until the socket has taken all that was given to it, or is closed."""
        while self.alive and self.unsent is not None:
            self._drain = self._pool.loop.create_future()
            await self._drain

    def drained(self, now: float) -> None:
        self._moved = now
        if self.unsent is None and self._uploading is None:
            self.sent = now
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)

    def _stop_upload(self) -> None:
        self._uploaded = 0
        if self._uploading is not None:
            self._uploading.cancel()
            self._uploading = None

    @property
    def _is_written(self) -> bool:
        """The request, or the beginning of it."""
        return self.sent > 0.0 or self.unsent is not None or self._uploading is not None

    def deadline(self, now: float) -> float:
        """When the call has to end; before its request is written, the earliest that can be."""
        if not self._is_written:
            return now + self.timeout
        limit = self._started + self.timeout
        return (
            min(limit, self._moved + self._pool.read_timeout) if self._pool.read_timeout else limit
        )

    def readable(self) -> None:
        """As any channel's, written out for the answer that most calls get."""
        if self._reader is not None:
            self._read_in_place(self._reader)
            return
        try:
            receive = self._receive
            data = receive(self._receive_bytes)
        except OSError as error:
            self.unreadable(error)
            return
        now = perf_counter()
        waiter = self.waiter
        if waiter is not None and self.sent:
            request = self.request
            head, answer = request.usual, request.answer
            if data == answer:
                data = answer  # one copy for all who hold it
            elif head is None or len(data) != head.whole or not data.startswith(head.start):
                head = self._recognise(request, data)
            if head is not None:
                self.waiter = None
                if not head.keep_alive:
                    self._retire()
                response = HTTPResponse(
                    request,
                    head,
                    data,
                    head.body_at,
                    self._started,
                    self.sent,
                    now,
                    now,
                    head.whole,
                    request.size,
                    head.status,
                    head.outcome,
                    head.error,
                )
                try:  # noqa: SIM105 - each answer would pay for a with block
                    waiter.set_result(response)
                except asyncio.InvalidStateError:
                    pass  # given up in this turn of the loop
                return
        if data:
            self.received(data, now)
            if len(data) == self._receive_bytes:
                self._read_on()
        else:
            self.ended(None)

    def _read_in_place(self, reader: ResponseReader) -> None:
        """More of an answer: where its body is to be, when that is known."""
        room = reader.room()
        if room is None:
            Channel.readable(self)
            return
        try:
            count = self.receive_into(room)
        except OSError as error:
            self.unreadable(error)
            return
        self._moved = now = perf_counter()
        if not count:
            self.ended(None)
            return
        self._received += count
        reader.filled(count)
        if reader.done:
            reader.extra = self.has_more
            self._finish(reader, now)

    def _recognise(self, request: Request, data: bytes) -> Head | None:
        """The head of an answer that is one packet, when it was seen before."""
        end = data.find(b"\r\n\r\n")
        head = self._pool.heads.get(data[:end])
        if head is None or len(data) != head.whole:
            return None
        request.usual = head
        request.answer = data if len(data) <= ANSWER_BYTES_MAX else None
        return head

    def received(self, data: bytes, now: float) -> None:
        waiter = self.waiter
        if waiter is None or not self.written:  # nobody asked for this
            if waiter is not None:
                self.fail(Outcome.RESET, f"{self.route.where} spoke before it was asked", now)
            self.abort()
            return
        if waiter.done():
            return  # given up in this turn of the loop; whoever made the call is about to close
        if self._reader is None:
            self._reader = ResponseReader(self._pool.heads)
        self._read(self._reader, data, now)

    def _read(self, reader: ResponseReader, data: bytes, now: float) -> None:
        if not self._received:
            self._first_byte = now
        self._received += len(data)
        try:
            reader.feed(data)
        except Exception as error:  # noqa: BLE001 - a sink of the author's may raise anything
            self._raise(error)
            return
        if reader.done:
            self._finish(reader, now)
        else:
            self._moved = now

    def _finish(self, reader: ResponseReader, now: float) -> None:
        if reader.error or reader.head is None:
            self.fail(Outcome.PROTOCOL, f"{self.route.where} {reader.error}", now)
            return
        response = HTTPResponse.answered(
            self.request,
            reader.head,
            reader.body,
            self._started,
            min(self.sent or now, self._first_byte),  # it may answer before it has read all
            self._first_byte,
            now,
            self._received,
            self.written,
        )
        response.trailers = reader.trailers
        if self._received >= self._receive_bytes:
            self._expect(self._received)
        if self.sent == 0.0 or not reader.reusable:
            self._retire()
        self._resolve(response)

    def _expect(self, size: int) -> None:
        """As much as came before may come again: it is then received at once, but with TLS."""
        if not isinstance(self._socket, ssl.SSLSocket):
            self._receive_bytes = min(size + 1, RECEIVE_BYTES_MAX)
            self._pool.receive_bytes = min(self._receive_bytes, RECEIVE_BYTES)

    @property
    def written(self) -> int:
        """How many bytes of the request were handed to the operating system."""
        if not self._is_written:
            return 0
        unsent = len(self.unsent) if self.unsent is not None else 0
        return len(self.request.wire) + self._uploaded - unsent

    def settle(self) -> None:
        """Back to what calls without settings of their own want."""
        pool = self._pool
        self.timeout = pool.timeout
        self._sink = pool.sink
        self._is_special = self._pool.read_timeout > 0.0 or self._sink is not None

    def _resolve(self, response: HTTPResponse) -> None:
        waiter, self.waiter = self.waiter, None
        self._reader = None
        self._received = 0
        self._stop_upload()
        if self.sent == 0.0 and response.bytes_out:
            self.sent = response.ended  # a call that is given up in this turn asks whether it was
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    def ended(self, error: OSError | None) -> None:
        if self.waiter is not None:
            self._cut_short(error)
        self.close()

    def _cut_short(self, error: OSError | None) -> None:
        """The server is gone; a body without a length ends here, everything else is cut short."""
        now = perf_counter()
        where = self.route.where
        reader = self._reader
        if isinstance(error, ssl.SSLError):
            failure = failures.of_tls(error, where)
            self.fail(failure.outcome, failure.error, now)
        elif error is not None:
            self.fail(Outcome.RESET, f"{where} reset the connection", now)
        elif reader is None or not self._received:
            self.fail(Outcome.RESET, f"{where} closed the connection without answering", now)
        else:
            reader.end()
            if reader.error:
                self.fail(Outcome.RESET, f"{where} {reader.error}", now)
            else:
                self._finish(reader, now)

    def expire(self, now: float) -> None:
        if self.waiter is None or now < self.deadline(now):
            return
        self.readable()  # its answer may be here and only we are late
        if self.waiter is None:
            return
        where = self.route.where
        allowed = self.timeout
        seconds = f"{allowed:.2g} s" if allowed < 10 else f"{allowed:.0f} s"
        if now < self._started + allowed:
            text = f"{where} was silent for {self._pool.read_timeout:g} s (read_timeout)"
        elif self._received:
            text = f"the response of {where} was not complete after {seconds}"
        elif self.unsent is not None:
            text = f"{where} had not taken the whole request after {seconds}"
        else:
            text = f"no response from {where} within {seconds}"
        self.fail(Outcome.TIMEOUT, text, now)

    def cancel(self) -> None:
        failure = failures.cancelled()
        self.fail(failure.outcome, failure.error, perf_counter())

    def fail(self, outcome: Outcome, error: str, now: float) -> None:
        if self.waiter is not None:
            self._resolve(
                HTTPResponse.failed(
                    self.request,
                    outcome,
                    error,
                    self._started if self._is_written else now,
                    now,
                    self._received,
                    self.written,
                )
            )
        self.abort()

    @property
    def busy(self) -> bool:
        return self.waiter is not None

    @property
    def sent_at(self) -> float | None:
        """When the last request was written; None when it was not yet."""
        return self._started if self._is_written else None

    def close(self) -> None:
        if self.alive:
            self.alive = False
            self.shut()
            self._stop_upload()
            if self in self.idle:
                self.idle.remove(self)
            self._pool.forget(self)

    def _retire(self) -> None:
        """Close it behind its last answer; its TLS session can be continued."""
        self._pool.keep_session(self)
        self.close()

    def abort(self) -> None:
        """Drop it at once, with whatever is half sent or half read."""
        self.waiter = None
        self.close()

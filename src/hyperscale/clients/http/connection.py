"""One connection: writes a request, turns what comes back into a response.

The common answer, one packet whose head was seen before and whose body has the announced length,
is recognised with one lookup and one comparison. What takes several packets, or has a body without
a length, goes through the reader. There is no timer per request: the pool's sweep looks at
`deadline`.
"""

from __future__ import annotations

import asyncio
import ssl
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http import failures
from hyperscale.clients.http.head import BadHead, Head
from hyperscale.clients.http.reader import MAX_HEAD_BYTES, ResponseReader
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http.pool import HTTPPool

Waiter = asyncio.Future[HTTPResponse]


class Connection(asyncio.Protocol):
    """`alive` says whether it may carry another request; `connect` how long opening it took.

    `connect` is taken by the first call, so a connection without it is one that was kept.
    """

    __slots__ = (
        "_create_waiter",
        "_first_byte",
        "_heads",
        "_known",
        "_limit",
        "_outgoing",
        "_pool",
        "_reader",
        "_received",
        "_request",
        "_sent",
        "_silence",
        "_spoken_early",
        "_started",
        "_transport",
        "_waiter",
        "_write",
        "alive",
        "connect",
        "deadline",
        "idle",
        "route",
    )

    def __init__(self, pool: HTTPPool, route: Route, idle: list[Connection]) -> None:
        self._pool = pool
        self._heads = pool.heads
        self._outgoing = pool.outgoing
        self._known = pool.heads.get
        self._silence = pool.read_timeout
        self._create_waiter = pool.loop.create_future
        self._waiter: Waiter | None = None
        self._reader: ResponseReader | None = None
        self._received = 0
        self._sent = 0.0
        self._spoken_early = False
        self._transport: asyncio.Transport | None = None
        self.alive = False
        self.connect: Connect | None = None
        self.deadline = 0.0
        self.idle = idle  # where it rests between requests
        self.route = route

    def attach(self, transport: asyncio.Transport, connect: Connect) -> None:
        """It is open. Raises Failure when the server ended it, or spoke, before it was asked."""
        self._transport = transport
        self._write = transport.write
        self.connect = connect
        if self._spoken_early:
            transport.abort()
            text = f"{self.route.where} spoke before it was asked, as HTTP servers do not"
            raise failures.Failure(Outcome.PROTOCOL, text)
        if transport.is_closing():
            text = f"{self.route.where} closed the connection as soon as it was open"
            raise failures.Failure(Outcome.RESET, text)
        self.alive = True
        self._pool.connections.add(self)

    def send(self, request: Request, timeout: float) -> Waiter:
        self._request = request
        create_waiter = self._create_waiter  # a slot is called quicker by a local name
        self._waiter = waiter = create_waiter()
        if request.needs_reader:
            self._reader = ResponseReader(self._heads, request.bodiless)
        self._started = now = perf_counter()
        self._sent = 0.0
        self.deadline = now + timeout
        if self._silence:
            self._limit = self.deadline
            self.deadline = min(self._limit, now + self._silence)
        outgoing = self._outgoing
        if not outgoing:
            self._pool.transmit_soon()
        outgoing.append(self)
        return waiter

    def transmit(self) -> None:
        """Write the request, unless the call was given up meanwhile."""
        if self._waiter is None:
            return
        self._started = now = perf_counter()
        try:
            write = self._write
            write(self._request.wire)
            self._sent = perf_counter()
        except RuntimeError:  # uvloop: the socket is closed, and nobody was told yet
            self.fail(Outcome.RESET, f"{self.route.where} closed the connection", now)

    def data_received(self, data: bytes) -> None:
        now = perf_counter()
        waiter = self._waiter
        if waiter is None or not self._sent:  # nobody asked for this
            if waiter is not None:
                self.fail(Outcome.RESET, f"{self.route.where} spoke before it was asked", now)
            self._spoken_early = True
            self.abort()
            return
        if self._reader is None:
            end = data.find(b"\r\n\r\n")
            known = self._known
            head = (known(data[:end]) or self._parse(data[:end])) if end > 0 else None
            if head is not None and len(data) - end == head.whole:
                self._waiter = None
                if not head.keep_alive:
                    self.close()
                if not waiter.done():
                    body = data[end + 4 :]
                    started, sent = self._started, self._sent
                    waiter.set_result(
                        HTTPResponse(self._request, head, body, started, sent, now, now, len(data))
                    )
                return
            self._reader = ResponseReader(self._heads)
        self._read(self._reader, data, now)

    def _parse(self, data: bytes) -> Head | None:
        """A head not seen before; the reader will say what is wrong with a bad one."""
        try:
            return self._heads.parse(data) if len(data) <= MAX_HEAD_BYTES else None
        except BadHead:
            return None

    def _read(self, reader: ResponseReader, data: bytes, now: float) -> None:
        if not self._received:
            self._first_byte = now
        self._received += len(data)
        reader.feed(data)
        if reader.done:
            self._finish(reader, now)
        elif self._silence:
            self.deadline = min(self._limit, now + self._silence)

    def _finish(self, reader: ResponseReader, now: float) -> None:
        if reader.error or reader.head is None:
            self.fail(Outcome.PROTOCOL, f"{self.route.where} {reader.error}", now)
            return
        self._leave(reader.reusable)
        response = HTTPResponse(
            self._request,
            reader.head,
            reader.body,
            self._started,
            self._sent,
            self._first_byte,
            now,
            self._received,
        )
        self._resolve(response)

    def _leave(self, reusable: bool) -> None:
        """After a response: stay open for the next request, or go."""
        unsent = self._transport is not None and self._transport.get_write_buffer_size()
        if not reusable or unsent:
            self.close()

    def _resolve(self, response: HTTPResponse) -> None:
        waiter, self._waiter = self._waiter, None
        self._reader = None
        self._received = 0
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    def eof_received(self) -> None:
        if self._waiter is not None:
            self._ended(None)
        self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.alive = False
        if self._waiter is not None:
            self._ended(error)
        if self in self.idle:
            self.idle.remove(self)
        self._pool.forget(self)

    def _ended(self, error: Exception | None) -> None:
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
        if self._waiter is None or now < self.deadline:
            return
        where = self.route.where
        allowed = self.deadline - self._started
        seconds = f"{allowed:.2g} s" if allowed < 10 else f"{allowed:.0f} s"
        if self._silence and now < self._limit:
            text = f"{where} was silent for {self._silence:g} s (read_timeout)"
        elif self._received:
            text = f"the response of {where} was not complete after {seconds}"
        else:
            text = f"no response from {where} within {seconds}"
        self.fail(Outcome.TIMEOUT, text, now)

    def cancel(self) -> None:
        failure = failures.cancelled()
        self.fail(failure.outcome, failure.error, perf_counter())

    def fail(self, outcome: Outcome, error: str, now: float) -> None:
        if self._waiter is not None:
            sent = self._request.size if self._sent else 0
            self._resolve(
                HTTPResponse.failed(
                    self._request, outcome, error, self._started, now, self._received, sent
                )
            )
        self.abort()

    @property
    def busy(self) -> bool:
        return self._waiter is not None

    @property
    def sent_at(self) -> float | None:
        """When the last request was written; None when it was not yet."""
        return self._started if self._sent else None

    def close(self) -> None:
        self.alive = False
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop it at once, with whatever is half sent or half read."""
        self.alive = False
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

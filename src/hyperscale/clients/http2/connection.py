"""A connection that carries many calls, each as a stream.

What the calls of one turn of the event loop send is written together (docs/decisions/0014), and so
is what the protocol itself has to say: acknowledgements, windows, resets.
"""

from __future__ import annotations

import socket
import ssl
from time import perf_counter
from typing import TYPE_CHECKING, cast

from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.http2.carrying import Carrying
from hyperscale.clients.io.channel import NOT_NOW, Channel
from hyperscale.clients.net import failures
from hyperscale.http2.session import Session
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.held import Held
    from hyperscale.clients.http2.pool import StreamPool


class Connection(Carrying, Channel):
    """Over TCP, plain or with TLS."""

    __slots__ = (
        "_backlog",
        "_heard",
        "_is_outgoing",
        "_pending",
        "alive",
        "body_bytes_max",
        "calls",
        "connect",
        "held",
        "http",
        "loop",
        "outgoing",
        "pool",
        "route",
    )

    def __init__(
        self, pool: StreamPool, route: Route, held: Held, sock: socket.socket, connect: Connect
    ) -> None:
        self.pool = pool
        self.route = route
        self.held = held
        self.loop = pool.loop
        self.body_bytes_max = pool.heads.max_body_bytes
        self.http = Session(pool.tables)
        self.calls: set[StreamCall] = set()
        self.connect: Connect | None = connect  # until the first call takes it
        self.alive = True
        self._heard = 0.0  # when something came last
        self._pending: list[StreamCall] = []  # to be written with this turn
        self._is_outgoing = False
        self._backlog: list[bytes] = []  # behind what the socket did not take yet
        self.outgoing = pool.readiness.outgoing
        self.open(pool.readiness, sock)
        pool.connections.add(self)
        held.connections.append(self)

    # -- writing -----------------------------------------------------------------------------------

    def submit(self, call: StreamCall) -> None:
        self.calls.add(call)
        self._pending.append(call)
        if not self._is_outgoing:
            # `flush_soon`, written out
            self._is_outgoing = True
            outgoing = self.outgoing
            if not outgoing:
                self.readiness.transmit_soon()
            outgoing.append(self)

    def flush_soon(self) -> None:
        """With what others write in this turn."""
        if not self._is_outgoing and self.alive:
            self._is_outgoing = True
            if not self.outgoing:
                self.readiness.transmit_soon()
            self.outgoing.append(self)

    def transmit(self, now: float) -> float:
        self._is_outgoing = False
        if not self.alive:
            return now
        pending, self._pending = self._pending, []
        for call in pending:
            if not call.is_over:
                call.begin(now)
        out = self.http.out
        if len(out) == 1 and self.unsent is None:
            # `flush`, written out for what goes at once
            data = out.pop()
            try:
                send = self.send
                sent = send(data)
            except NOT_NOW:
                sent = 0
            except OSError:
                self._end(Outcome.RESET, "closed the connection", now)
                return now
            if sent != len(data):
                self.send_later(memoryview(data)[sent:])
        else:
            self.flush(now)
        now = perf_counter()
        if self.unsent is None:
            for call in pending:
                if not call.is_sending:
                    call.sent = now
        return now

    def flush(self, now: float) -> None:
        out = self.http.out
        if not out or not self.alive:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        if self.unsent is not None:
            self._backlog.append(data)
            return
        try:
            self.write(data)
        except OSError:
            self._end(Outcome.RESET, "closed the connection", now)

    def drained(self, now: float) -> None:
        if self.unsent is None and self._backlog:
            data = b"".join(self._backlog)
            self._backlog.clear()
            try:
                self.write(data)
            except OSError:
                self._end(Outcome.RESET, "closed the connection", now)
                return
        if self.unsent is None:
            for call in list(self.calls):
                if call.started and call.outbox is None:
                    call.on_room(now)

    # -- reading -----------------------------------------------------------------------------------

    def received(self, data: bytes, now: float) -> None:
        http = self.http
        if http.is_greeted:
            self._heard = now
            first = cast(StreamCall | None, http.stream_of(data))
            if first is not None and first.recognise(data, now):
                if http.out:
                    self.flush(now)
                return
            http.receive(data, now)
            if first is not None:
                first.learn(data)
        else:
            wrong = "" if self._heard else _not_http2(data)
            if wrong:
                self._end(Outcome.PROTOCOL, wrong, now)
                return
            self._heard = now
            http.receive(data, now)
            if http.is_greeted:
                self.held.wake_all()
        if http.out:
            self.flush(now)
        if http.fault:
            self._end(Outcome.PROTOCOL, http.fault, now)
        elif http.is_closing and not self.calls:
            self.close()

    def ended(self, error: OSError | None) -> None:
        now = perf_counter()
        if isinstance(error, ssl.SSLError):
            failure = failures.of_tls(error, self.route.where)
            self._fail_all(failure.outcome, failure.error, now)
            self.close()
            return
        what = "reset the connection" if error else "closed the connection"
        if not self._heard and not error:
            what += " without a word; it may not speak HTTP/2"
        self._end(Outcome.RESET, what, now)

    def _end(self, outcome: Outcome, what: str, now: float) -> None:
        self.alive = False  # nothing more is written by those who hear of it
        self._fail_all(outcome, f"{self.route.where} {what}", now)
        self.close()

    # -- what the pool asks ------------------------------------------------------------------------

    def expire(self, now: float) -> None:
        late = [call for call in self.calls if now >= call.deadline(now)]
        if not late:
            return
        self.readable()  # the answer may be here and only we are late
        is_dead = True
        for call in late:
            if not call.is_over:
                is_dead = is_dead and self._heard < call.started
                call.expire(now)
        self.flush(now)
        if is_dead:  # it has said nothing to anybody: the next call had better try another one
            self._end(Outcome.RESET, "was silent and its connection was given up", now)

    def close(self) -> None:
        if self._fd < 0:
            return
        if self.alive and self.unsent is None and self.http.is_greeted:
            self.http.close()
            self.flush(perf_counter())
        self.alive = False
        self.shut()
        self._gone()


def _not_http2(data: bytes) -> str:
    """What a server begins with that does not speak it; its first frame has to be SETTINGS."""
    if data[:5] == b"HTTP/":
        return "answered in HTTP/1.1, not in HTTP/2"
    if data[:2] == b"\x15\x03":
        return "answered with a TLS alert; did you mean https://?"
    if data[3:4] not in (b"", b"\x04"):
        return f"sent something that is not HTTP/2: {data[:40]!r}"
    return ""

"""A connection that carries many calls, each as a stream.

What the calls of one turn of the event loop send is written together (docs/decisions/0014), and so
is what the protocol itself has to say: acknowledgements, windows, resets.
"""

from __future__ import annotations

import socket
import ssl
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.io.channel import Channel
from hyperscale.clients.net import failures
from hyperscale.http2.session import Session
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.held import Held
    from hyperscale.clients.http2.pool import StreamPool


class Connection(Channel):
    """`alive`: it may carry more calls, as far as is known; `calls` are those under way."""

    __slots__ = (
        "_backlog",
        "_heard",
        "_is_outgoing",
        "_pending",
        "alive",
        "calls",
        "connect",
        "held",
        "http",
        "loop",
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
        self.http = Session(pool.tables)
        self.calls: set[StreamCall] = set()
        self.connect: Connect | None = connect  # until the first call takes it
        self.alive = True
        self._heard = 0.0  # when something came last
        self._pending: list[StreamCall] = []  # to be written with this turn
        self._is_outgoing = False
        self._backlog: list[bytes] = []  # behind what the socket did not take yet
        self.open(pool.readiness, sock)
        pool.connections.add(self)
        held.connections.append(self)

    @property
    def has_room(self) -> bool:
        """For one more call."""
        http = self.http
        return self.alive and not http.is_closing and len(self.calls) < http.streams_max

    @property
    def busy(self) -> bool:
        return bool(self.calls)

    # -- writing -----------------------------------------------------------------------------------

    def submit(self, call: StreamCall) -> None:
        self.calls.add(call)
        self._pending.append(call)
        if not self._is_outgoing:
            self.flush_soon()

    def flush_soon(self) -> None:
        """With what others write in this turn."""
        if not self._is_outgoing and self.alive:
            self._is_outgoing = True
            readiness = self.readiness
            if not readiness.outgoing:
                readiness.transmit_soon()
            readiness.outgoing.append(self)

    def transmit(self, now: float) -> float:
        self._is_outgoing = False
        pending = self._pending
        if not self.alive:
            return now
        if pending:
            self._pending = []
            for call in pending:
                if not call.is_over:
                    call.begin(now)
        self.flush(now)
        now = perf_counter()
        if self.unsent is None:
            for call in pending:
                if call.outbox is None and not call.is_sending:
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
            http.receive(data, now)
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

    def _fail_all(self, outcome: Outcome, error: str, now: float) -> None:
        for call in list(self.calls):
            call.fail(outcome, error, now)

    # -- what the pool asks ------------------------------------------------------------------------

    def done(self, call: StreamCall) -> None:
        self.calls.discard(call)
        held = self.held
        if held.waiting:
            held.wake()
        if not self.calls and (self.http.is_closing or not self.pool.keeps):
            # Behind what is read just now: the rest of it may be of use to the session.
            self.readiness.soon(self.retire)

    def retire(self) -> None:
        if not self.calls and self.alive:
            self.pool.keep_session(self)
            self.close()

    def deadline(self, now: float) -> float:
        return min((call.deadline(now) for call in self.calls), default=now + self.pool.timeout)

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

    def cancel(self) -> None:
        now = perf_counter()
        for call in list(self.calls):
            call.cancel(now)
        self.close()

    def close(self) -> None:
        if self._fd < 0:
            return
        if self.alive and self.unsent is None and self.http.is_greeted:
            self.http.close()
            self.flush(perf_counter())
        self.alive = False
        self.shut()
        for call in list(self.calls):
            call.fail(Outcome.RESET, f"the connection to {self.route.where} was closed", 0.0)
        if self in self.held.connections:
            self.held.connections.remove(self)
        self.pool.forget(self)
        self.held.wake_all()


def _not_http2(data: bytes) -> str:
    """What a server begins with that does not speak it; its first frame has to be SETTINGS."""
    if data[:5] == b"HTTP/":
        return "answered in HTTP/1.1, not in HTTP/2"
    if data[:2] == b"\x15\x03":
        return "answered with a TLS alert; did you mean https://?"
    if data[3:4] not in (b"", b"\x04"):
        return f"sent something that is not HTTP/2: {data[:40]!r}"
    return ""

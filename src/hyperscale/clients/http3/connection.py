"""A connection of HTTP/3: calls as streams of QUIC.

With early data (0-RTT) calls begin before the handshake of a resumed session is done; those that
change something wait for it, because early data may be played again by others (RFC 8470).
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, cast

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent

from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.http2.carrying import Carrying
from hyperscale.clients.http3.link import Link
from hyperscale.clients.net.failures import Failure
from hyperscale.http3.session import Session, is_early
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.held import Held
    from hyperscale.clients.http3.exchange import QuicExchange
    from hyperscale.clients.http3.pool import QuicPool


class Connection(Carrying, Link):
    __slots__ = (
        "_pending",
        "body_bytes_max",
        "calls",
        "connect",
        "held",
        "http",
        "is_early",
        "loop",
        "pool",
        "route",
        "unsent",
    )

    def __init__(
        self, pool: QuicPool, route: Route, sock: socket.socket, quic: QuicConnection
    ) -> None:
        trust = pool.authorities.trust(route.authority, route.host, route.server_name)
        Link.__init__(self, pool.readiness, sock, quic, trust)
        self.pool = pool
        self.route = route
        self.held = pool.nowhere
        self.loop = pool.loop
        self.body_bytes_max = pool.heads.max_body_bytes
        self.calls: set[StreamCall] = set()
        self.connect: Connect | None = None
        self.unsent = None  # the socket takes all, or QUIC sends it again
        self._pending: list[QuicExchange] = []
        self.begin()
        self.http = Session(quic, pool.blocks)
        self.is_early = is_early(quic)

    def held_by(self, held: Held, connect: Connect) -> None:
        """Now calls may find it."""
        self.held = held
        self.connect = connect
        connection = cast(Any, self)  # to the pool as one of HTTP/2
        self.pool.connections.add(connection)
        held.connections.append(connection)

    @property
    def session(self) -> Any:
        """Tickets are kept when they come."""
        return None

    # -- writing -----------------------------------------------------------------------------------

    def submit(self, call: QuicExchange) -> None:
        self.calls.add(call)
        self._pending.append(call)
        self.flush_soon()

    def before_writing(self, now: float) -> None:
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        for call in pending:
            if call.is_over:
                continue
            if self.is_ready or (self.is_early and call.is_safe):
                call.begin(now)
            else:
                self._pending.append(call)

    def after_writing(self, now: float) -> None:
        for call in self.calls:
            if call.started and not call.sent and not call.is_sending:
                call.sent = now
        self.http.room(now)

    # -- reading -----------------------------------------------------------------------------------

    def happened(self, event: QuicEvent, now: float) -> None:
        self.http.handle(event, now)

    def readable(self) -> None:
        super().readable()
        held = self.held
        if held.waiting and self.has_room:
            held.wake_all()  # the peer may have allowed more streams

    def ended(self, failure: Failure, now: float) -> None:
        self._fail_all(failure.outcome, failure.error, now)
        self._gone()

    # -- what the pool asks ------------------------------------------------------------------------

    def expire(self, now: float) -> None:
        late = [call for call in self.calls if now >= call.deadline(now)]
        if not late:
            return
        self.readable()  # the answer may be here and only we are late
        is_dead = True
        for call in late:
            if not call.is_over:
                is_dead = is_dead and self.heard < call.started
                call.expire(now)
        if not self.is_open:
            return
        self.flush(now)
        if is_dead:  # it has said nothing to anybody: the next call had better try another one
            text = f"{self.where} was silent and its connection was given up"
            self._fail_all(Outcome.RESET, text, now)
            self.close()

    def close(self) -> None:
        if self.is_open:
            self.http.close()
            self.shut()
            self._gone()

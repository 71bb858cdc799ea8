"""A connection of QUIC on a UDP socket of its own, driven by the readiness core.

`aioquic` says which datagrams to send and what those that come mean; this reads and writes them
with those of others (docs/decisions/0025), keeps the one timer that QUIC asks for, and says how
the connection began and ended.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from math import inf
from time import perf_counter
from typing import Any

from aioquic.quic.connection import QuicConnection, QuicConnectionState
from aioquic.quic.events import HandshakeCompleted, QuicEvent

from hyperscale.clients.contract import CLOCK_S
from hyperscale.clients.http3 import endings
from hyperscale.clients.http3.trust import Trust
from hyperscale.clients.io.readiness import Readiness
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Outcome

# Longer ones than any path carries are probes of a path; cut off they are as if lost.
DATAGRAM_BYTES = 2048
READS = 64  # in one turn
_NOT_NOW = (BlockingIOError, InterruptedError)


class Link:
    """`ready` is done when the handshake is, with the Failure when there is none."""

    __slots__ = (
        "__weakref__",
        "_address",
        "_fd",
        "_is_outgoing",
        "_late",
        "_loop",
        "_socket",
        "_timer",
        "_timer_at",
        "_trust",
        "alive",
        "heard",
        "is_ready",
        "outgoing",
        "quic",
        "readiness",
        "ready",
        "where",
    )

    def __init__(
        self, readiness: Readiness, sock: socket.socket, quic: QuicConnection, trust: Trust
    ) -> None:
        self.readiness = readiness
        self.outgoing = readiness.outgoing
        self.quic = quic
        self.where = trust.authority
        self.alive = True
        self.is_ready = False
        self.heard = 0.0  # when something came last
        self._trust = trust
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._fd = sock.fileno()
        self._address: Any = sock.getpeername()
        self._late: deque[bytes] = deque()  # what the socket did not take yet
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._is_outgoing = False
        self.ready: asyncio.Future[None] = self._loop.create_future()
        readiness.watch(self._fd, self.readable)

    def begin(self) -> None:
        self.quic.connect(self._address, perf_counter())
        self.flush_soon()

    # -- what HTTP/3 says --------------------------------------------------------------------------

    def happened(self, event: QuicEvent, now: float) -> None:
        raise NotImplementedError

    def ended(self, failure: Failure, now: float) -> None:
        """The connection is over, and closed already."""
        raise NotImplementedError

    def before_writing(self, now: float) -> None:
        """Say what is to be written in this turn."""

    def after_writing(self, now: float) -> None:
        """It was written, as far as QUIC allows."""

    # -- reading -----------------------------------------------------------------------------------

    def readable(self) -> None:
        now = perf_counter()
        receive, quic, address = self._socket.recv, self.quic, self._address
        for _ in range(READS):
            try:
                data = receive(DATAGRAM_BYTES)
            except _NOT_NOW:
                break
            except OSError as error:  # of an earlier datagram: nobody listens there
                self._broke(error, now)
                return
            self.heard = now
            quic.receive_datagram(data, address, now)
        self._look(now)

    def _look(self, now: float) -> None:
        """At what QUIC has to tell."""
        quic = self.quic
        event = quic.next_event()
        while event is not None and self._fd >= 0:
            if isinstance(event, HandshakeCompleted):
                self._greeted(event, now)
            else:
                self.happened(event, now)
            event = quic.next_event()
        if self._fd < 0:
            return
        ending = quic._close_event
        if ending is not None:
            by_peer = quic._state is QuicConnectionState.DRAINING
            self._end(endings.failure_of(ending, self.where, by_peer, self.is_ready), now)
            return
        self.flush_soon()

    def _greeted(self, event: HandshakeCompleted, now: float) -> None:
        tls = self.quic.tls
        try:
            self._trust.check(tls._peer_certificate, tls._peer_certificate_chain)
        except Failure as failure:
            self._end(failure, now)
            return
        if event.alpn_protocol != "h3":
            text = f"{self.where} does not speak HTTP/3 (it did not choose h3)"
            self._end(Failure(Outcome.PROTOCOL, text), now)
            return
        self.is_ready = True
        if not self.ready.done():
            self.ready.set_result(None)

    def _broke(self, error: OSError, now: float) -> None:
        if isinstance(error, ConnectionRefusedError):
            if self.is_ready:
                self._end(Failure(Outcome.RESET, f"{self.where} is not there any more (UDP)"), now)
            else:
                self._end(Failure(Outcome.REFUSED, f"nobody listens at {self.where} (UDP)"), now)
        else:
            self._end(failures.of_connecting(error, self.where), now)

    def _end(self, failure: Failure, now: float) -> None:
        self.shut()
        if not self.ready.done():
            self.ready.set_exception(failure)
            self.ready.exception()  # perhaps nobody waits for it
        self.ended(failure, now)

    # -- writing -----------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """With what others write in this turn."""
        if not self._is_outgoing and self._fd >= 0:
            self._is_outgoing = True
            if not self.outgoing:
                self.readiness.transmit_soon()
            self.outgoing.append(self)

    def transmit(self, now: float) -> float:
        self._is_outgoing = False
        if self._fd < 0:
            return now
        self.before_writing(now)
        self.flush(now)
        if self._fd < 0:
            return now
        now = perf_counter()
        self.after_writing(now)
        return now

    def flush(self, now: float) -> None:
        late = self._late
        late.extend([data for data, _ in self.quic.datagrams_to_send(now)])
        try:
            while late:
                self._socket.send(late[0])
                late.popleft()
        except _NOT_NOW:
            self.readiness.watch_writes(self._fd, self._writable)
        except OSError as error:
            self._broke(error, now)
            return
        self._arm()

    def _writable(self) -> None:
        self.readiness.unwatch_writes(self._fd)
        self.flush_soon()

    # -- the timer of QUIC -------------------------------------------------------------------------

    def _arm(self) -> None:
        """One that is set too early finds that out when it is due."""
        at = self.quic.get_timer()
        if at is None or at >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(0.0, at - perf_counter()), self._due)

    def _due(self) -> None:
        self._timer, self._timer_at = None, inf
        now = perf_counter() + CLOCK_S
        at = self.quic.get_timer()
        if at is None or at > now:
            self._arm()
            return
        self.quic.handle_timer(now)
        self._look(now)

    # -- ending ------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def shut(self) -> None:
        """Say goodbye, once: whether it arrives nobody waits to hear."""
        if self._fd < 0:
            return
        self.alive = False
        self.quic.close()
        try:
            for data, _ in self.quic.datagrams_to_send(perf_counter()):
                self._socket.send(data)
        except OSError:
            pass  # it is gone, or will find out by itself
        self.readiness.forget(self._fd)
        self._fd = -1
        self._socket.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

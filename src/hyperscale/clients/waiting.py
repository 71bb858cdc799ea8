"""A connection that calls wait on, several at a time, until something has come or it has ended."""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter

from hyperscale.clients.contract import Call
from hyperscale.clients.io.channel import Channel
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.results import Outcome


class WaitingChannel(Channel):
    """`end` says why nothing more will come."""

    __slots__ = ("_loop", "_posted", "_waiters", "end", "where")

    def begin(self, network: Network, where: str, sock: socket.socket) -> None:
        self.where = where
        self.end: Failure | None = None
        self._loop = network.loop
        self._waiters: list[asyncio.Future[None]] = []
        self._posted: list[tuple[Call, bytes]] = []
        self.open(network.readiness, sock)

    @property
    def has_answer(self) -> bool:
        """Something came that nobody has received."""
        return False

    def ended(self, error: OSError | None) -> None:
        self.over(Outcome.RESET, "reset the connection" if error else "closed the connection")

    def drained(self, now: float) -> None:
        self.wake()

    def over(self, outcome: Outcome, what: str) -> None:
        self.end = self.end or Failure(outcome, f"{self.where} {what}")
        self.shut()
        self.wake()

    def wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def change(self) -> None:
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    async def put(self, call: Call, data: bytes) -> None:
        """Write it now, until the operating system has all of it."""
        while self.unsent is not None:  # of another call
            await self.change()
        try:
            self.write(data)
        except OSError as error:
            raise self.end or self._broken() from error
        while self.unsent is not None:
            await self.change()
        if self.end is not None and not self.has_answer:
            raise self.end
        call.wrote(len(data))

    def post(self, call: Call, data: bytes) -> None:
        """Write it together with what other users send in this turn of the loop."""
        if not self._posted:
            outgoing = self.readiness.outgoing
            if not outgoing:
                self.readiness.transmit_soon()
            outgoing.append(self)
        self._posted.append((call, data))

    def transmit(self, now: float) -> float:
        posted, self._posted = self._posted, []
        if self._fd < 0:
            return now
        data = posted[0][1] if len(posted) == 1 else b"".join([data for _, data in posted])
        try:
            if self.unsent is None:
                self.write(data)
            else:
                self.send_later(memoryview(bytes(self.unsent) + data))
        except OSError:
            self.over(Outcome.RESET, "closed the connection")
        after = perf_counter()
        for call, data in posted:
            call.started = now
            call.sent = after
            call.written += len(data)
        return after

    def _broken(self) -> Failure:
        return Failure(Outcome.RESET, f"{self.where} closed the connection")

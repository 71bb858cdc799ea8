"""A connection that calls wait on, several at a time, until something has come or it has ended."""

from __future__ import annotations

import asyncio
import socket

from hyperscale.clients.contract import Call
from hyperscale.clients.io.channel import Channel
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.results import Outcome


class WaitingChannel(Channel):
    """`end` says why nothing more will come."""

    __slots__ = ("_loop", "_waiters", "end", "where")

    def begin(self, network: Network, where: str, sock: socket.socket) -> None:
        self.where = where
        self.end: Failure | None = None
        self._loop = network.loop
        self._waiters: list[asyncio.Future[None]] = []
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

    async def transmit(self, call: Call, data: bytes) -> None:
        """Until the operating system has all of it."""
        while self.unsent is not None:  # of another call
            await self.change()
        try:
            self.write(data)
        except OSError as error:
            raise self.end or Failure(
                Outcome.RESET, f"{self.where} closed the connection"
            ) from error
        while self.unsent is not None:
            await self.change()
        if self.end is not None and not self.has_answer:
            raise self.end
        call.wrote(len(data))

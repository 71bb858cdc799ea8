"""Who gets the next connection of a shared pool: calls wait in order of arrival.

A call leaves the queue with a connection that became free, or with leave to open one (None).
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf

from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.route import Route
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Outcome


class Waiting:
    __slots__ = ("deadline", "granted", "route")

    def __init__(self, route: Route, deadline: float) -> None:
        self.route = route
        self.deadline = deadline
        self.granted: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()


class ConnectionQueue:
    """Counts connections being opened; `total` is how many are open, which the pool knows."""

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections
        self._waiting: deque[Waiting] = deque()
        self._opening = 0
        self.clients = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def _limit(self) -> int:
        return self._max_connections or self.clients

    async def turn(
        self, idle: list[Connection], route: Route, deadline: float, total: int
    ) -> Connection | None:
        if not self._waiting and total + self._opening < self._limit:
            self._opening += 1
            return None
        waiting = Waiting(route, deadline)
        self._waiting.append(waiting)
        if idle:  # all of other origins: one makes room
            idle.pop(0).close()
        try:
            return await waiting.granted
        except asyncio.CancelledError:
            self._give_back(waiting, idle)
            raise

    def _give_back(self, waiting: Waiting, idle: list[Connection]) -> None:
        """The call was cancelled; what it may have been granted goes to the next."""
        if waiting.granted.cancelled() or not waiting.granted.done():
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            return
        if waiting.granted.exception() is not None:
            return
        connection = waiting.granted.result()
        if connection is None:
            self._opening -= 1
            self._grant_next()
        elif connection.alive:
            idle.append(connection)

    def serve(self, idle: list[Connection]) -> None:
        """Connections rest while calls wait: hand them over, first come first served."""
        while self._waiting and idle:
            first = self._waiting[0]
            if first.granted.done():
                self._waiting.popleft()
                continue
            for at, connection in enumerate(idle):
                if connection.route is first.route:
                    self._waiting.popleft()
                    first.granted.set_result(idle.pop(at))
                    break
            else:
                idle.pop(0).close()  # its end gives the first call leave to open its own
                return

    def replace(self, connection: Connection) -> None:
        """Close one that was handed over: who has it opens a new one in its place."""
        self._opening += 1
        connection.close()

    def opened(self, total: int) -> None:
        """A connection that was being opened is open, and counted in `total`, or failed."""
        self._opening = max(0, self._opening - 1)
        self.closed(total)

    def closed(self, total: int) -> None:
        while self._waiting and total + self._opening < self._limit:
            self._grant_next()

    def _grant_next(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.granted.done():
                self._opening += 1
                first.granted.set_result(None)
                return

    def expire(self, now: float) -> float:
        """End calls that waited too long; when the next one will have."""
        due = inf
        for waiting in list(self._waiting):
            if waiting.granted.done():
                continue
            if waiting.deadline <= now:
                self._waiting.remove(waiting)
                text = f"no connection to {waiting.route.where} became free in the shared pool"
                waiting.granted.set_exception(Failure(Outcome.TIMEOUT, text))
            else:
                due = min(due, waiting.deadline)
        return due

    @property
    def ends_by(self) -> float:
        """When the first of those that wait must have been served; inf: nobody waits."""
        return min((one.deadline for one in self._waiting if not one.granted.done()), default=inf)

    def cancel(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.granted.done():
                waiting.granted.set_exception(failures.cancelled())


class Resting(list[Connection]):
    """Where the connections of a shared pool rest, unless a call waits for one."""

    __slots__ = ("_queue",)

    def __init__(self, queue: ConnectionQueue) -> None:
        super().__init__()
        self._queue = queue

    def append(self, connection: Connection) -> None:
        super().append(connection)
        self._queue.serve(self)

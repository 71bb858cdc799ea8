"""The connections of one virtual user, or of all of them, and the calls that wait for one."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from math import inf
from typing import TYPE_CHECKING

from hyperscale.clients.http.route import Route
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.connection import Connection


class Waiting:
    __slots__ = ("deadline", "route", "woken")

    def __init__(self, route: Route, deadline: float) -> None:
        self.route = route
        self.deadline = deadline
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Held:
    __slots__ = ("connections", "opening", "queue", "waiting")

    def __init__(self, queue: WaitingCalls) -> None:
        self.connections: list[Connection] = []
        self.opening: Counter[Route] = Counter()
        self.waiting: deque[Waiting] = deque()
        self.queue = queue

    def find(self, route: Route) -> Connection | None:
        for connection in self.connections:
            if connection.route is route and connection.has_room:
                return connection
        return None

    def count(self, route: Route) -> int:
        """Of the connections that are there to stay."""
        found = [one for one in self.connections if one.route is route]
        return sum(one.alive and not one.http.is_closing for one in found)

    def is_opening(self, route: Route) -> bool:
        """Whether there will soon be a connection, or word of how many streams one allows."""
        if self.opening[route]:
            return True
        return any(one.route is route and not one.http.is_greeted for one in self.connections)

    async def change(self, route: Route, deadline: float) -> None:
        """Until a connection may have room. Raises Failure."""
        waiting = Waiting(route, deadline)
        self.waiting.append(waiting)
        self.queue.add(waiting)
        try:
            await waiting.woken
        except asyncio.CancelledError:
            self.wake()  # the next one may have what this one does not use
            raise
        finally:
            self.queue.remove(waiting)
            if waiting in self.waiting:
                self.waiting.remove(waiting)

    def wake(self) -> None:
        """One of those that wait, because a call has ended."""
        while self.waiting:
            first = self.waiting.popleft()
            if not first.woken.done():
                first.woken.set_result(None)
                return

    def wake_all(self) -> None:
        for _ in range(len(self.waiting)):
            self.wake()


class WaitingCalls:
    """Of a pool: what its sweep looks at."""

    def __init__(self) -> None:
        self._waiting: dict[Waiting, None] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, waiting: Waiting) -> None:
        self._waiting[waiting] = None

    def remove(self, waiting: Waiting) -> None:
        self._waiting.pop(waiting, None)

    def expire(self, now: float) -> float:
        due = inf
        for waiting in list(self._waiting):
            if waiting.woken.done():
                continue
            if waiting.deadline <= now:
                text = f"{waiting.route.where} allowed no more streams, and none became free"
                waiting.woken.set_exception(Failure(Outcome.TIMEOUT, text))
            else:
                due = min(due, waiting.deadline)
        return due

    @property
    def ends_by(self) -> float:
        return min((one.deadline for one in self._waiting if not one.woken.done()), default=inf)

    def cancel(self) -> None:
        for waiting in self._waiting:
            if not waiting.woken.done():
                waiting.woken.set_exception(failures.cancelled())

    def opened(self, total: int) -> None:
        """Whoever waits is woken by the connections themselves."""

    def closed(self, total: int) -> None:
        """As `opened`."""

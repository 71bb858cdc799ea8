"""At most so many requests a second, of all users of a process together.

Requests are spaced evenly and served in the order they came. After a pause, or when the event
loop was late, up to 50 ms worth of them may start at once, so that the rate is reached.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

BURST_S = 0.05
TICK_S = 0.001  # what the timers of event loops can tell apart


class RequestLimit:
    def __init__(self, rps: float) -> None:
        self._interval_s = 1 / rps
        self._due = -math.inf  # when the next request may start
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self) -> None:
        """Return when the caller may send its request."""
        loop = asyncio.get_running_loop()
        if not self._waiting and self._take(loop.time()):
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._serve)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn and does not use it
                self._due -= self._interval_s
            raise

    def due(self, now: float) -> float:
        """When the next of those that wait has its turn, on the clock that says `now`; inf: nobody
        waits."""
        if not self._waiting:
            return math.inf
        return now + self._due - asyncio.get_running_loop().time()

    def _take(self, now: float) -> bool:
        if now < self._due:
            return False
        self._due = max(self._due, now - BURST_S) + self._interval_s
        return True

    def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and (self._waiting[0].done() or self._take(now)):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        self._timer = None
        if self._waiting:
            self._timer = loop.call_at(max(self._due, now + TICK_S), self._serve)

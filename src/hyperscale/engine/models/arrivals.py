"""Open model: iterations arrive on schedule, whatever the latency.

Each arrival takes an idle VU, or a new one while fewer than `max_vus` live. An arrival that finds
none is dropped and counted, never postponed in silence. The VU gets the intended instant, so the
time an arrival had to wait is part of its response time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from time import perf_counter

from hyperscale.engine.alarm import Alarm
from hyperscale.engine.clock import GLANCE_S
from hyperscale.engine.pace import Pace
from hyperscale.engine.vu import VirtualUser
from hyperscale.workload.load import ArrivalRate, RampingRate


class ArrivalPace(Pace[ArrivalRate | RampingRate]):
    always_asks = True

    def __post_init__(self) -> None:
        self._max_vus = self.load.max_vus
        self._idle: list[asyncio.Future[float | None]] = []
        self._unborn: deque[float] = deque()  # arrivals whose VU has not asked for its turn yet

    async def turn(self, user: VirtualUser) -> float | None:
        if await super().turn(user) is None:
            return None
        if self._unborn:
            intended: float | None = self._unborn.popleft()
        else:
            arrival = asyncio.get_running_loop().create_future()
            self._idle.append(arrival)
            intended = await arrival
        return None if intended is None else max(0.0, perf_counter() - intended)

    def scale(self, delta: int) -> None:
        self._max_vus = max(1, self._max_vus + delta)

    def stop(self) -> None:
        super().stop()
        self.recorder.dropped += len(self._unborn)  # their VUs will not ask any more
        self._unborn.clear()
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)

    async def warm_up(self, seconds: float) -> None:
        load = self.load
        rate = load.rate if isinstance(load, ArrivalRate) else load.start
        await self._make_ready()
        level = ArrivalRate(rate=rate, duration_s=seconds, max_vus=load.max_vus, phase=load.phase)
        await self._follow(level.arrivals(), seconds)

    async def drive(self) -> None:
        if not self.population.size:
            await self._make_ready()
        await self._follow(self.load.arrivals(self.clock.began_s), self.load.planned_seconds)

    async def _make_ready(self) -> None:
        """The first arrival is due at once: it must meet users that wait, not ones on their way.
        Time begins when they have started."""
        self.population.grow(self.load.vus)
        await asyncio.sleep(0)
        # Users start, leave and are stopped: looking now and then is all it takes.
        while len(self._idle) < self.population.size and not self.clock.stopped:  # noqa: ASYNC110
            await asyncio.sleep(GLANCE_S / 10)
        self.clock.restart(self.clock.began_s)

    async def _follow(self, arrivals: Iterator[float], seconds: float) -> None:
        alarm = Alarm()
        try:
            for due in arrivals:
                if due > self.clock.elapsed() and not await self.clock.reach(due, alarm.sleep):
                    return
                if self.clock.stopped:
                    return
                self._start(self.clock.instant(due))
        finally:
            alarm.close()
        await self.clock.reach(seconds)

    def _start(self, intended: float) -> None:
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(intended)
                return
        if self.population.size < self._max_vus:
            self._unborn.append(intended)
            self.population.grow(1)
        else:
            self.recorder.dropped += 1

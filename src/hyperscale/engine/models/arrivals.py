"""Open model: iterations arrive on schedule, whatever the latency.

Each arrival takes an idle VU, or a new one while fewer than `max_vus` live. An arrival that finds
none, or one whose on_start outlasts the load, is dropped and counted, never lost in silence. One
that could not begin because this process stood still was not offered at all. The VU gets the
intended instant, so the time an arrival had to wait is part of its response time.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from itertools import chain
from time import perf_counter

from hyperscale.engine.alarm import Alarm
from hyperscale.engine.clock import GLANCE_S
from hyperscale.engine.pace import STALL_S, Pace
from hyperscale.engine.vu import VirtualUser
from hyperscale.workload.load import ArrivalRate, RampingRate


class Schedule:
    """When arrivals are due, at a rate that may be changed on the way."""

    def __init__(self, load: ArrivalRate | RampingRate, from_s: float = 0.0) -> None:
        self._load = load
        self._arrivals: Iterator[float] = load.arrivals(from_s)
        self.advance()

    def advance(self) -> None:
        """To the next one; after the last one none is ever due."""
        self.due = next(self._arrivals, math.inf)

    def change_rate(self, factor: float, at_s: float) -> None:
        """From `at_s` on; what was due before and has not begun is still due when it was."""
        late = []
        while self.due < at_s:
            late.append(self.due)
            self.advance()
        self._load = self._load.at_rate(factor, at_s)
        self._arrivals = chain(late, self._load.arrivals(at_s))
        self.advance()


class ArrivalPace(Pace[ArrivalRate | RampingRate]):
    always_asks = True

    def __post_init__(self) -> None:
        self._max_vus = self.load.max_vus
        self._idle: list[asyncio.Future[float | None]] = []
        self._unborn: deque[float] = deque()  # arrivals whose VU has not asked for its turn yet
        self._factor = 1.0  # of the planned rate, as it was changed last
        self._schedule: Schedule | None = None
        self._missed = 0.0  # of the planned arrivals, since they were last told

    def begin(self) -> None:
        super().begin()
        self._schedule = None
        self._missed = 0.0

    def offered(self, idle_s: float) -> float:
        """Those whose time came, but for those that were missed. After a standstill they all come
        at once, so that time without them is no loss."""
        missed, self._missed = self._missed, 0.0
        return super().offered(0.0) - missed

    def _now_s(self) -> float:
        due_s = self.offered_s if self._schedule is None else self._schedule.due
        return max(self.offered_s, min(due_s, super()._now_s()))

    async def turn(self, user: VirtualUser) -> float | None:
        if await super().turn(user) is None:
            return None
        if self._unborn:
            intended: float | None = self._unborn.popleft()
        else:
            arrival = asyncio.get_running_loop().create_future()
            self._idle.append(arrival)
            try:
                intended = await arrival
            except asyncio.CancelledError:
                if arrival.done() and not arrival.cancelled() and arrival.result() is not None:
                    self._drop(arrival.result())  # it was given one and is cut before it began
                raise
        return None if intended is None else max(0.0, perf_counter() - intended)

    def starts_by(self, now: float) -> float:
        """The next arrival, if a VU is there to take it; after the last one the end of the plan."""
        if self._schedule is None or not (self._idle or self.population.size < self._max_vus):
            return math.inf
        return self.clock.instant(min(self._schedule.due, self.load.planned_seconds))

    def scale(self, delta: int) -> None:
        self._max_vus = max(1, self._max_vus + delta)

    def change_rate(self, factor: float) -> None:
        self._factor *= factor
        if self._schedule is not None:
            self._schedule.change_rate(factor, self.clock.elapsed())

    def stop(self) -> None:
        super().stop()
        while self._unborn:  # their VUs will not ask any more
            self._drop(self._unborn.popleft())
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)

    async def warm_up(self, seconds: float) -> None:
        load = self.load
        rate = load.rate if isinstance(load, ArrivalRate) else load.start
        await self._make_ready()
        level = ArrivalRate(rate=rate, duration_s=seconds, max_vus=load.max_vus, phase=load.phase)
        await self._follow(level, 0.0, seconds)
        self._unborn.clear()

    async def drive(self) -> None:
        if not self.population.size:
            await self._make_ready()
        await self._follow(self.load, self.clock.began_s, self.load.planned_seconds)
        await asyncio.sleep(0)  # those that were given the last arrivals begin before the end

    async def _make_ready(self) -> None:
        """The first arrival is due at once: it must meet users that wait, not ones on their way.
        Time begins when they have started."""
        self.population.grow(self.load.vus)
        await asyncio.sleep(0)
        # Users start, leave and are stopped: looking now and then is all it takes.
        while len(self._idle) < self.population.size and not self.clock.stopped:  # noqa: ASYNC110
            await asyncio.sleep(GLANCE_S / 10)
        self.clock.restart(self.clock.began_s)

    async def _follow(self, load: ArrivalRate | RampingRate, from_s: float, seconds: float) -> None:
        schedule = self._schedule = Schedule(load.at_rate(self._factor, 0.0), from_s)
        alarm = Alarm()
        try:
            while not self.clock.stopped:
                due, now = min(schedule.due, seconds), self.clock.elapsed()
                if due > now:  # not for longer than a glance: the rate may change meanwhile
                    await self.clock.reach(min(due, now + GLANCE_S), alarm.sleep)
                elif due < seconds:
                    schedule.advance()
                    self._start(self.clock.instant(due))
                else:
                    return
        finally:
            alarm.close()

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
            self._drop(intended)

    def _drop(self, intended: float) -> None:
        """For want of a user, unless it is so late that it was for want of this process."""
        if perf_counter() - intended > STALL_S:
            self._missed += 1.0 / self._factor
        else:
            self.recorder.dropped += 1

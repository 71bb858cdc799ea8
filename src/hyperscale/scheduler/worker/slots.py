"""The slots of a worker: each runs one job after the other while any waits; and how many jobs to
claim at once.

A worker claims one job per free slot, so that work spreads over the workers. Only when jobs have
proved to be very short it takes more than it can run (`Prefetch`), because each claim costs a
durable write. Then a slot whose executor has pipelines tells its own of the next few jobs. A slot
that runs out of work takes back what others were told of and have not begun, so no job waits behind
a long one while a slot is free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from hyperscale.runtime.host import Host
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.breaker import Breakers
from hyperscale.scheduler.worker.executors.executor import (
    Broken,
    Pipeline,
    Pipelined,
    Result,
    TurnedAway,
)
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.running import CANCELLED_BY_ASKING, Running, execute, tell

AHEAD_S: Final = 0.1
SHORT_S: Final = 0.02
CLAIM_MAX: Final = 500
WEIGHT: Final = 0.1
"""Of the newest job in the running mean: one long job ends the prefetch for some twenty."""


class Prefetch:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._mean_s: float | None = None

    def ran(self, seconds: float) -> None:
        known = self._mean_s
        self._mean_s = seconds if known is None else known + WEIGHT * (seconds - known)

    def wanted(self, held: int, quick: int) -> int:
        """`held` jobs run or wait for a slot here; `quick` slots are not at a slow one."""
        target = self._slots + self._ahead(quick)
        if held >= self._slots and held > target // 2:
            return 0
        return max(0, min(CLAIM_MAX, target - held))

    def _ahead(self, quick: int) -> int:
        if self._mean_s is None or self._mean_s > SHORT_S:
            return 0
        return min(CLAIM_MAX, int(quick * AHEAD_S / max(self._mean_s, 1e-6)))


UPCOMING_MAX: Final = 64
"""Enough that a process is told once of many jobs; some milliseconds of very short ones."""
REFILL_MIN: Final = 8
"""To tell a process that has work of fewer more costs more than it saves."""

Ended = Callable[[Running, Result | TurnedAway, float], None]
"""Takes a job, what became of it, and the seconds it ran. Called as soon as its slot is free."""


class _Slot:
    def __init__(self, begun_s: float) -> None:
        self.upcoming: deque[Running] = deque()
        self.pipelines: dict[str, Pipeline] = {}
        self.kind = ""
        """Of the upcoming."""
        self.begun_s = begun_s
        """When its job began."""


class Slots:
    def __init__(self, host: Host, count: int, executors: Executors, ended: Ended) -> None:
        self._host = host
        self._clock = host.clock.now
        self._count = count
        self._executors = executors
        self._breakers = Breakers()
        self._ended = ended
        self._waiting: deque[Running] = deque()
        self._working: list[_Slot] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, jobs: Iterable[Running]) -> None:
        self._waiting.extend(jobs)
        for _ in range(min(len(self._waiting), self._count - len(self._working))):
            slot = _Slot(self._clock())
            self._working.append(slot)
            task = self._host.tasks.spawn("slot of a worker", self._work(slot)).asyncio_task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def quick(self, within_s: float) -> int:
        """How many are free, or at their job for no longer than this."""
        since_s = self._clock() - within_s
        return self._count - sum(slot.begun_s < since_s for slot in self._working)

    def not_begun(self) -> list[Running]:
        """Those that wait, in order."""
        self._take_back()
        return list(self._waiting)

    def stop(self, running: Running) -> bool:
        """True: it had not begun, and will not. False: it is being stopped, and ends as such."""
        if running.task is None:
            self._take_back()
            if running in self._waiting:
                self._waiting.remove(running)
                return True
        running.stop()
        return False

    async def idle(self, timeout_s: float | None = None) -> None:
        """Until no slot works, or the time is over."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=timeout_s)

    async def _work(self, slot: _Slot) -> None:
        """A job that is stopped cancels this task and is over with that; the slot is not."""
        task = asyncio.current_task()
        assert task is not None
        try:
            while (running := self._next(slot)) is not None:
                if self._finish(slot, running):
                    continue
                running.task = task
                if running.stopped:
                    task.cancel()
                await self._run(slot, running)
                while task.cancelling():
                    task.uncancel()
        finally:
            self._working.remove(slot)  # before anything is awaited: `add` counts who works
            for pipeline in slot.pipelines.values():
                await pipeline.close()

    def _next(self, slot: _Slot) -> Running | None:
        if slot.upcoming:
            return slot.upcoming.popleft()
        if not self._waiting:
            self._take_back()
        return self._waiting.popleft() if self._waiting else None

    def _finish(self, slot: _Slot, running: Running) -> bool:
        """Whether it has run while its slot was at the one before: then it is over, in no time.
        Not when the pipeline should be told of more, or the job be stopped: `_run` does both."""
        if not running.admitted or running.stopped:
            return False
        if self._share(slot):
            return False
        result = slot.pipelines[slot.kind].answered(running.job.id)
        if result is None:
            return False
        tell(self._breakers, running, result, self._clock())
        self._ended(running, result, 0.0)
        return True

    async def _run(self, slot: _Slot, running: Running) -> None:
        kind = running.job.spec.kind
        slot.begun_s = begun_s = self._clock()
        try:
            pipeline = self._pipeline(slot, kind)
            upcoming = [] if pipeline is None else self._look_ahead(slot, kind)
            result: Result | TurnedAway = await execute(
                running, self._executors, self._breakers, self._clock, pipeline, upcoming
            )
        except asyncio.CancelledError:
            result = Broken(failure=Failure.CANCELLED, error=CANCELLED_BY_ASKING)
        finally:
            running.task = None
        self._ended(running, result, self._clock() - begun_s)

    def _pipeline(self, slot: _Slot, kind: str) -> Pipeline | None:
        if kind not in slot.pipelines:
            executor = self._executors.get(kind)
            if not isinstance(executor, Pipelined):
                return None
            slot.pipelines[kind] = executor.pipeline()
        return slot.pipelines[kind]

    def _look_ahead(self, slot: _Slot, kind: str) -> list[Running]:
        """Of those that wait, the slot's share that can follow in the same pipeline."""
        waiting, added = self._waiting, list[Running]()
        if slot.upcoming and slot.kind != kind:
            return added
        share = self._share(slot)
        while len(added) < share and waiting[0].job.spec.kind == kind:
            if not self._breakers.is_closed(waiting[0].target):
                break
            waiting[0].admitted = True
            added.append(waiting.popleft())
        slot.kind = kind
        slot.upcoming.extend(added)
        return added

    def _share(self, slot: _Slot) -> int:
        """How many more of those that wait the slot should be told of."""
        told = len(slot.upcoming)
        if told > UPCOMING_MAX // 2:
            return 0
        share = min(UPCOMING_MAX - told, len(self._waiting) // self._count)
        return share if not told or share >= REFILL_MIN else 0

    def _take_back(self) -> None:
        for slot in self._working:
            if not slot.upcoming:
                continue
            begun = slot.pipelines[slot.kind].withdraw()
            back = [running for running in slot.upcoming if running.job.id not in begun]
            slot.upcoming = deque(r for r in slot.upcoming if r.job.id in begun)
            for running in back:
                running.admitted = False
            self._waiting.extendleft(reversed(back))

"""When a virtual user may begin its next iteration.

Each load model is a `Pace`: it decides how many VUs there are and when each has its turn. A VU
asks for a turn only while `gated` is set, so that the plain closed model costs nothing per
iteration; pausing, stopping and shrinking raise the gate.
"""

from __future__ import annotations

import asyncio
import math
import random
from time import perf_counter
from typing import TYPE_CHECKING, Generic, TypeVar

from hyperscale.engine.clock import LoadClock
from hyperscale.workload.load import Load

if TYPE_CHECKING:
    from hyperscale.engine.population import Population
    from hyperscale.engine.vu import VirtualUser
    from hyperscale.metrics.recorder import WorkflowRecorder

L = TypeVar("L", bound=Load)

UNPEOPLED_S = 5.0  # a load that wants no VUs for now says so every second
# A generator that did nothing for longer than this was suspended, starved or blocked: what was due
# meanwhile was not offered. A busy machine keeps a process waiting for a tenth of it.
STALL_S = 1.0


class Pace(Generic[L]):
    """What all models share: rest between iterations, pause, stop, growing and shrinking."""

    always_asks = False
    least_vus = 0  # that scaling leaves on a core

    def __init__(
        self,
        load: L,
        clock: LoadClock,
        population: Population,
        recorder: WorkflowRecorder,
        rng: random.Random,
    ) -> None:
        self.load = load
        self.clock = clock
        self.population = population
        self.recorder = recorder
        self.leaving = 0  # VUs that are to leave at their next turn
        self.offered_s = 0.0  # load time up to which the plan was offered, where it goes by time
        self._stopped_s: float | None = None
        self._rng = rng
        self._think = load.think_time_s or (0.0, 0.0)
        self._rests = self._think[1] > 0 or load.pacing_s > 0
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._peopled = asyncio.Event()  # some VUs are wanted, whether they are there or not
        self._set_gate()
        self.__post_init__()

    def __post_init__(self) -> None:
        """Room for the model's own state."""

    async def warm_up(self, seconds: float) -> None:
        """Run at the level the load starts from."""
        self.resize(self.load.start_vus)
        await self.clock.reach(seconds)

    async def drive(self) -> None:
        """Carry out the load until its plan is done or the clock is stopped."""
        raise AssertionError("each load model drives itself")

    def begin(self) -> None:
        """Measuring begins at the clock's first reading."""
        self.offered_s = self.clock.began_s

    def offered(self, idle_s: float) -> float:
        """What of the planned load was offered since the last call. The process did nothing for
        `idle_s` of that time, which is nothing unusual unless it is long."""
        since_s, until_s = self.offered_s, self._now_s()
        self.offered_s = until_s
        due = self.load.load_until(until_s) - self.load.load_until(since_s)
        if idle_s <= STALL_S or until_s <= since_s:
            return due
        return due * max(0.0, 1.0 - idle_s / (until_s - since_s))

    def waived(self) -> float:
        """What is left of the plan when it was carried out to its end: nobody wanted it, because
        users had stopped or no data was left."""
        planned_s = self.load.planned_seconds
        if planned_s is None:
            return 0.0
        return self.load.load_until(planned_s) - self.load.load_until(self.offered_s)

    def _now_s(self) -> float:
        """Load time, not beyond the end of the load."""
        now_s = self.clock.elapsed() if self._stopped_s is None else self._stopped_s
        return max(self.offered_s, now_s)

    async def until_gone_or(self, seconds: float) -> None:
        """Wait for that much load time; less if every VU left (iterations or data used up)."""
        gone = asyncio.ensure_future(self._deserted())
        limit = asyncio.ensure_future(self.clock.reach(seconds))
        await asyncio.wait((gone, limit), return_when=asyncio.FIRST_COMPLETED)
        for waiting in (gone, limit):
            waiting.cancel()

    async def _deserted(self) -> None:
        """Without VUs because none is wanted for now, the load goes on."""
        await self.population.gone()
        while not self._peopled.is_set():
            await self._peopled.wait()
            await self.population.gone()

    async def turn(self, user: VirtualUser) -> float | None:
        """Lateness against the intended start, or None: there are no more turns for this VU."""
        if self._rests and user.iterations:
            await asyncio.sleep(self._rest_s(user.iteration_started))
        while not self._resumed.is_set():
            await self._resumed.wait()
        if self.clock.stopped:
            return None
        if self.leaving:
            self.leaving -= 1
            self._set_gate()
            return None
        return 0.0

    def _rest_s(self, iteration_started: float) -> float:
        """Think time, or what is missing to the pacing interval if that is longer."""
        until_paced = iteration_started + self.load.pacing_s - perf_counter()
        return max(self._rng.uniform(*self._think), until_paced, 0.0)

    def starts_by(self, now: float) -> float:
        """When the plan itself has the next iteration begin; inf: nothing is planned but what the
        VUs do. Without VUs there is nothing to wait for."""
        return math.inf if self.population.size else now + UNPEOPLED_S

    def pause(self) -> None:
        self.clock.pause()
        self._resumed.clear()
        self._set_gate()

    def resume(self) -> None:
        self.clock.resume()
        self._resumed.set()
        self._set_gate()

    def stop(self) -> None:
        if self._stopped_s is None:
            self._stopped_s = self.clock.elapsed()
        self.clock.stopped = True
        self._resumed.set()
        self._set_gate()

    def scale(self, delta: int) -> None:
        """Add or take away VUs while the load runs."""
        self.resize(max(self.least_vus, self.population.size - self.leaving + delta))

    def change_rate(self, factor: float) -> None:
        """So many times as many arrivals from now on; a closed model has none."""

    def resize(self, vus: int) -> None:
        if vus:
            self._peopled.set()
        else:
            self._peopled.clear()
        change = vus - (self.population.size - self.leaving)
        staying = min(self.leaving, max(change, 0))  # those asked to leave may stay after all
        self.leaving -= staying
        if change > 0:
            self.population.grow(change - staying)
        else:
            self.leaving -= change
        self._set_gate()

    def _set_gate(self) -> None:
        self.gated = (
            self.always_asks
            or self._rests
            or self.clock.stopped
            or self.leaving > 0
            or not self._resumed.is_set()
        )

"""Virtual load for simulated workers: parts that take time and yield numbers, without an engine.

A part is cut into its cores' shares as the engine does, each making iterations at a steady pace in
simulated time. What a workflow does wrong is named by its tag `mishap`, what a core of it uses of a
CPU by its tag `cpu`, in percent; everything else follows from the host's dice. Generators of a real
worker are processes of their own: they go on while it stands still, until their lease runs out, and
so does virtual load, in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal, get_args

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Action, Part
from hyperscale.engine.messages import Prepare, Stamped, Values
from hyperscale.engine.part_plan import PartPlan, slices, users_by_core
from hyperscale.engine.results import aggregate_of
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.nodes.worker.runner import LoadEnded, LoadReady, MachineUse, Progressed
from hyperscale.runtime.host import Host
from hyperscale.runtime.timed_event import TimedEvent
from hyperscale.sim.part_slice import SimSlice
from hyperscale.workload.hooks import HookType

TICK_S: Final = 0.25
PREPARE_S: Final = (0.05, 0.4)
ONCE_S: Final = (0.1, 0.8)  # a workflow that is no test
TEARDOWN_S: Final = 0.1
KILLED_S: Final = 0.01
HANGS_AFTER_S: Final = 3.0
CORE_PERCENT: Final = 4.0  # of a CPU, for one core of load

Mishap = Literal[
    "", "raises in prepare", "raises in run", "never ends", "dies", "hangs", "teardown fails"
]  # fmt: skip
LoadEvent = Literal["prepared", "began", "loaded", "over", "torn down", "closed"]
Observer = Callable[[LoadEvent, DispatchPart, int], None]
"""Sees what really happens on a runner, for checkers: `loaded` comes with a number of requests."""


def provided_by(part: Part, fence: Fence) -> bytes:
    """What a part hands on: nobody else does, so it can be found wherever it was written."""
    return f"<{part} {'.'.join(map(str, fence))}>".encode()


def core_percent(order: DispatchPart) -> float:
    return float(order.facts.tags.get("cpu", CORE_PERCENT))


class SimRunner:
    def __init__(self, host: Host, cores: int, observer: Observer | None = None) -> None:
        self._host = host
        self._cores = cores
        self._observer = observer or (lambda deed, order, amount: None)
        self._open: dict[SimPart, None] = {}

    @property
    def busy(self) -> int:
        """Running parts that were not closed."""
        return len(self._open)

    async def open(self) -> None:
        """Nothing to start."""

    def run(self, order: DispatchPart, slots: tuple[int, ...], progressed: Progressed) -> SimPart:
        assert len(slots) == order.cores <= self._cores
        running = SimPart(self._host, order, progressed, self._observer)
        running.on_closed = lambda: self._open.pop(running, None)
        running.process_percent = lambda: self._process_percent(order)
        self._open[running] = None
        return running

    def use(self) -> MachineUse:
        used = sum(
            core_percent(one.order) * (one.order.cores - one.cores_done)
            for one in self._open
            if one.loading
        )
        return MachineUse(1.0 + used / self._cores, 20.0)

    def _process_percent(self, order: DispatchPart) -> float:
        """Of its busiest process, which parts of the job may share."""
        return max(
            sum(
                core_percent(one.order)
                for one in self._open
                if one.loading and one.order.part.job_id == order.part.job_id
                if slot in one.order.slots
            )
            for slot in order.slots or (0,)
        )

    async def close(self) -> None:
        for running in list(self._open):
            await running.close()


class SimPart:
    def __init__(
        self,
        host: Host,
        order: DispatchPart,
        progressed: Progressed,
        observer: Observer,
    ) -> None:
        mishap = order.facts.tags.get("mishap", "")
        assert mishap in get_args(Mishap), mishap
        self.on_closed: Callable[[], object] = lambda: None
        self.process_percent: Callable[[], float] = lambda: core_percent(order)
        self._mishap = mishap
        self._host = host
        self.order = order
        self._progressed = progressed
        self._observer = observer
        self._steps = [s.name for s in order.facts.steps if s.hook_type is HookType.TEST]
        self._aggregate = aggregate_of(order.facts)
        self._shares = [SimSlice(made.load, made.core) for made in _prepares(order)]
        self._vus = order.facts.load.peak_vus  # of the whole workflow, as it was scaled last
        self._at_s = order.resume_at_s
        self._limit_s = self._planned_s()
        self._half_s = (order.resume_at_s + self._limit_s) / 2
        hangs_after_s = HANGS_AFTER_S if mishap == "hangs" else math.inf
        self._hangs_at_s = order.resume_at_s + hangs_after_s
        self._prepare_s = 0.0
        self._went_on_at = 0.0
        self._paused = False
        self._begins_in_s = 0.0
        self._stopping = False
        self._cancelled = False
        self._leased_until: float | None = None
        self._killed = TimedEvent()
        self._closed = False
        self._loading = False
        self.died = False  # a generator process of it

    @property
    def teardown_requests(self) -> int:
        return 0

    @property
    def test_stop(self) -> None:
        """Simulated tests run to their end."""
        return None

    @property
    def elapsed_s(self) -> float:
        return self._at_s

    @property
    def offered(self) -> float:
        """Of the planned load, whether anybody was told of it or not."""
        return self._aggregate.offered or 0.0

    @property
    def quiet_s(self) -> float:
        """It waits for its start, or warms up."""
        return max(0.0, self._went_on_at - self._host.clock.now())

    @property
    def left_s(self) -> float:
        """Of the load that is planned."""
        return self._limit_s - self._at_s

    @property
    def cores_done(self) -> int:
        working = sum(not share.done for share in self._shares)
        return self.order.cores - working

    @property
    def loading(self) -> bool:
        """Load runs at this moment, whether anybody looks or not."""
        until = self._leased_until
        leased = until is None or self._host.clock.now() < until
        return self._loading and leased and not self._cancelled and not self._killed.is_set()

    async def prepare(self) -> LoadReady:
        clock, began_at = self._host.clock, self._host.clock.now()
        await self._wait(self._host.random.uniform(*PREPARE_S))
        if self._killed.is_set():
            raise RunFailed("its generator processes were killed while it was prepared")
        if self._mishap == "raises in prepare":
            raise BadInput(f"{self.order.facts.name} cannot be loaded", "this is a simulation")
        self._prepare_s = clock.now() - began_at
        self._observer("prepared", self.order, 0)
        wrote: Values = {}
        if self.order.run_setup and self.order.facts.sets_up:
            wrote = {"setup": self._stamped(b"written by setup")}
        return LoadReady(seconds=self._prepare_s, context=wrote)

    def start(self, context: Values, run_age_s: float = 0.0) -> None:
        load = self.order.facts.load
        before_s = max(0.0, load.start_time_s - run_age_s) + load.warmup_s
        self._loading = True
        self._observer("began", self.order, 0)
        self._went_on_at = self._host.clock.now() + (0.0 if self._at_s else before_s)

    async def ended(self) -> LoadEnded:
        outcome = await self._load()
        self._loading = False
        self._observer("over", self.order, 0)
        mark = provided_by(self.order.part, self.order.fence)
        provided = {name: self._stamped(mark) for name in self.order.facts.provides}
        self.died = outcome == "died" and not self._killed.is_set()
        died = ("generator process 1 was killed by SIGKILL",) if outcome == "died" else ()
        failed = outcome == "raised" or (bool(died) and not self.order.facts.is_test)
        early = bool(died) and not self._stopping and not self._killed.is_set()
        cut_off = early or outcome == "cut off"
        return LoadEnded(
            outcome="failed" if failed else "cut off" if cut_off else "completed",
            measured_s=self._at_s - self.order.resume_at_s,
            iterations=self._aggregate.iterations,
            peak_vus=sum(share.load.peak_vus for share in self._shares),
            prepare_s=self._prepare_s,
            state=self._aggregate.export(),
            provided={} if failed else provided,
            error="; ".join(died) or ("a step raised SimulatedError" if failed else ""),
            lost=died,
        )

    async def teardown(self) -> str:
        await self._wait(TEARDOWN_S)
        self._observer("torn down", self.order, 0)
        return "teardown() raised SimulatedError" if self._mishap == "teardown fails" else ""

    def steer(self, action: Action, amount: int = 0) -> None:
        if action == "pause":
            self._catch_up()
            self._paused, self._begins_in_s = True, self.quiet_s
        elif action == "resume":
            self._went_on_at = self._host.clock.now() + self._begins_in_s
            self._paused = False
        elif action == "scale":
            self._scale(amount)
        elif action != "rate":  # the simulated load has none
            self._stopping = True
            self._cancelled = self._cancelled or action == "cancel"

    def _scale(self, amount: int) -> None:
        self._vus = max(1, self._vus + amount)
        users = users_by_core(self.order.facts.load, self.order.total_cores, self._vus)
        for share in self._shares:
            share.vus = users[share.core]

    def lease(self, seconds: float) -> None:
        self._leased_until = self._host.clock.now() + seconds

    def kill(self) -> None:
        self._killed.set()

    def snapshot(self) -> bytes:
        return self._aggregate.export()

    async def close(self) -> None:
        self.kill()
        if not self._closed:
            self._closed = True
            self._observer("closed", self.order, 0)
            self.on_closed()

    # -- load --------------------------------------------------------------------------------

    async def _load(self) -> Literal["over", "raised", "died", "cut off"]:
        while True:
            await self._wait(TICK_S)
            if self._lease_is_over():
                return "cut off"
            if self._killed.is_set():
                return "died"
            self._catch_up()
            if self._mishap in ("raises in run", "dies") and self._at_s >= self._half_s:
                return "raised" if self._mishap == "raises in run" else "died"
            if self._mishap == "never ends":
                continue
            done = all(share.done for share in self._shares)
            if self._stopping or done or self._at_s >= self._limit_s:
                return "over"

    def _lease_is_over(self) -> bool:
        """What ran while nobody looked, ran until the lease ended."""
        until = self._leased_until
        if until is None or self._host.clock.now() < until:
            return False
        self._catch_up(until)
        return True

    def _catch_up(self, until: float | None = None) -> None:
        """Make the load of the time since the last look."""
        now = self._host.clock.now() if until is None else until
        passed_s = max(0.0, now - self._went_on_at)
        self._went_on_at = max(now, self._went_on_at)
        if self._paused or self._cancelled or not passed_s:
            return
        if self._mishap != "never ends":
            passed_s = min(passed_s, max(0.0, self._limit_s - self._at_s))
        before_s, self._at_s = self._at_s, self._at_s + passed_s
        self._aggregate.advance(self._at_s)
        cpu = min(1.0, self.process_percent() / 100)
        for share in self._shares:
            luck = self._host.random.random()
            hangs = self._at_s >= self._hangs_at_s
            made = (before_s, self._at_s, self._steps, luck, cpu)
            delta = share.hang() if hangs else share.make(*made)
            if delta is None:
                continue
            self._aggregate.apply(share.core, delta, self._at_s)
            self._observer("loaded", self.order, sum(step.count for step in delta.requests))
            self._progressed(self._at_s, share.core, delta)

    def _planned_s(self) -> float:
        facts = self.order.facts
        if not facts.is_test:
            return self._at_s + self._host.random.uniform(*ONCE_S)
        planned_s = facts.load.planned_seconds
        return self.order.limit_s or 600.0 if planned_s is None else planned_s

    async def _wait(self, seconds: float) -> None:
        """Or until it is killed; then a process needs a moment to be gone."""
        if await self._killed.wait(seconds):
            await self._host.clock.sleep(KILLED_S)

    def _stamped(self, value: bytes) -> Stamped:
        return Stamped(0, self.order.first_core, value)


def _prepares(order: DispatchPart) -> list[Prepare]:
    part_plan = PartPlan(
        source=b"",
        overrides=b"",
        total_cores=order.total_cores,
        first_core=order.first_core,
        attempt=order.fence.attempt,
        resume_at_s=order.resume_at_s,
        iterations_done=order.iterations_done,
        left_out=order.left_out,
    )
    return slices(order.facts, part_plan, order.cores)

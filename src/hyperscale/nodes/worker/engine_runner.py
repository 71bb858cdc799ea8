"""The real runner: warm generator processes of the engine, one per core, each for one job only.

Processes are started ahead of need and replaced when the last part on them is over, so that a
dispatch meets a warm interpreter and no author's code ever shares a process with another job's.
They die with this process, however it ends, and see nothing of the cluster (`sandbox`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from hyperscale.cluster.jobs.records import Action
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.messages import Values
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.protocol.parts import DispatchPart, TestStop
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.nodes.worker.runner import LoadEnded, LoadReady, MachineUse, Progressed, RunningPart
from hyperscale.runtime.cgroup import memory_share
from hyperscale.runtime.open_files import raise_open_files
from hyperscale.runtime.tasks import RealTask, RealTasks


class EngineRunner:
    def __init__(
        self,
        cores: int,
        start: Callable[[], GeneratorProcess],
        memory_mb: int = 0,
        sealing: Sealing = UNSEALED,
        worker: str = "",
        outdated: Callable[[], bool] = lambda: False,
    ) -> None:
        """`start` makes a generator process; `memory_mb` is of one of them, 0: no limit.
        `worker` is the name that failures are told with. `outdated` says whether those that wait
        in reserve should be replaced, once each time."""
        self._cores = cores
        self._start_one = start
        self._outdated = outdated
        self._memory_mb = memory_mb
        self.sealing = sealing
        self.worker = worker
        self._warm: list[GeneratorProcess] = []
        self._warming: list[GeneratorProcess] = []
        self._running: dict[EnginePart, None] = {}
        self._by_slot: dict[tuple[str, int], GeneratorProcess] = {}  # job and slot
        self._closed = False
        self.tasks = RealTasks()

    @property
    def pids(self) -> list[int]:
        """Of all generator processes, warm, getting there and in use."""
        in_use = {core for running in self._running for core in running.processes}
        return [core.pid for core in (*self._warm, *self._warming, *in_use)]

    async def open(self) -> None:
        raise_open_files()
        self.use()  # the first reading of the CPU is of no use
        await self._refill()

    def run(
        self, order: DispatchPart, slots: tuple[int, ...], progressed: Progressed
    ) -> RunningPart:
        if self._closed:
            raise RunFailed("this worker is stopping")
        order = self.sealing.open_order(order)
        if self._outdated():
            self._replace_reserve()
        places = [(order.part.job_id, slot) for slot in slots]
        missing = [p for p in places if p not in self._by_slot or self._by_slot[p].lost]
        warm = [core for core in self._warm if not core.lost]
        fresh = [*warm, *self._start(len(missing) - len(warm))]
        self._warm = warm[len(missing) :]
        self._by_slot.update(zip(missing, fresh, strict=False))
        processes = [self._by_slot[place] for place in places]
        running = EnginePart(self, order, slots, processes, self._memory_mb, progressed)
        self._running[running] = None
        return running

    def use(self) -> MachineUse:
        import psutil

        share = memory_share()
        memory = psutil.virtual_memory().percent if share is None else 100.0 * share
        return MachineUse(psutil.cpu_percent(None), memory)

    async def close(self) -> None:
        self._closed = True
        warm, self._warm, self._warming = self._warm + self._warming, [], []
        for running in self._running:
            running.kill()
        closings = (*(core.close() for core in warm), *(one.close() for one in self._running))
        ends = await asyncio.gather(*closings, return_exceptions=True)
        await self.tasks.stop()
        for end in ends:
            if end is not None:
                raise end

    def core_done(self) -> None:
        """A part needs one core less than it was given: have a process ready for the next."""
        if not self._closed:
            self.tasks.spawn("warm a generator", self._refill())

    async def give_back(self, running: EnginePart) -> None:
        """End the processes that nobody else is on, and make new ones."""
        self._running.pop(running, None)
        others = {core for one in self._running for core in one.processes}
        unused = [core for core in running.processes if core not in others]
        self._by_slot = {at: core for at, core in self._by_slot.items() if core not in unused}
        await asyncio.gather(*(core.close() for core in unused))
        await self._refill()

    async def _refill(self) -> None:
        """A process counts as warm once it can be spoken to; until then a part starts its own."""
        in_use = {core for running in self._running for core in running.busy}
        missing = self._cores - len(in_use) - len(self._warm) - len(self._warming)
        fresh = [] if self._closed else self._start(missing)
        self._warming += fresh
        for core in fresh:
            await core.open()
            if core in self._warming:
                self._warming.remove(core)
                self._warm.append(core)

    def _replace_reserve(self) -> None:
        reserve, self._warm = self._warm, []
        for core in reserve:
            core.hang_up()
            self.tasks.spawn("end a generator", core.ended())
        self.tasks.spawn("warm a generator", self._refill())

    def _start(self, count: int) -> list[GeneratorProcess]:
        """All of them or none."""
        started: list[GeneratorProcess] = []
        try:
            started.extend(self._start_one() for _ in range(count))
        except OSError:
            for core in started:
                core.hang_up()
                core.kill_and_wait()
            raise
        return started


class EnginePart:
    def __init__(
        self,
        runner: EngineRunner,
        order: DispatchPart,
        slots: tuple[int, ...],
        processes: list[GeneratorProcess],
        memory_mb: int,
        progressed: Progressed,
    ) -> None:
        self.processes = processes
        self._runner = runner
        self._resume_at_s = order.resume_at_s
        self._aggregate = aggregate_of(order.facts)
        self._closing: RealTask | None = None
        self._left = asyncio.Event()
        self.test_stop: TestStop | None = None
        self._quiet_until = 0.0
        self._unopened: RunFailed | None = None  # what setup() wrote was not for this worker
        part_plan = PartPlan(
            source=order.source,
            overrides=order.overrides,
            total_cores=order.total_cores,
            first_core=order.first_core,
            context=order.context,
            used=order.used,
            run_setup=order.run_setup,
            seed=order.seed,
            env=order.env,
            memory_mb=memory_mb,
            attempt=order.fence.attempt,
            resume_at_s=order.resume_at_s,
            iterations_done=order.iterations_done,
            left_out=order.left_out,
            secrets=list(order.secrets),
            worker=runner.worker,
            among=order.among,
        )
        self._part_run = PartRun(
            order.facts,
            self._aggregate,
            self.processes,
            part_plan,
            numbers=slots if order.slots else None,
            on_progress=progressed,
            on_done=runner.core_done,
            on_stop_test=self._ask_for_end,
            on_quiet=self._be_quiet,
        )

    def _ask_for_end(self, reason: str, failed: bool) -> None:
        """The leader decides: it concerns all parts of the job."""
        asked = self.test_stop
        if asked is None or (failed and not asked.failed):
            self.test_stop = TestStop(reason, failed)

    def _be_quiet(self, for_s: float) -> None:
        self._quiet_until = max(self._quiet_until, perf_counter() + for_s)

    @property
    def quiet_s(self) -> float:
        return max(0.0, self._quiet_until - perf_counter())

    @property
    def elapsed_s(self) -> float:
        return max(self._resume_at_s, self._aggregate.elapsed_s)

    @property
    def cores_done(self) -> int:
        return self._part_run.cores_done

    @property
    def busy(self) -> list[GeneratorProcess]:
        """Processes with load of this part to make."""
        return self._part_run.busy

    async def prepare(self) -> LoadReady:
        for core in self.processes:
            await core.open()
        wrote = await self._part_run.prepare()
        context = self._runner.sealing.seal_values(wrote)
        return LoadReady(seconds=self._part_run.prepare_s, context=context)

    def start(self, context: Values, run_age_s: float = 0.0) -> None:
        try:
            self._part_run.begin(self._runner.sealing.open_values(context), run_age_s)
        except RunFailed as error:
            self._unopened = error

    async def ended(self) -> LoadEnded:
        if self._unopened is not None:
            raise self._unopened
        part_run = self._part_run
        await part_run.over()
        failure, outcome = part_run.failure, part_run.outcome
        return LoadEnded(
            outcome=outcome,
            measured_s=max(0.0, part_run.measured_s - self._resume_at_s),
            iterations=self._aggregate.iterations,
            peak_vus=part_run.peak_vus,
            prepare_s=part_run.prepare_s,
            state=self._aggregate.export(),
            context=self._runner.sealing.seal_values(part_run.context),
            provided=self._runner.sealing.seal_values(part_run.provided),
            error="; ".join(part_run.lost) if outcome == "cut off" else self._aggregate.facts.error,
            hint="" if failure is None else failure.hint,
            bad_input=isinstance(failure, BadInput),
            warnings=tuple(part_run.warnings),
            lost=tuple(part_run.lost),
            test_stop=self.test_stop,
        )

    @property
    def teardown_requests(self) -> int:
        return self._aggregate.unmeasured.get("teardown", 0)

    async def teardown(self) -> str:
        return await self._part_run.teardown()

    def steer(self, action: Action, amount: int = 0) -> None:
        part_run = self._part_run
        if action == "pause":
            part_run.pause()
        elif action == "resume":
            part_run.resume()
        elif action == "scale":
            part_run.scale(amount)
        elif action == "rate":
            part_run.change_rate(amount / 100 / part_run.rate_factor)
        else:
            part_run.stop(now=action == "cancel")

    def lease(self, seconds: float) -> None:
        self._part_run.lease(seconds)

    def kill(self) -> None:
        self._part_run.kill()

    def snapshot(self) -> bytes:
        return self._aggregate.export()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._runner.tasks.spawn("close a part", self._close())
        # Whoever waits may be cancelled, the closing may not; then it reports for itself.
        await self._left.wait()
        await self._closing

    async def _close(self) -> None:
        try:
            await self._part_run.release()
            await self._runner.give_back(self)
        finally:
            self._left.set()

"""One workflow's share of the load on this core: prepared, run to its end, its values handed back.

Order, as the author may rely on it: code loaded, arguments resolved and encoded, Use hooks,
setup() on one core of the run, then, on every core at once, the load; Provide hooks; teardown().
Nothing before the load is part of any latency.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from hyperscale.clients import ClientPool
from hyperscale.engine.clock import LoadClock
from hyperscale.engine.generator_state import GeneratorState
from hyperscale.engine.messages import (
    Done,
    Prepare,
    Progress,
    Quiet,
    Report,
    SpanEnded,
    StopTest,
    TornDown,
    Trace,
    Values,
)
from hyperscale.engine.models import make_pace
from hyperscale.engine.pace import STALL_S, Pace
from hyperscale.engine.population import Population
from hyperscale.engine.silence import Silence
from hyperscale.engine.source import decode_overrides
from hyperscale.engine.state_hooks import StateHooks
from hyperscale.engine.steps import CompiledStep
from hyperscale.engine.trace import describe_exchange
from hyperscale.engine.tracing import Tracer
from hyperscale.engine.vu import Program, VirtualUser
from hyperscale.metrics.recorder import WorkflowRecorder
from hyperscale.workload.files import brought
from hyperscale.workload.hooks import USER_HOOKS, HookType
from hyperscale.workload.plan import WorkflowPlan, plan_named
from hyperscale.workload.replies import Reply
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.scope import CURRENT
from hyperscale.workload.step_plan import hook_plan
from hyperscale.workload.thresholds import reserved_names, splits_by_status
from hyperscale.workload.workflow import SEED, Workflow, browser_of, protocols_of

CUT_GRACE_S = 2.0  # for user code that swallows its cancellation
STALLS_MAX = 5  # that are told
_NO_ROW = object()


class SliceRun:
    def __init__(
        self, order: Prepare, send: Callable[[Report], None], process: GeneratorState
    ) -> None:
        self._order = order
        self._send = send
        self._process = process
        self._plan: WorkflowPlan
        self._pool: ClientPool
        self._hooks: StateHooks
        self._recorder: WorkflowRecorder
        self._population: Population
        self._pace: Pace[Any]
        self._silence: Silence
        self._program: Program
        self._only_user: Workflow | None = None  # the one user of a workflow that is not a test
        self._rows: Iterator[Any] | None = None
        self._errors: dict[str, str] = {}
        self._rng = random.Random()
        self._ordered_at = perf_counter()
        self.measuring = False
        self._cpu_at = 0.0  # CPU time of the process that has been told
        self._offered_at = (0.0, 0.0)  # when it was last looked at what was offered: wall, CPU
        self._due = True  # load, when it was last looked at
        self._stalls: list[str] = []
        self._measured_s: float | None = None  # the load is over
        self._stop_early = False
        self._cut_off = False
        self._fatal = ""

    @property
    def started(self) -> bool:
        return hasattr(self, "_pace")

    async def prepare(self) -> Values:
        """Everything that must not be measured; returns what setup() wrote."""
        order = self._order
        if order.seed is not None:
            self._rng.seed(order.seed + order.rank)
        classes = self._process.classes(order)
        overrides = decode_overrides(order.overrides)
        plan = self._plan = plan_named(classes, order.workflow, overrides, order.load)
        self._pool = self._make_pool(order.load.rps)
        for argument in {id(a): a for s in plan.steps for a in s.optimized.values()}.values():
            await self._pool.prepare(argument)
        kinds = {step.kind for step in plan.steps}
        await self._pool.start(kinds | ({"browser"} if browser_of(plan.workflow) else set()))
        if plan.feed is not None:
            self._rows = plan.feed.rows_for(order.core, order.cores, order.seed or 0, order.among)
            if plan.feed.per == "iteration":  # users that go on elsewhere keep their rows
                next(itertools.islice(self._rows, order.rows_used, order.rows_used), None)
        base: dict[str, Any] = {}
        self._program = self._compiled(plan, base)
        pool = self._make_pool()
        self._hooks = StateHooks(order, plan, classes, pool, self._recorder, base)
        await self._hooks.run_uses()
        return await self._hooks.run_setup()

    def _make_pool(self, rps: float = 0.0) -> ClientPool:
        pool = ClientPool(
            self._plan.http.with_files(brought),
            rps,
            protocols_of(self._plan.workflow),
            browser_of(self._plan.workflow),
        )
        if self._order.http_debug:
            pool.trace = self._trace
        if self._order.trace_share:
            pool.propagate()
        return pool

    def _trace(self, response: HTTPResponse | Reply) -> None:
        full = self._order.http_debug == "full"
        self._send(Trace(describe_exchange(response, full, CURRENT.get().name)))

    def _compiled(self, plan: WorkflowPlan, base: dict[str, Any]) -> Program:
        hooks = {name: hook_plan(name, getattr(plan, name)) for name in USER_HOOKS}
        plans = [*plan.steps, *(hook for hook in hooks.values() if hook is not None)]
        self._recorder = WorkflowRecorder(
            steps=[step.name for step in plans],
            checks=[s.name for s in plan.steps if s.hook_type is HookType.CHECK],
            metrics={s.name: s.metric_kind for s in plan.steps if s.metric_kind is not None},
            by_status=splits_by_status(plan.thresholds),
            reserved=reserved_names(plan.thresholds),
            flow="flow" if plan.flow is not None else "",
        )
        keeps = bool(plan.provides)
        steps = {
            step.name: CompiledStep(number, step, self._recorder, keeps_response=keeps)
            for number, step in enumerate(plans)
        }
        if self._order.trace_share:
            self._sample(steps.values())
        judges = [s for s in steps.values() if s.hook in (HookType.CHECK, HookType.METRIC)]
        if plan.flow is not None:
            for step in steps.values():
                step.judges = tuple(judge for judge in judges if step.name in judge.needs)
        return Program(
            recorder=self._recorder,
            steps=list(steps.values()),
            stages=tuple(
                steps[stage[0].name] if len(stage) == 1 else tuple(steps[s.name] for s in stage)
                for stage in plan.stages
            ),
            on_error=self._note_error,
            on_stop_test=self._stop_test,
            base=base,
            **{name: steps.get(name) for name in USER_HOOKS},
            last_checks=tuple(j for j in judges if not j.needs) if plan.flow else (),
            worker=self._order.worker,
        )

    def _sample(self, steps: Iterable[CompiledStep]) -> None:
        share, workflow = self._order.trace_share, self._order.workflow
        tracer = Tracer(share, workflow, lambda span: self._send(SpanEnded(span)))
        for step in steps:
            if step.hook is HookType.TEST and step.is_async:
                step.call = tracer.traced(step.name, step.call)

    def _stop_test(self, reason: str, failed: bool) -> None:
        self._send(StopTest(reason, failed))

    def _note_error(self, step: str, message: str) -> None:
        if not self._plan.is_test:
            self._errors.setdefault(step, message)

    async def run(self, setup_wrote: Values, run_age_s: float = 0.0) -> Done:
        load = self._order.load
        self._hooks.take(setup_wrote)
        clock = LoadClock()
        self._population = Population(self._make_user, self._recorder)
        self._pace = make_pace(
            load, clock, self._population, self._recorder, self._rng, self._plan.shape
        )
        self._population.pace = self._pace
        silence = self._silence = Silence(self._pace, self._pool)
        if self._stop_early or self._order.idle:
            self._pace.stop()
        self._process.join(self)
        if self._order.resume_at_s:
            self._resume(clock)
        else:
            silence.phase_ends_s = load.start_time_s - run_age_s
            await clock.reach(silence.phase_ends_s)
            clock.restart()
            if load.warmup_s:
                silence.phase_ends_s = load.warmup_s
                await self._pace.warm_up(load.warmup_s)
                clock.restart()
            silence.phase_ends_s = None
        self._recorder.discard("warmup")
        self.measuring = True
        self._cpu_at = time.process_time()
        self._offered_at = (perf_counter(), self._cpu_at)
        self._pace.begin()
        await self._pace.drive()
        to_its_end = not clock.stopped
        self._pace.stop()
        ended_at = perf_counter()
        silence.phase_ends_s = clock.elapsed() + load.graceful_stop_s + CUT_GRACE_S
        await self._population.finish(load.graceful_stop_s, CUT_GRACE_S)
        await self._pool.finish(load.graceful_stop_s - (perf_counter() - ended_at))
        self._note_cpu()
        self._note_offered()
        if to_its_end:
            self._recorder.offered += self._pace.waived()
        self._measured_s = clock.elapsed()
        self._process.leave(self)
        self._report_progress()
        return await self._done(self._measured_s)

    def _resume(self, clock: LoadClock) -> None:
        """Go on where the load is by now: getting ready took time, which has passed too."""
        at_s = self._order.resume_at_s + perf_counter() - self._ordered_at
        clock.restart(at_s)
        planned_s = self._order.load.planned_seconds
        if planned_s is not None and at_s >= planned_s:
            self._pace.stop()

    async def _done(self, measured_s: float) -> Done:
        error = self._fatal
        if isinstance(self._population.crash, MemoryError):
            error = self._out_of_memory()
        elif self._population.crash is not None:
            error = f"a virtual user broke: {self._population.crash!r}"
        elif not self._plan.is_test and self._errors:
            name, message = next(iter(self._errors.items()))
            error = f"{name} raised {message}"
        provided = {} if error or self._order.idle else await self._hooks.run_provides(self._errors)
        self._report_progress()
        return Done(
            context={} if self._only_user is None else self._hooks.written(self._only_user.context),
            provided=provided,
            measured_s=measured_s,
            peak_vus=self._population.peak,
            error=error,
            warnings=[*self._stalls, *(f"{n}: {text}" for n, text in self._errors.items())],
            cut_off=self._cut_off,
        )

    def _out_of_memory(self) -> str:
        limit = f"more than {self._order.memory_mb:,} MB of" if self._order.memory_mb else "all"
        return f"a generator process took {limit} memory and was stopped"

    async def teardown(self, setup_wrote: Values) -> TornDown:
        if not self.started:
            self._hooks.take(setup_wrote)
        return await self._hooks.run_teardown()

    async def close(self) -> None:
        self._process.leave(self)
        if hasattr(self, "_hooks"):
            await self._hooks.pool.close()
        if hasattr(self, "_pool"):
            await self._pool.close()

    def pause(self) -> None:
        if self.started:
            self._pace.pause()

    def resume(self) -> None:
        if self.started:
            self._pace.resume()

    def scale(self, delta: int) -> None:
        if self.started:
            self._pace.scale(delta)

    def change_rate(self, factor: float) -> None:
        if self.started:
            self._pace.change_rate(factor)

    def stop(self, now: bool) -> None:
        self._stop_early = True
        if self.started:
            self._pace.stop()
            if now:
                self._pool.cancel_all()
                self._population.cut(stopped=True)

    def cut_off(self) -> None:
        """Nobody renews the lease any more: no load without someone who can end it."""
        if self._measured_s is None:
            self._cut_off = True
            self.stop(now=True)

    def beat(self, now: float, lag_s: float) -> None:
        self._pool.sweep(now)
        self._recorder.lag(lag_s)

    def fold(self, cpu: float, rss_mb: float) -> None:
        self._recorder.cpu, self._recorder.rss_mb = cpu, rss_mb
        if self.measuring and self._measured_s is None:
            self._note_cpu()
        self._report_progress()

    def _note_cpu(self) -> None:
        """Loads that share the process share its time."""
        used_s = time.process_time()
        self._recorder.cpu_s += (used_s - self._cpu_at) / self._process.loads
        self._cpu_at = used_s

    def _note_offered(self) -> None:
        """And whether the process stood still, which nobody in it can notice but by the clock."""
        clock, now, used_s = self._pace.clock, perf_counter(), time.process_time()
        at, before_s = self._offered_at
        self._offered_at = (now, used_s)
        idle_s = now - at - (used_s - before_s)
        due, self._due = self._due, not clock.stopped and not clock.paused
        if idle_s > STALL_S and due and len(self._stalls) < STALLS_MAX:
            where = f" on {self._order.worker}" if self._order.worker else ""
            began_s = clock.elapsed() - (now - at)
            self._stalls.append(
                f"a generator process{where} stood still for {idle_s:.1f}s at {began_s:.1f}s"
            )
        self._recorder.offered += self._pace.offered(idle_s)

    def out_of_memory(self) -> None:
        self._fatal = self._out_of_memory()
        self.stop(now=True)

    def _report_progress(self) -> None:
        if not self.measuring:
            self._recorder.discard("warmup")
        elif self._measured_s is None:
            self._note_offered()
        delta = self._recorder.fold()
        if delta is not None:
            at_s = self._pace.clock.elapsed() if self._measured_s is None else self._measured_s
            self._send(Progress(at_s if self.measuring else 0.0, delta))
        quiet_s = self._silence.told(perf_counter(), delta)
        if quiet_s is not None:
            self._send(Quiet(quiet_s))

    def _make_user(self, number: int) -> VirtualUser:
        workflow = self._plan.make()
        client = self._pool.client()
        workflow.client = client
        workflow.context = self._hooks.base
        workflow.vu_id = self._order.first_vu + number
        if self._order.seed is not None:
            setattr(workflow, SEED, f"{self._order.seed}/{self._plan.name}/{workflow.vu_id}")
        if not self._plan.is_test:
            self._only_user = workflow
        return VirtualUser(workflow, client, self._program, self._next_rows())

    def _next_rows(self) -> Iterator[Any] | None:
        """Where a new VU gets its rows from: shared by all, or one row for its whole life."""
        if self._plan.feed is None or self._rows is None:
            return None
        if self._plan.feed.per == "iteration":
            return self._rows
        row = next(self._rows, _NO_ROW)
        return iter(()) if row is _NO_ROW else itertools.repeat(row)

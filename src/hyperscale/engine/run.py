"""A run on this machine: workflows by layer, cores by priority, one result at the end.

Nothing that happens to the load raises: a failing target, a crossed threshold, a lost process and
a stop by hand all end in `Results` that say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter

import msgspec

from hyperscale.engine.cores import port_warning, require_open_files, usable_cores
from hyperscale.engine.messages import Prepare, Values
from hyperscale.engine.performance import Performance
from hyperscale.engine.pool import Core, Pool
from hyperscale.engine.provision import Share, Wanted, partition
from hyperscale.engine.source import ClassSource, FileSource, PickledSource
from hyperscale.engine.verdict import Judge
from hyperscale.errors import BadInput, ExitCode, HyperscaleError
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import Cut, Environment, Results, State, StepResult
from hyperscale.metrics.saturation import saturation
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import split
from hyperscale.workload.plan import Overrides, WorkflowPlan, plan_test

WATCH_S = 1.0  # how often thresholds that may abort, or hold "for 10s", are looked at


class RunOptions(msgspec.Struct, kw_only=True):
    name: str = ""
    workers: int | None = None
    timeout_s: float | None = None
    seed: int | None = None
    env: dict[str, str] = {}
    http_debug: str = ""  # "", "headers" or "full"
    once: bool = False
    command: str = ""
    output: int | None = None  # file descriptor for what the test prints; stderr unless given


class LocalRun:
    def __init__(
        self,
        source: FileSource | ClassSource,
        overrides: Overrides | None = None,
        options: RunOptions | None = None,
    ) -> None:
        self._options = options or RunOptions()
        overrides = overrides or Overrides()
        if self._options.once:
            overrides = msgspec.structs.replace(overrides, vus=1, iterations=1, no_thresholds=True)
            self._options = msgspec.structs.replace(self._options, workers=1, http_debug="full")
        self._overrides = overrides
        os.environ.update(self._options.env)
        workers = self._options.workers
        if workers is not None and workers < 1:
            raise BadInput(f"workers is {workers} but must be at least 1")
        # The processes start first: their start-up overlaps with loading the test.
        self._pool = Pool(workers or usable_cores(), self._options.output)
        try:
            self.plan = plan_test(source.load(), overrides)
            self._source: FileSource | PickledSource = (
                source.pickled() if isinstance(source, ClassSource) else source
            )
            self._warnings = list(self.plan.warnings)
            for plan in self.plan.workflows:
                self._check_limits(plan)
        except BaseException:
            self._pool.abandon()
            raise
        self.on_trace: Callable[[str], None] | None = None
        self._plans = {plan.name: plan for plan in self.plan.workflows}
        self._aggregates = {plan.name: _aggregate(plan) for plan in self.plan.workflows}
        self._judges = [
            Judge(t, plan.name) for plan in self.plan.workflows for t in plan.thresholds
        ]
        self._ended: dict[str, Performance] = {}
        self._playing: list[Performance] = []
        self._state: State = "preparing"
        self._cut: Cut | None = None
        self._cut_reason = ""
        self._failure: HyperscaleError | None = None
        self._began = perf_counter()
        self._elapsed_s: float | None = None
        self._started_at = ""
        self._environment = _environment(len(self._pool.cores), self._options.command)

    def abandon(self) -> None:
        """Give up a run that was never executed."""
        self._pool.abandon()

    def _check_limits(self, plan: WorkflowPlan) -> None:
        if plan.is_test and plan.http.connections == "per_vu":
            shares = split(plan.load, len(self._pool.cores))
            require_open_files(plan.name, max(share.peak_vus for share in shares))
            warning = port_warning(plan.name, plan.load.peak_vus)
            if warning and not plan.load.open_model:
                self._warnings.append(warning)

    @property
    def generator_pids(self) -> list[int]:
        return [core.pid for core in self._pool.cores]

    async def execute(self) -> Results:
        self._began = perf_counter()
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._state = "running"
        watching = asyncio.create_task(self._watch())
        limit = None
        if self._options.timeout_s:
            limit = asyncio.get_running_loop().call_later(self._options.timeout_s, self._time_out)
        try:
            await self._pool.open()
            for layer in self.plan.layers:
                await self._run_layer([self._plans[name] for name in layer])
        finally:
            watching.cancel()
            if limit is not None:
                limit.cancel()
            await self._pool.close()
            self._elapsed_s = perf_counter() - self._began
            self._state = "finished"
        return self.results(final=True)

    async def _run_layer(self, plans: list[WorkflowPlan]) -> None:
        ready = []
        for plan in plans:
            blocked = [name for name in plan.depends if self._aggregates[name].facts.error]
            facts = self._aggregates[plan.name].facts
            if blocked:
                facts.error = f"not run, because {', '.join(blocked)} failed"
            elif self._cut is not None:
                facts.error = f"not run, because the run was cut short: {self._cut_reason}"
            else:
                ready.append(plan)
                continue
            facts.state = "finished"
        wanted = [Wanted(plan.name, plan.priority, plan.is_test) for plan in ready]
        for batch in partition(wanted, len(self._pool.cores)):
            await self._run_batch(batch)

    async def _run_batch(self, batch: list[Share]) -> None:
        free = list(self._pool.cores)
        self._playing = []
        for name, cores in batch:
            performance = self._cast(self._plans[name], free[:cores])
            del free[: len(performance.cores)]
            self._playing.append(performance)
        if self._cut is not None:
            return
        await asyncio.gather(*(performance.run() for performance in self._playing))
        for performance in self._playing:
            self._ended[performance.plan.name] = performance
            self._warnings += performance.warnings
            if performance.failure is not None and self._failure is None:
                self._failure = performance.failure
            if performance.lost and self._cut is None:
                self._cut, self._cut_reason = "worker lost", "; ".join(performance.lost)
        self._playing = []

    def _cast(self, plan: WorkflowPlan, cores: list[Core]) -> Performance:
        """Put a workflow on its cores, with what the workflows before it left for it."""
        shares = split(plan.load, len(cores))
        cores = cores[: len(shares)]
        context: Values = {}
        for name in plan.depends:
            context.update(self._ended[name].context)
        used = {name: _given_to(plan.name, ended) for name, ended in self._ended.items()}
        first_vu = 0
        orders = []
        for number, share in enumerate(shares):
            orders.append(
                Prepare(
                    source=self._source,
                    overrides=self._overrides,
                    workflow=plan.name,
                    load=share,
                    core=number,
                    cores=len(shares),
                    first_vu=first_vu,
                    context=context,
                    used=used,
                    run_setup=number == 0,
                    seed=self._options.seed,
                    env=self._options.env,
                    http_debug=self._options.http_debug,
                )
            )
            first_vu += share.peak_vus
        facts = self._aggregates[plan.name].facts
        facts.cores = len(cores)
        facts.started_s = perf_counter() - self._began
        return Performance(plan, self._aggregates[plan.name], cores, orders, self._traced)

    def _traced(self, text: str) -> None:
        if self.on_trace is not None:
            self.on_trace(text)

    async def _watch(self) -> None:
        judges = [j for j in self._judges if j.threshold.abort or j.threshold.for_s]
        while judges:
            await asyncio.sleep(WATCH_S)
            now = {name: self._aggregates[name].freeze() for name in {j.workflow for j in judges}}
            for judge in judges:
                if judge.watch(now[judge.workflow]) and self._cut is None:
                    text = f"threshold {judge.threshold.expression} was crossed"
                    self._aggregates[judge.workflow].mark(text)
                    self._end_early("threshold", text)

    def _time_out(self) -> None:
        self._end_early("timeout", f"the run took longer than {self._options.timeout_s:g}s")

    def _end_early(self, cut: Cut, reason: str, *, now: bool = False) -> None:
        if self._cut is None:
            self._cut, self._cut_reason = cut, reason
        self._state = "stopping"
        for performance in self._playing:
            performance.stop(now=now)

    def stop(self) -> None:
        """End gracefully: no new iterations, those under way may finish."""
        self._end_early("signal", "stopped by hand")

    def kill(self) -> None:
        """End now; what has been measured is kept."""
        self._end_early("signal", "stopped by hand", now=True)

    def pause(self) -> None:
        for performance in self._playing:
            performance.pause()
        self._state = "paused"

    def resume(self) -> None:
        for performance in self._playing:
            performance.resume()
        self._state = "running"

    def scale(self, delta: int) -> None:
        for performance in self._playing:
            performance.scale(delta)

    def results(self, *, final: bool = False) -> Results:
        """Everything known so far; `final` also judges and carries the histograms."""
        workflows = [a.freeze(buckets=final) for a in self._aggregates.values()]
        uses = [use for a in self._aggregates.values() for use in a.core_use()]
        requests, failed = sum(w.requests for w in workflows), sum(w.failed for w in workflows)
        results = Results(
            name=self._options.name or ", ".join(self._plans),
            started_at=self._started_at,
            elapsed_s=self._elapsed_s or perf_counter() - self._began,
            state=self._state,
            cut=self._cut,
            cut_reason=self._cut_reason,
            tags=dict(self._overrides.tags),
            workflows=workflows,
            warnings=list(dict.fromkeys(self._warnings)),
            core_use=uses,
            saturation=""
            if requests and requests == failed  # a generator busy with failing proves nothing
            else saturation(
                uses,
                dropped=sum(w.dropped_iterations for w in workflows),
                iterations=sum(w.iterations for w in workflows if w.open_model),
                open_model=any(w.open_model for w in workflows),
            ),
            environment=self._environment,
        )
        if final:
            by_name = {workflow.name: workflow for workflow in workflows}
            results.thresholds = [judge.judge(by_name[judge.workflow]) for judge in self._judges]
            results.exit_code = int(self._exit_code(results))
            results.passed = results.exit_code == ExitCode.PASSED
        return results

    def _exit_code(self, results: Results) -> ExitCode:
        if self._failure is not None:
            results.cut, results.cut_reason = "error", self._failure.message
            return self._failure.exit_code
        if self._cut is not None:
            return {
                "signal": ExitCode.STOPPED,
                "threshold": ExitCode.THRESHOLDS_CROSSED,
                "worker lost": ExitCode.LOAD_LOST,
            }.get(self._cut, ExitCode.FAILED)
        tests = [w for w in results.workflows if w.is_test]
        if any(w.error for w in results.workflows) or (tests and not _succeeded(results)):
            return ExitCode.FAILED
        if not all(threshold.passed for threshold in results.thresholds):
            return ExitCode.THRESHOLDS_CROSSED
        return ExitCode.PASSED

    @property
    def failure(self) -> HyperscaleError | None:
        """What kept the run from being carried out, with a hint for the person."""
        return self._failure


def _given_to(consumer: str, provider: Performance) -> Values:
    """What a workflow provides to another one by name; the other must also ask for it by name."""
    named = {state.name for state in provider.plan.provides if consumer in state.workflows}
    return {key: value for key, value in provider.provided.items() if key in named}


def _succeeded(results: Results) -> bool:
    return results.requests > results.failed


def _aggregate(plan: WorkflowPlan) -> WorkflowAggregate:
    def names(kind: HookType) -> list[str]:
        return [step.name for step in plan.steps if step.hook_type is kind]

    aggregate = WorkflowAggregate(
        plan.name,
        steps=[
            StepResult(
                name=step.name,
                workflow=plan.name,
                kind=step.kind,
                method=step.method,
                target=step.target,
                tags={**plan.tags, **step.tags},
                group=step.group,
            )
            for step in plan.steps
            if step.hook_type is HookType.TEST
        ],
        checks=names(HookType.CHECK),
        metrics={s.name: s.metric_kind for s in plan.steps if s.metric_kind is not None},
    )
    facts = aggregate.facts
    facts.is_test = plan.is_test
    facts.load = plan.load.describe() if plan.is_test else "once"
    facts.open_model = plan.load.open_model
    facts.planned_s = plan.load.planned_seconds if plan.is_test else None
    facts.planned_iterations = plan.load.planned_iterations if plan.is_test else 1
    return aggregate


def _environment(workers: int, command: str) -> Environment:
    from hyperscale._version import __version__

    return Environment(
        hyperscale=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=os.cpu_count() or 0,
        workers=workers,
        host=socket.gethostname(),
        command=command,
    )


def _cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as facts:
        for line in facts:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

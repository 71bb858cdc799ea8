"""A run on this machine: workflows by layer, cores by priority, one result at the end.

Nothing that happens to the load raises: a failing target, a crossed threshold, a lost process and
a stop by hand all end in `Results` that say so.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from hyperscale.cluster.placement.provision import Share, Wanted, batches
from hyperscale.engine.cores import port_warning, require_open_files, usable_cores
from hyperscale.engine.environment import this_machine, variables
from hyperscale.engine.generators import GeneratorProcess, Generators
from hyperscale.engine.messages import Values, received
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import (
    Course,
    aggregate_of,
    assemble,
    judges_of,
    unjudged,
    watch,
)
from hyperscale.engine.source import ClassSource, FileSource, encode_overrides, encode_source
from hyperscale.engine.spawning import EarlyChildren
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.metrics import arrays
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.results import Cut, Results, WorkflowResult
from hyperscale.metrics.spans import Span
from hyperscale.workload.facts import WorkflowFacts, test_facts
from hyperscale.workload.load import split
from hyperscale.workload.plan import Overrides, plan_test

if TYPE_CHECKING:
    from hyperscale.cluster.jobs.records import LostLoad

WATCH_S = 1.0  # how often thresholds that may abort, or hold "for 10s", are looked at


class RunOptions(msgspec.Struct, kw_only=True):
    name: str = ""
    workers: int | None = None
    timeout_s: float | None = None
    lost_load: LostLoad = "squeeze"  # when a worker of a cluster dies and no core is free
    seed: int | None = None
    env: dict[str, str] = {}
    secrets: list[str] = []  # names in `env` whose values nobody may read
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
        early: EarlyChildren | None = None,
    ) -> None:
        """`early`: generator processes that were started before the run was known."""
        self._options = options or RunOptions()
        overrides = overrides or Overrides()
        if self._options.once:
            overrides = msgspec.structs.replace(
                overrides, vus=None, vus_each=1, iterations=1, no_thresholds=True
            )
            self._options = msgspec.structs.replace(self._options, workers=1, http_debug="full")
        self._overrides = overrides
        workers = self._options.workers
        if workers is not None and workers < 1:
            raise BadInput(f"workers is {workers} but must be at least 1")
        with variables(self._options.env):
            # The processes start first: their start-up overlaps with loading the test.
            self._generators = Generators(workers or usable_cores(), self._options.output, early)
            try:
                self._load(source)
            except BaseException:
                self._generators.abandon()
                raise
        self.on_trace: Callable[[str], None] | None = None
        self._trace_share = 0.0
        self._on_span: Callable[[Span], None] | None = None
        self._aggregates = {name: aggregate_of(facts) for name, facts in self._facts.items()}
        self._judges = judges_of(self._facts.values())
        self._ended: dict[str, PartRun] = {}
        self._running: list[PartRun] = []
        self._began = perf_counter()
        self._load_began = 0.0  # perf_counter at the begin of the first load
        self._elapsed_s: float | None = None
        self._final: Results | None = None
        self._course = Course(
            name=self._options.name,
            tags=dict(self._overrides.tags),
            warnings=self._warnings,
            environment=this_machine(self._generators.size, self._options.command),
        )

    def _load(self, source: FileSource | ClassSource) -> None:
        self.plan = plan_test(source.load(), self._overrides)
        self._source = encode_source(
            source.pickled() if isinstance(source, ClassSource) else source
        )
        self._warnings = list(self.plan.warnings)
        self._facts = {facts.name: facts for facts in test_facts(self.plan)}
        self._warnings += unjudged(self._facts.values())
        self._check_limits()
        self._generators.need(self._cores_needed())

    def trace_steps(self, share: float, on_span: Callable[[Span], None]) -> None:
        """Before `execute`: this share of the runs of steps becomes spans."""
        self._trace_share, self._on_span = share, on_span

    def abandon(self) -> None:
        """Give up a run that was never executed."""
        self._generators.abandon()

    def _check_limits(self) -> None:
        """A VU with a connection of its own needs an open file in its process, and a port."""
        for layer in self.plan.layers:
            for batch in self._batches(self._facts[name] for name in layer):
                self._check_open_files(batch)
        for facts in self._facts.values():
            if facts.is_test and facts.per_vu_connections and not facts.load.open_model:
                warning = port_warning(facts.name, facts.load.peak_vus)
                self._warnings += [warning] if warning else []

    def _check_open_files(self, batch: list[Share]) -> None:
        on_core: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for name, cores in batch:
            facts = self._facts[name]
            if facts.is_test and facts.per_vu_connections:
                for core, share in zip(cores, split(facts.load, len(cores)), strict=False):
                    on_core[core][name] = share.peak_vus
        for users in on_core.values():
            require_open_files(" and ".join(users), sum(users.values()))

    def _cores_needed(self) -> int:
        """With fewer users than cores some would have nothing to do."""
        return 1 + max(
            core
            for layer in self.plan.layers
            for batch in self._batches(self._facts[name] for name in layer)
            for share in batch
            for core in share.cores
        )

    @property
    def generator_pids(self) -> list[int]:
        return [process.pid for process in self._generators.processes]

    async def execute(self) -> Results:
        self._began = perf_counter()
        self._course.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._course.state = "running"
        watching = asyncio.create_task(self._watch())
        limit = None
        if self._options.timeout_s:
            limit = asyncio.get_running_loop().call_later(self._options.timeout_s, self._time_out)
        try:
            await self._generators.open()
            for layer in self.plan.layers:
                await self._run_layer(layer)
        finally:
            watching.cancel()
            if limit is not None:
                limit.cancel()
            await self._generators.close()
            self._elapsed_s = perf_counter() - self._began
            self._course.state = "finished"
        self._final = self.results(final=True)
        return self._final

    async def _run_layer(self, names: Sequence[str]) -> None:
        ready = []
        for workflow in (self._facts[name] for name in names):
            blocked = [name for name in workflow.depends if self._aggregates[name].facts.error]
            facts = self._aggregates[workflow.name].facts
            if blocked and self._course.cut is None:
                facts.error = f"not run, because {', '.join(blocked)} failed"
                facts.state = "finished"
            else:
                ready.append(workflow)
        for batch in self._batches(ready):
            if self._course.cut is None:
                await self._run_batch(batch)
            else:
                self._leave_out(self._aggregates[share.name].facts for share in batch)

    def _leave_out(self, workflows: Iterable[WorkflowResult]) -> None:
        for facts in workflows:
            facts.error = f"not run, because the run was cut short: {self._course.cut_reason}"
            facts.state = "finished"

    def _batches(self, workflows: Iterable[WorkflowFacts]) -> list[list[Share]]:
        wanted = [Wanted(w.name, w.priority, w.is_test, w.users) for w in workflows]
        return batches(wanted, self._generators.size)

    async def _run_batch(self, batch: list[Share]) -> None:
        """All of it begins when all of it is prepared: what one does before its load must not
        disturb the load of another."""
        self._running = [
            self._part_run(
                self._facts[name], [self._generators.processes[number] for number in cores]
            )
            for name, cores in batch
        ]
        preparing = asyncio.gather(*(part.get_ready() for part in self._running))
        await asyncio.sleep(0)  # the commands are sent
        arrays.load()  # while the generators prepare, not when their numbers arrive
        await preparing
        self._load_began = self._load_began or perf_counter()
        age_s = perf_counter() - self._load_began
        await asyncio.gather(*(part.run(age_s) for part in self._running))
        for part in self._running:
            self._settle(part)
        self._running = []

    def _settle(self, part: PartRun) -> None:
        course = self._course
        self._ended[part.facts.name] = part
        self._warnings += part.warnings
        if part.failure is not None and course.failure is None:
            course.failure = part.failure
        if part.lost:
            course.lost = [*course.lost, *part.lost]
            if course.cut is None:
                course.cut, course.cut_reason = "worker lost", "; ".join(part.lost)

    def _part_run(self, facts: WorkflowFacts, generators: list[GeneratorProcess]) -> PartRun:
        """A workflow on its generators, with what the workflows before it left for it."""
        aggregate = self._aggregates[facts.name]
        part_plan = PartPlan(
            source=self._source,
            overrides=encode_overrides(self._overrides),
            total_cores=len(generators),
            context=received(self._ended[name].handed_on for name in facts.depends),
            used={name: _given_to(facts.name, ended) for name, ended in self._ended.items()},
            seed=self._options.seed,
            env=self._options.env,
            secrets=self._options.secrets,
            http_debug=self._options.http_debug,
            trace_share=self._trace_share,
        )
        return PartRun(
            facts,
            aggregate,
            generators,
            part_plan,
            numbers=[process.number for process in generators],
            on_progress=partial(self._progressed, aggregate.facts),
            on_trace=self._traced,
            on_span=self._on_span,
            on_stop_test=self._stop_test,
        )

    def _stop_test(self, reason: str, failed: bool) -> None:
        self._course.test_failed = self._course.test_failed or failed
        self._end_early("test", reason)

    def _progressed(self, known: WorkflowResult, at_s: float, core: int, delta: Delta) -> None:
        if at_s and not known.started_s:
            known.started_s = perf_counter() - self._began - at_s

    def _traced(self, text: str) -> None:
        if self.on_trace is not None:
            self.on_trace(text)

    async def _watch(self) -> None:
        while self._judges:
            await asyncio.sleep(WATCH_S)
            crossed = watch(self._judges, self._aggregates)
            if crossed is not None and self._course.cut is None:
                text = f"threshold {crossed.threshold.expression} was crossed"
                self._aggregates[crossed.workflow].mark(text)
                self._end_early("threshold", text)

    def _time_out(self) -> None:
        self._end_early("timeout", f"the run took longer than {self._options.timeout_s:g}s")

    def _end_early(self, cut: Cut, reason: str, *, now: bool = False) -> None:
        if self._course.cut is None:
            self._course.cut, self._course.cut_reason = cut, reason
        self._course.state = "stopping"
        for part in self._running:
            part.stop(now=now)

    def stop(self) -> None:
        """End gracefully: no new iterations, those under way may finish."""
        self._end_early("signal", "stopped by hand")

    def kill(self) -> None:
        """End now; what has been measured is kept."""
        self._end_early("signal", "stopped by hand", now=True)

    def pause(self) -> None:
        for part in self._running:
            if part.pause():
                part.aggregate.mark("paused")
        self._course.state = "paused"

    def resume(self) -> None:
        for part in self._running:
            if part.resume():
                part.aggregate.mark("resumed")
        self._course.state = "running"

    def scale(self, delta: int, workflow: str | None = None) -> None:
        noun = "VU" if abs(delta) == 1 else "VUs"
        text = f"{'added' if delta > 0 else 'removed'} {abs(delta)} {noun}"
        for part in self._running:
            if workflow in (None, part.facts.name) and part.scale(delta):
                part.aggregate.mark(text)

    def change_rate(self, factor: float, workflow: str | None = None) -> None:
        for part in self._running:
            if workflow in (None, part.facts.name) and part.change_rate(factor):
                words = part.facts.load.rate_words(part.rate_factor)
                part.aggregate.mark(f"rate changed to {words}")

    def results(self, *, final: bool = False) -> Results:
        """Everything known so far; `final` also judges and carries the histograms, as what is told
        after the end does."""
        if self._final is not None:
            return self._final
        course = self._course
        course.elapsed_s = self._elapsed_s or perf_counter() - self._began
        return assemble(course, self._aggregates.values(), self._judges, final=final)

    @property
    def failure(self) -> HyperscaleError | None:
        """What kept the run from being carried out, with a hint for the person."""
        return self._course.failure


def _given_to(consumer: str, provider: PartRun) -> Values:
    """What a workflow provides to another one by name; the other must also ask for it by name."""
    named = {key for key, workflows in provider.facts.provides.items() if consumer in workflows}
    return {key: value for key, value in provider.provided.items() if key in named}

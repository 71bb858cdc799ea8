"""A part of a workflow on its generator processes: prepared, run, torn down together.

The parent's half of its `SliceRun`s, known to it by facts alone. Whoever runs it calls `prepare`,
then `begin` and `over`, then `teardown`, with as much time in between as it needs to agree with
other machines, and `release` at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.messages import (
    ChangeRate,
    Done,
    Failed,
    Go,
    Lease,
    Pause,
    Prepared,
    Progress,
    Quiet,
    Report,
    Resume,
    Scale,
    SpanEnded,
    Stop,
    StopTest,
    Teardown,
    TornDown,
    Trace,
    Values,
    handed_on,
    of_highest_core,
)
from hyperscale.engine.part_plan import PartPlan, slices, users_by_core
from hyperscale.engine.slice_commands import Answer, SliceCommands
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.spans import Span
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import longest_s

PREPARE_LIMIT_S = 60.0
STUCK_SLACK_S = 15.0  # beyond the longest the load may take, pauses left out
STOP_SLACK_S = 5.0  # beyond graceful_stop, before a generator that does not answer is killed
TEARDOWN_LIMIT_S = 30.0

Outcome = Literal["completed", "failed", "cancelled", "cut off"]
"""`cut off`: its load ended before its plan did, and may go on elsewhere."""


class GeneratorLost(RunFailed):
    """A generator process died before the load; `lost` has a sentence for each. Another attempt
    makes sense unless this side timed out."""

    def __init__(self, lost: Sequence[str], *, again: bool) -> None:
        super().__init__("; ".join(lost))
        self.lost = tuple(lost)
        self.again = again


class PartRun:
    """What it measured is in `aggregate`, by `numbers` of the cores; by default those within the
    workflow. `on_done` is called when the load of a slice is over, which of others may not be.

    Other workflows may have users on the same processes: it speaks and listens only as its own
    slice there."""

    def __init__(
        self,
        facts: WorkflowFacts,
        aggregate: WorkflowAggregate,
        generators: Sequence[GeneratorProcess],
        plan: PartPlan,
        *,
        numbers: Sequence[int] | None = None,
        on_progress: Callable[[float, int, Delta], None] | None = None,
        on_trace: Callable[[str], None] | None = None,
        on_span: Callable[[Span], None] | None = None,
        on_done: Callable[[], None] | None = None,
        on_stop_test: Callable[[str, bool], None] | None = None,
        on_quiet: Callable[[float], None] | None = None,
    ) -> None:
        self.facts = facts
        self.aggregate = aggregate
        self._slices = slices(facts, plan, len(generators))
        self._total_cores = plan.total_cores
        self._vus = facts.load.peak_vus  # of the whole workflow, as it was scaled last
        self.rate_factor = 1.0  # of the planned rate, as it was changed last
        self.generators = list(generators[: len(self._slices)])
        self.context: Values = {}  # written by the steps of a workflow that is not a test
        self.provided: Values = {}
        self.prepare_s = 0.0
        self.measured_s = 0.0
        self.peak_vus = 0
        self.lost: list[str] = []  # one sentence per generator process that died
        self.failure: HyperscaleError | None = None
        self.warnings: list[str] = []
        self._on_progress = on_progress
        self._on_trace = on_trace
        self._on_span = on_span
        self._on_done = on_done
        self._on_stop_test = on_stop_test
        self._on_quiet = on_quiet
        own = range(plan.first_core, plan.first_core + len(generators))
        self._numbers = dict(zip(self.generators, numbers or own, strict=False))
        self._commands = SliceCommands(self.generators, self._lose)
        self._loads: list[Answer] = []
        self._unused = len(generators) - len(self.generators)
        self._done: set[GeneratorProcess] = set()
        self._wrote: Values = {}
        self._prepared = False
        self._stopping = False
        self._killed = False
        self._asked = False  # somebody else wants it to end
        self._cut_off = False
        self._test_stopped = False
        self._losses: list[asyncio.Task[None]] = []
        aggregate.facts.cores = len(self.generators)

    async def prepare(self) -> Values:
        """Load the code on all cores and get everything ready; returns what setup() wrote."""
        self._commands.join(self._hear)
        answers = await self._wait(
            self._commands.ask(self._slices, self.generators), PREPARE_LIMIT_S
        )
        self._note_failure(answers)
        if self.failure is not None:
            raise self.failure
        ready = [answer for answer in answers if isinstance(answer, Prepared)]
        if len(ready) < len(answers):
            lost = self.lost or ["a generator process died"]
            self.aggregate.facts.error = "; ".join(lost)
            raise GeneratorLost(lost, again=self.facts.is_test and not self._commands.overdue)
        self._prepared = True
        self.prepare_s = max((answer.seconds for answer in ready), default=0.0)
        self.aggregate.facts.prepare_s = self.prepare_s
        self._wrote = ready[0].context if ready else {}
        return self._wrote

    def begin(self, context: Values, run_age_s: float = 0.0) -> None:
        """The load, unless it has been stopped; from now on it can be paused and scaled. The load
        of the run began `run_age_s` ago."""
        if self._stopping:
            return
        self._wrote = context
        self.aggregate.facts.state = "running"
        go = [Go(context, run_age_s)] * len(self.generators)
        self._loads = self._commands.ask(go, self.generators)

    async def over(self) -> None:
        """The load's end, whatever that is: nothing that happens to it raises."""
        if self._loads:
            limit_s = longest_s(self.facts.load) + STUCK_SLACK_S
            self._collect(await self._wait(self._loads, limit_s))

    async def run_load(self, context: Values, run_age_s: float = 0.0) -> None:
        self.begin(context, run_age_s)
        await self.over()

    async def teardown(self) -> str:
        """Run teardown() on one generator that is left; returns a warning, or nothing."""
        alive = [generator for generator in self._commands.joined if not generator.lost]
        if not self.facts.tears_down or not self._prepared or not alive:
            return ""
        self.aggregate.facts.state = "stopping"
        asked = self._commands.ask([Teardown(self._wrote)], alive[:1])
        (answer,) = await self._wait(asked, TEARDOWN_LIMIT_S)
        if isinstance(answer, TornDown):
            self.aggregate.unmeasured_requests("teardown", answer.requests)
            return f"{self.facts.name}: {answer.error}" if answer.error else ""
        return f"{self.facts.name}: teardown() did not end within {TEARDOWN_LIMIT_S:g}s"

    async def release(self) -> None:
        """Let go of the processes. The last word."""
        if self._losses:
            await asyncio.wait(self._losses)
        for generator in self._commands.joined:
            self._commands.leave(generator)
        self.aggregate.facts.state = "finished"

    async def get_ready(self) -> None:
        """Prepare, when there is nobody to agree with: what went wrong is noted."""
        with suppress(HyperscaleError):
            await self.prepare()

    async def run(self, run_age_s: float = 0.0) -> None:
        """From there to the end."""
        try:
            if self._prepared:
                await self.run_load(self._wrote, run_age_s)
                warning = await self.teardown()
                self.warnings += [warning] if warning else []
        finally:
            await self.release()

    @property
    def handed_on(self) -> Values:
        """For the workflows that depend on this one."""
        return handed_on(self._wrote, [self.context])

    @property
    def cores_done(self) -> int:
        """How many of the given cores have no more load to make, or never had any."""
        return self._unused + len(self._done)

    @property
    def busy(self) -> list[GeneratorProcess]:
        """The cores that have load to make."""
        return [generator for generator in self.generators if generator not in self._done]

    @property
    def outcome(self) -> Outcome:
        if self._cut_off:
            return "cut off"
        if self.failure is not None:
            return "failed"
        if self._killed:
            return "cancelled"
        if self.aggregate.facts.error:
            return "failed"
        early = bool(self.lost) and not self._asked and not self._commands.overdue
        return "cut off" if early else "completed"

    def pause(self) -> bool:
        if self.aggregate.facts.state != "running":
            return False
        self._commands.tell_all(Pause())
        self.aggregate.facts.state = "paused"
        return True

    def resume(self) -> bool:
        if self.aggregate.facts.state != "paused":
            return False
        self._commands.tell_all(Resume())
        self.aggregate.facts.state = "running"
        return True

    def scale(self, delta: int) -> bool:
        """Change the workflow's VUs by that many in all; this part takes its cores' share."""
        if self.aggregate.facts.state not in ("running", "paused") or not delta:
            return False
        load, total = self.facts.load, self._total_cores
        before = users_by_core(load, total, self._vus)
        self._vus = max(1, self._vus + delta)
        wanted = users_by_core(load, total, self._vus)
        for generator, command in zip(self.generators, self._slices, strict=True):
            change = wanted[command.core] - before[command.core]
            if change and generator not in self._done:
                self._commands.tell(generator, Scale(change))
        return True

    def change_rate(self, factor: float) -> bool:
        """So many times as many arrivals from now on; False where nothing arrives."""
        if (
            self.aggregate.facts.state not in ("running", "paused")
            or not self.facts.load.open_model
        ):
            return False
        self.rate_factor *= factor
        for generator in self.generators:
            if generator not in self._done:
                self._commands.tell(generator, ChangeRate(factor))
        return True

    def lease(self, seconds: float) -> None:
        """The load ends by itself ("cut off") unless this is called again in time."""
        for generator in self._commands.joined:
            self._commands.tell(generator, Lease(seconds))

    def stop(self, *, now: bool = False) -> None:
        self._asked = True
        self._killed = self._killed or now
        self._stop(now=now)

    def kill(self) -> None:
        """End it at once, whatever its processes do. What they told is kept."""
        self._stopping = self._asked = self._killed = True
        for generator in self.generators:
            self._commands.kill(generator)

    def _stop(self, *, now: bool) -> None:
        self._stopping = True
        if self.aggregate.facts.state != "finished":
            self.aggregate.facts.state = "stopping"
        self._commands.tell_all(Stop(now))
        limit_s = STOP_SLACK_S if now else self.facts.load.graceful_stop_s + STOP_SLACK_S
        asyncio.get_running_loop().call_later(limit_s, self._commands.kill_unanswering)

    async def _wait(self, pending: Sequence[Answer], limit_s: float) -> list[Report | None]:
        def paused() -> bool:
            return self.aggregate.facts.state == "paused"

        return await self._commands.wait(pending, limit_s, paused)

    def _hear(self, generator: GeneratorProcess, report: Report) -> None:
        if isinstance(report, Progress):
            number = self._numbers[generator]
            self.aggregate.advance(report.at_s)
            if self.aggregate.apply(number, report.delta, report.at_s) and self._on_progress:
                self._on_progress(report.at_s, number, report.delta)
        elif isinstance(report, Quiet):
            if self._on_quiet is not None:
                self._on_quiet(report.for_s)
        elif isinstance(report, Trace):
            if self._on_trace is not None:
                self._on_trace(report.text)
        elif isinstance(report, SpanEnded):
            if self._on_span is not None:
                self._on_span(report.span)
        elif isinstance(report, StopTest):
            self._stop_test(report)
        else:
            if isinstance(report, Done):
                self._done.add(generator)
                if self._on_done is not None:
                    self._on_done()
            self._commands.answered(generator, report)

    def _stop_test(self, report: StopTest) -> None:
        if not self._test_stopped:
            self._test_stopped = True
            self.aggregate.mark(f"the test stopped itself: {report.reason}")
        if self._on_stop_test is not None:
            self._on_stop_test(report.reason, report.failed)

    def _lose(self, generator: GeneratorProcess) -> None:
        if generator in self._done:  # nothing of the load is lost
            self._commands.without_answer(generator)
            return
        self.aggregate.gone(self._numbers[generator])
        self._losses.append(
            asyncio.create_task(self._tell_loss(generator, self.aggregate.elapsed_s))
        )

    async def _tell_loss(self, generator: GeneratorProcess, at_s: float) -> None:
        vus = self._slices[self.generators.index(generator)].load.peak_vus
        total = self.facts.load.peak_vus
        ending = await generator.exit_reason()
        self.lost.append(
            f"generator process {generator.pid} of {self.facts.name} {ending} at {at_s:.1f}s: "
            f"{vus} of {total} VUs lost"
        )
        self.aggregate.mark(f"generator process {generator.pid} {ending}")
        self._commands.without_answer(generator)
        # Half a load is not the test that was asked for: end it with what there is.
        if not self._stopping:
            self._stop(now=False)

    def _note_failure(self, answers: Sequence[Report | None]) -> None:
        failed = next((answer for answer in answers if isinstance(answer, Failed)), None)
        if failed is not None:
            kind = BadInput if failed.bad_input else RunFailed
            self.failure = kind(failed.message, failed.hint)
            self.failure.detail = failed.detail
            self.aggregate.facts.error = failed.message

    def _collect(self, answers: Sequence[Report | None]) -> None:
        self._note_failure(answers)
        for generator in self.generators:
            self.aggregate.gone(self._numbers[generator])
        done = [answer for answer in answers if isinstance(answer, Done)]
        self.context = of_highest_core(answer.context for answer in done)
        self.provided = of_highest_core(answer.provided for answer in done)
        for answer in done:
            self.warnings.extend(f"{self.facts.name}: {text}" for text in answer.warnings)
            if answer.error and not self.aggregate.facts.error:
                self.aggregate.facts.error = f"{self.facts.name}: {answer.error}"
            self._cut_off = self._cut_off or answer.cut_off
            self.aggregate.advance(answer.measured_s)
        if self.lost and not self._asked and not self.facts.is_test:
            # Half of a test is half a test; half of a preparation is none.
            self.aggregate.facts.error = self.aggregate.facts.error or "; ".join(self.lost)
        self.peak_vus = sum(answer.peak_vus for answer in done)
        self.aggregate.peaked(self.peak_vus)
        self.measured_s = self.aggregate.elapsed_s

"""The parent's side of the numbers: deltas of all cores in, results out, live or final.

Totals only ever grow, a repeated or old delta of a core changes nothing, and memory depends on
the number of steps, not on the length of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from hyperscale.metrics import exported
from hyperscale.metrics.delta import CheckDelta, Delta
from hyperscale.metrics.exported import AggregateState, DamagedState
from hyperscale.metrics.failures import SAMPLES_MAX
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.results import CheckResult, CoreUse, Mark, StepResult, WorkflowResult
from hyperscale.metrics.tallies import CoreTally, MetricKind, MetricTally, StepTally
from hyperscale.metrics.tiers import POINTS_MAX
from hyperscale.metrics.timeline import Timeline

MARKS_MAX = 200
RECENT_S = 30.0  # how far back recent_rate can look
RECENT_STEP_S = 0.05


class WorkflowAggregate:
    """One workflow over all its cores.

    `facts` holds what does not come from deltas (load model, state, plan, error); whoever runs
    the workflow writes them there and they appear in every frozen result.
    """

    def __init__(
        self,
        name: str,
        steps: Iterable[StepResult | str] = (),
        checks: Iterable[str] = (),
        metrics: Mapping[str, MetricKind] | None = None,
        *,
        points_max: int = POINTS_MAX,
    ) -> None:
        self.facts = WorkflowResult(name=name)
        self.iterations = 0
        self.requests = 0
        self.failed = 0
        self.dropped = 0
        self.interrupted = 0
        self.vus_max = 0
        templates = (
            s if isinstance(s, StepResult) else StepResult(name=s, workflow=name) for s in steps
        )
        self._steps = {template.name: StepTally(template) for template in templates}
        self._checks = {check: CheckResult(name=check, workflow=name) for check in checks}
        self._metrics = {
            metric: MetricTally(metric, name, kind) for metric, kind in (metrics or {}).items()
        }
        self._iteration = Histogram()
        self._cores: dict[int, CoreTally] = {}
        self._timeline = Timeline(points_max)
        self._marks: list[Mark] = []
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def elapsed_s(self) -> float:
        return self._timeline.now_s

    @property
    def vus(self) -> int:
        return sum(core.vus for core in self._cores.values())

    def advance(self, now_s: float) -> None:
        """Tell how long the load has been running; time never goes back."""
        self._timeline.advance(now_s)
        self._note_recent()

    def apply(self, core: int, delta: Delta, at_s: float | None = None, *, merged: int = 1) -> bool:
        """Add a core's delta, which ends at `at_s` of load time and was merged of that many; False
        if it was known already."""
        use = self._cores.setdefault(core, CoreTally())
        if delta.seq <= use.seq:
            return False
        end_s = self.elapsed_s if at_s is None else at_s
        amounts = Amounts(
            iterations=delta.iteration.count if delta.iteration else 0,
            dropped=delta.dropped,
        )
        for step in delta.steps:
            self._steps[step.name].apply(step)
            amounts.requests += step.count
            amounts.failed += step.failed
            amounts.bytes_in += step.bytes_in
            amounts.bytes_out += step.bytes_out
        for check in delta.checks:
            self._apply_check(check)
        for metric in delta.metrics:
            self._metrics[metric.name].apply(metric)
        if delta.iteration is not None:
            self._iteration.add(delta.iteration)
        self.requests += amounts.requests
        self.failed += amounts.failed
        self.iterations += amounts.iterations
        self.dropped += delta.dropped
        self.interrupted += delta.interrupted
        self._timeline.add(
            use.until_s,
            end_s,
            amounts,
            [(s.service, s.response) for s in delta.steps if s.service is not None],
            merged,
        )
        use.apply(delta, end_s, merged)
        self._note_vus()
        self._note_recent()
        return True

    def compact(self) -> None:
        """Take no more room than the sum of all that was added; for one of very many."""
        for step in self._steps.values():
            step.compact()
        for metric in self._metrics.values():
            metric.values.compact()
        for core in self._cores.values():
            core.lag.compact()
        self._iteration.compact()

    def check(self, delta: Delta) -> None:
        """Raises DamagedState for a delta of another workflow, before it is kept for later."""
        for known, told in (
            (self._steps, delta.steps),
            (self._checks, delta.checks),
            (self._metrics, delta.metrics),
        ):
            for one in told:
                if one.name not in known:
                    raise DamagedState(f"{self.name} has no {one.name!r} to tell numbers of")

    def gone(self, core: int) -> None:
        """A core ended or was lost: its numbers stay, its virtual users do not."""
        if core in self._cores:
            self._cores[core].vus = 0
            self._note_vus()

    def peaked(self, vus: int) -> None:
        """The most users there were, also if they came and went between two deltas."""
        self.facts.vus_max = max(self.facts.vus_max, vus)
        self._timeline.peaked(vus)

    def mark(self, text: str, at_s: float | None = None) -> None:
        """Note something that happened; after 200 marks later ones are not kept."""
        if len(self._marks) < MARKS_MAX:
            self._marks.append(Mark(at_s=self.elapsed_s if at_s is None else at_s, text=text))

    def recent_rate(self, seconds: float) -> float:
        """Requests per second over the last seconds (at most 30)."""
        since_s = self.elapsed_s - min(seconds, RECENT_S)
        at_s, total = self._recent[0]
        for moment in self._recent:
            if moment[0] > since_s:
                break
            at_s, total = moment
        span_s = self.elapsed_s - at_s
        return (self.requests - total) / span_s if span_s > 0 else 0.0

    def core_use(self) -> list[CoreUse]:
        return [use.freeze(core, self.name) for core, use in sorted(self._cores.items())]

    def freeze(self, *, buckets: bool = True) -> WorkflowResult:
        """The result so far. A live view leaves out the histogram buckets."""
        elapsed_s = self.elapsed_s
        return msgspec.structs.replace(
            self.facts,
            cores=self.facts.cores or len(self._cores),
            vus=self.vus,
            vus_max=max(self.facts.vus_max, self.vus_max),
            elapsed_s=elapsed_s,
            iterations=self.iterations,
            dropped_iterations=self.dropped,
            interrupted_iterations=self.interrupted,
            iteration=self._iteration.distribution(buckets=buckets),
            steps=[step.freeze(elapsed_s, buckets=buckets) for step in self._steps.values()],
            checks=[
                msgspec.structs.replace(check, samples=list(check.samples))
                for check in self._checks.values()
            ],
            metrics=[
                metric.freeze(elapsed_s, buckets=buckets) for metric in self._metrics.values()
            ],
            series=self._timeline.points(),
            marks=list(self._marks),
        )

    def export(self) -> bytes:
        """All that was measured, for `absorb` on another machine; facts stay here."""
        metrics = (metric.so_far() for metric in self._metrics.values())
        return exported.encode(
            AggregateState(
                version=exported.VERSION,
                workflow=self.name,
                dropped=self.dropped,
                interrupted=self.interrupted,
                vus_max=max(self.facts.vus_max, self.vus_max),
                iteration=self._iteration.sparse(),
                steps=[step.so_far() for step in self._steps.values()],
                checks=[
                    CheckDelta(check.name, check.passed, check.failed, check.samples)
                    for check in self._checks.values()
                ],
                metrics=[metric for metric in metrics if metric is not None],
                cores={core: use.so_far() for core, use in self._cores.items()},
                marks=self._marks,
                timeline=self._timeline.export(),
            )
        )

    def absorb(self, state: bytes, *, core_base: int = 0) -> None:
        """Add what another aggregate of this workflow measured, at the same time or before.

        Its core n counts as core `core_base + n` here. Whoever calls sees to it that nothing is
        absorbed twice. DamagedState leaves everything as it was.
        """
        other = self._readable(state)
        for core, use in other.cores.items():
            known = self._cores.setdefault(core_base + core, CoreTally())
            known.absorb(use)
        self._add(other)

    def restore(self, core: int, state: bytes, seq: int) -> None:
        """Begin with a snapshot of one source, told as `core`, whose deltas up to `seq` are in it.

        The deltas that follow are applied as those of `core`."""
        other = self._readable(state)
        known = self._cores.setdefault(core, CoreTally())
        for use in other.cores.values():
            known.absorb(use)
        known.seq = max(seq, 0)
        self._add(other)

    def _readable(self, state: bytes) -> AggregateState:
        other = exported.decode(state)
        strange = other.workflow != self.name or not (
            self._steps.keys() >= {step.name for step in other.steps}
            and self._checks.keys() >= {check.name for check in other.checks}
            and self._metrics.keys() >= {metric.name for metric in other.metrics}
        )
        if strange:
            raise DamagedState(f"the numbers given for {self.name} are of another workflow")
        return other

    def _add(self, other: AggregateState) -> None:
        for step in other.steps:
            self._steps[step.name].apply(step)
            self.requests += step.count
            self.failed += step.failed
        for check in other.checks:
            self._apply_check(check)
        for metric in other.metrics:
            self._metrics[metric.name].apply(metric)
        if other.iteration is not None:
            self._iteration.add(other.iteration)
            self.iterations += other.iteration.count
        self.dropped += other.dropped
        self.interrupted += other.interrupted
        self._timeline.absorb(other.timeline, sum(core.vus for core in other.cores.values()))
        self.vus_max = max(self.vus_max, other.vus_max, self._timeline.vus_max)
        marks = sorted([*self._marks, *other.marks], key=lambda mark: (mark.at_s, mark.text))
        self._marks = marks[:MARKS_MAX]
        self._recent = deque(self._timeline.recent(RECENT_S))

    def _apply_check(self, delta: CheckDelta) -> None:
        check = self._checks[delta.name]
        check.passed += delta.passed
        check.failed += delta.failed
        check.samples.extend(delta.samples[: SAMPLES_MAX - len(check.samples)])

    def _note_vus(self) -> None:
        vus = self.vus
        self.vus_max = max(self.vus_max, vus)
        self._timeline.vus(vus)

    def _note_recent(self) -> None:
        recent = self._recent
        if len(recent) > 1 and self.elapsed_s - recent[-2][0] < RECENT_STEP_S:
            recent.pop()
        recent.append((self.elapsed_s, self.requests))
        while len(recent) > 1 and recent[1][0] <= self.elapsed_s - RECENT_S:
            recent.popleft()

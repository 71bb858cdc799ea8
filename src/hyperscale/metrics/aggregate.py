"""The parent's side of the numbers: deltas of all cores in, results out, live or final.

Totals only ever grow, a repeated or old delta of a core changes nothing, and memory depends on
the number of steps, not on the length of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping

import msgspec

from hyperscale.metrics import exported
from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    GroupDelta,
    RequestDelta,
)
from hyperscale.metrics.exported import AggregateState, DamagedState, TimelineState
from hyperscale.metrics.failures import add_counts
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.results import (
    CoreUse,
    GroupResult,
    Mark,
    StepResult,
    WorkflowResult,
)
from hyperscale.metrics.tallies import (
    CoreTally,
    MetricKind,
)
from hyperscale.metrics.tiers import POINTS_MAX
from hyperscale.metrics.timeline import Timeline
from hyperscale.metrics.workflow_tally import WorkflowTally

MARKS_MAX = 200
RECENT_S = 30.0  # how far back recent_rate can look
RECENT_STEP_S = 0.05


class WorkflowAggregate(WorkflowTally):
    """One workflow over all its cores.

    `facts` holds what does not come from deltas (load model, state, plan, error); whoever runs
    the workflow writes them there and they appear in every frozen result. `places` are hooks that
    show as steps only if requests were made in them; `reserved` names of requests are kept
    apart however many others there are.
    """

    def __init__(
        self,
        name: str,
        steps: Iterable[StepResult | str] = (),
        checks: Iterable[str] = (),
        metrics: Mapping[str, MetricKind] | None = None,
        *,
        places: Iterable[StepResult] = (),
        reserved: Container[str] = (),
        points_max: int = POINTS_MAX,
    ) -> None:
        super().__init__(name, steps, checks, metrics, places, reserved, points_max)
        self.facts = WorkflowResult(name=name)
        self.vus_max = 0
        self._cores: dict[int, CoreTally] = {}
        self._timeline = Timeline(points_max, ranged=True)
        self._marks: list[Mark] = []
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])

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
        for one in delta.requests:
            amounts.requests += one.count
            amounts.failed += one.failed
            amounts.bytes_in += one.bytes_in
            amounts.bytes_out += one.bytes_out
        self._tally(delta)
        for name, several in _by_step(delta.requests).items():
            self._steps[name].timeline.add(
                use.until_s,
                end_s,
                Amounts(sum(r.count for r in several), sum(r.failed for r in several)),
                _latencies(several),
                merged,
            )
        self._timeline.add(use.until_s, end_s, amounts, _latencies(delta.requests), merged)
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

    def gone(self, core: int) -> None:
        """A core ended or was lost: its numbers stay, its virtual users do not."""
        if core in self._cores:
            self._cores[core].vus = 0
            self._note_vus()

    def unmeasured_requests(self, phase: str, count: int) -> None:
        """Requests that no delta can tell of."""
        if count:
            add_counts(self.unmeasured, {phase: count})

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
            stopped_iterations=self.stopped_iterations,
            stopped_users=self.stopped_users,
            unmeasured=dict(self.unmeasured),
            cpu_seconds=self.cpu_s,
            offered_load=self.offered,
            steps=[
                step.freeze(elapsed_s, buckets=buckets)
                for step in self._steps.values()
                if step.listed or step.requests or step.failed
            ],
            groups=[
                GroupResult(
                    name=name,
                    workflow=self.name,
                    duration=duration.distribution(buckets=buckets),
                )
                for name, duration in self._groups.items()
            ],
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
        steps = self._steps.values()
        timelines = {step.template.name: step.timeline.export() for step in steps if step.requests}
        return exported.encode(self._state(self._timeline.export(), timelines))

    def brief(self) -> bytes:
        """The same without how it went over time, which is most of it; `exported.spread` makes
        something that can be absorbed of it."""
        amounts = self._timeline.totals()
        return exported.encode(self._state(exported.one_slot(self.elapsed_s, amounts), {}))

    def _state(
        self, timeline: TimelineState, step_timelines: dict[str, TimelineState]
    ) -> AggregateState:
        steps = self._steps.values()
        metrics = (metric.so_far() for metric in self._metrics.values())
        return AggregateState(
            version=exported.VERSION,
            workflow=self.name,
            dropped=self.dropped,
            interrupted=self.interrupted,
            vus_max=max(self.facts.vus_max, self.vus_max),
            iteration=self._iteration.sparse(),
            steps=[so_far for step in steps if (so_far := step.so_far()) is not None],
            checks=[
                CheckDelta(c.name, c.passed, c.failed, c.samples, c.first)
                for c in self._checks.values()
            ],
            metrics=[metric for metric in metrics if metric is not None],
            cores={core: use.so_far() for core, use in self._cores.items()},
            marks=self._marks,
            timeline=timeline,
            requests=[one.so_far() for step in steps for one in step.requests.values()],
            groups=[
                GroupDelta(name, sparse)
                for name, duration in self._groups.items()
                if (sparse := duration.sparse()) is not None
            ],
            step_timelines=step_timelines,
            stopped_iterations=self.stopped_iterations,
            stopped_users=self.stopped_users,
            unmeasured=self.unmeasured,
            cpu_s=self.cpu_s,
            offered=self.offered,
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
            and self._steps.keys() >= {request.key.step for request in other.requests}
            and self._steps.keys() >= other.step_timelines.keys()
            and self._checks.keys() >= {check.name for check in other.checks}
        )
        if strange:
            raise DamagedState(f"the numbers given for {self.name} are of another workflow")
        return other

    def _add(self, other: AggregateState) -> None:
        self._tally(other)
        for name, timeline in other.step_timelines.items():
            self._steps[name].timeline.absorb(timeline, 0)
        self._timeline.absorb(other.timeline, sum(core.vus for core in other.cores.values()))
        self.vus_max = max(self.vus_max, other.vus_max, self._timeline.vus_max)
        marks = sorted([*self._marks, *other.marks], key=lambda mark: (mark.at_s, mark.text))
        self._marks = marks[:MARKS_MAX]
        self._recent = deque(self._timeline.recent(RECENT_S))

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


def _by_step(requests: Iterable[RequestDelta]) -> dict[str, list[RequestDelta]]:
    found: dict[str, list[RequestDelta]] = {}
    for request in requests:
        found.setdefault(request.key.step, []).append(request)
    return found


def _latencies(requests: Iterable[RequestDelta]) -> list[tuple[Sparse, Sparse | None]]:
    return [(one.service, one.response) for one in requests if one.service is not None]

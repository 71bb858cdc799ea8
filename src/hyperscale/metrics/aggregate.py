"""The parent's side of the numbers: deltas of all cores in, results out, live or final.

Totals only ever grow, a repeated or old delta of a core changes nothing, and memory depends on
the number of steps, not on the length of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from hyperscale.metrics.delta import CheckDelta, Delta, MetricDelta, StepDelta
from hyperscale.metrics.failures import SAMPLES_MAX, FailureKinds
from hyperscale.metrics.histogram import VALUES, Histogram
from hyperscale.metrics.results import (
    CheckResult,
    CoreUse,
    ErrorCount,
    Mark,
    MetricResult,
    StepResult,
    WorkflowResult,
)
from hyperscale.metrics.saturation import BUSY
from hyperscale.metrics.timeline import Amounts, LatencyPair, Timeline

MetricKind = Literal["count", "rate", "distribution", "sample"]

PHASES = ("dns", "connect", "tls", "write", "wait", "read")
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
        width_s: float = 1.0,
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
        self._steps = {template.name: _Step(template) for template in templates}
        self._checks = {check: CheckResult(name=check, workflow=name) for check in checks}
        self._metrics = {
            metric: _Metric(metric, name, kind) for metric, kind in (metrics or {}).items()
        }
        self._iteration = Histogram()
        self._cores: dict[int, _Core] = {}
        self._timeline = Timeline(width_s)
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

    def apply(self, core: int, delta: Delta, at_s: float | None = None) -> bool:
        """Add a core's delta, which ends at `at_s` of load time; False if it was known already."""
        use = self._cores.setdefault(core, _Core())
        if delta.seq <= use.seq:
            return False
        end_s = self.elapsed_s if at_s is None else at_s
        amounts = Amounts(
            iterations=sum(delta.iteration.counts) if delta.iteration else 0,
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
        )
        use.apply(delta, end_s)
        self._note_vus()
        self._note_recent()
        return True

    def gone(self, core: int) -> None:
        """A core ended or was lost: its numbers stay, its virtual users do not."""
        if core in self._cores:
            self._cores[core].vus = 0
            self._note_vus()

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


class _Step:
    def __init__(self, template: StepResult) -> None:
        self.template = template
        self.count = 0
        self.failed = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.latency = LatencyPair()
        self.phases: dict[str, Histogram] = {}
        self.statuses: dict[int, int] = {}
        self.failures = FailureKinds()

    def apply(self, delta: StepDelta) -> None:
        self.count += delta.count
        self.failed += delta.failed
        self.bytes_in += delta.bytes_in
        self.bytes_out += delta.bytes_out
        if delta.service is not None:
            self.latency.add(delta.service, delta.response)
        for phase, durations in delta.phases.items():
            self.phases.setdefault(phase, Histogram()).add(durations)
        for status, count in delta.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.failures.merge(delta.errors)

    def freeze(self, elapsed_s: float, *, buckets: bool) -> StepResult:
        service = self.latency.service.distribution(buckets=buckets)
        response = service
        if self.latency.response is not self.latency.service:
            response = self.latency.response.distribution(buckets=buckets)
        return msgspec.structs.replace(
            self.template,
            count=self.count,
            failed=self.failed,
            rate=self.count / elapsed_s if elapsed_s > 0 else 0.0,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            service=service,
            response=response,
            phases={
                phase: self.phases[phase].distribution(buckets=buckets)
                for phase in PHASES
                if phase in self.phases
            },
            statuses={str(status): self.statuses[status] for status in sorted(self.statuses)},
            errors=[
                ErrorCount(outcome=e.outcome, detail=e.detail, count=e.count, samples=e.samples)
                for e in self.failures.snapshot()
            ],
        )


class _Metric:
    """A custom metric. Of a rate the value is the mean, which for yes or no is the share of yes."""

    def __init__(self, name: str, workflow: str, kind: MetricKind) -> None:
        self.name = name
        self.workflow = workflow
        self.kind = kind
        self.values = Histogram(VALUES)
        self.last = 0.0

    def apply(self, delta: MetricDelta) -> None:
        self.values.add(delta.values)
        self.last = delta.last

    def freeze(self, elapsed_s: float, *, buckets: bool) -> MetricResult:
        spread = self.kind in ("distribution", "sample")
        amount = self.values.count if spread else self.values.total
        values = {
            "count": self.values.total,
            "rate": self.values.mean,
            "distribution": self.values.mean,
            "sample": self.last,
        }
        return MetricResult(
            name=self.name,
            workflow=self.workflow,
            kind=self.kind,
            count=self.values.count,
            value=values[self.kind],
            per_second=amount / elapsed_s if elapsed_s > 0 else 0.0,
            distribution=self.values.distribution(buckets=buckets) if spread else None,
        )


class _Core:
    """The last word of one generator process, and how busy it was."""

    def __init__(self) -> None:
        self.seq = 0
        self.until_s = 0.0
        self.vus = 0
        self.cpu_sum = 0.0
        self.cpu_max = 0.0
        self.busy = 0
        self.deltas = 0
        self.rss_mb = 0.0
        self.lag = Histogram()

    def apply(self, delta: Delta, until_s: float) -> None:
        self.seq = delta.seq
        self.until_s = until_s
        self.vus = delta.vus
        self.deltas += 1
        self.cpu_sum += delta.cpu
        self.cpu_max = max(self.cpu_max, delta.cpu)
        self.busy += delta.cpu >= BUSY
        self.rss_mb = max(self.rss_mb, delta.rss_mb)
        if delta.lag is not None:
            self.lag.add(delta.lag)

    def freeze(self, core: int, workflow: str) -> CoreUse:
        return CoreUse(
            core=core,
            workflow=workflow,
            cpu_mean=self.cpu_sum / self.deltas if self.deltas else 0.0,
            cpu_max=self.cpu_max,
            busy_share=self.busy / self.deltas if self.deltas else 0.0,
            lag_p99_ms=self.lag.percentile(99) * 1000,
            rss_mb=self.rss_mb,
        )

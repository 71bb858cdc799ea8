"""What one workflow counted: requests, steps, groups, checks, metrics and iterations, summed from
deltas and from what other machines exported. `WorkflowAggregate` adds when it happened, and where.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import cast

from hyperscale.metrics.delta import CheckDelta, Delta, MetricDelta, RequestKey
from hyperscale.metrics.exported import AggregateState, DamagedState
from hyperscale.metrics.failures import SAMPLES_MAX, add_counts, earlier
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.recorder import METRICS_MAX, NAMES_MAX, OTHER_NAME, Tags
from hyperscale.metrics.results import CheckResult, StepResult
from hyperscale.metrics.tallies import (
    METRIC_KINDS,
    STEP_POINTS_MAX,
    MetricKind,
    MetricTally,
    RequestTally,
    StepTally,
)

NAME_MAX = 500  # characters of a request's or metric's name
TAGS_MAX = 50
_NO_TAGS: Tags = ()


class WorkflowTally:
    def __init__(
        self,
        name: str,
        steps: Iterable[StepResult | str],
        checks: Iterable[str],
        metrics: Mapping[str, MetricKind] | None,
        places: Iterable[StepResult],
        reserved: Container[str],
        points_max: int,
    ) -> None:
        self.name = name
        self.iterations = 0
        self.requests = 0
        self.failed = 0
        self.dropped = 0
        self.interrupted = 0
        self.stopped_iterations = 0
        self.stopped_users = 0
        self.unmeasured: dict[str, int] = {}
        self.cpu_s = 0.0
        self.offered: float | None = 0.0  # of the planned load; None: a part of it is not known
        templates = (
            s if isinstance(s, StepResult) else StepResult(name=s, workflow=name) for s in steps
        )
        points = min(points_max, STEP_POINTS_MAX)
        self._steps = {one.name: StepTally(one, points_max=points) for one in templates}
        for one in places:
            self._steps[one.name] = StepTally(one, points_max=points, listed=False)
        self._groups: dict[str, Histogram] = {}
        self._names = 0
        self._reserved = reserved
        self._checks = {check: CheckResult(name=check, workflow=name) for check in checks}
        self._metrics: dict[tuple[str, str, Tags], MetricTally] = {
            (metric, kind, _NO_TAGS): MetricTally(metric, name, kind)
            for metric, kind in (metrics or {}).items()
        }
        self._iteration = Histogram()

    def service_times(self) -> Histogram:
        """Of all requests, whatever their name."""
        total = Histogram()
        for step in self._steps.values():
            for request in step.requests.values():
                total.merge(request.latency.service)
        return total

    def check(self, delta: Delta) -> None:
        """Raises DamagedState for a delta of another workflow, before it is kept for later."""
        for request in delta.requests:
            self._known(request.key.step, self._steps)
            if len(request.key.name) > NAME_MAX or len(request.key.tags) > TAGS_MAX:
                raise DamagedState(f"{self.name} is told of requests with too long a name")
        for step in delta.steps:
            self._known(step.name, self._steps)
        for check in delta.checks:
            self._known(check.name, self._checks)
        for metric in delta.metrics:
            if metric.kind not in METRIC_KINDS or len(metric.name) > NAME_MAX:
                raise DamagedState(f"{self.name} is told of a metric of no kind")

    def _known(self, name: str, known: Container[str]) -> None:
        if name not in known:
            raise DamagedState(f"{self.name} has no {name!r} to tell numbers of")

    def _tally(self, told: Delta | AggregateState) -> None:
        """Add all but the timelines."""
        for request in told.requests:
            self._request(request.key).apply(request)
            self.requests += request.count
            self.failed += request.failed
        for step in told.steps:
            self._steps[step.name].apply(step)
        for group in told.groups:
            if group.name not in self._groups:
                self._groups[group.name] = Histogram()
            self._groups[group.name].add(group.duration)
        for check in told.checks:
            self._apply_check(check)
        for metric in told.metrics:
            self._apply_metric(metric)
        if told.iteration is not None:
            self._iteration.add(told.iteration)
            self.iterations += told.iteration.count
        self.dropped += told.dropped
        self.interrupted += told.interrupted
        self.stopped_iterations += told.stopped_iterations
        self.stopped_users += told.stopped_users
        add_counts(self.unmeasured, told.unmeasured)
        self.cpu_s += told.cpu_s
        if self.offered is not None:
            self.offered = None if told.offered is None else self.offered + told.offered

    def _request(self, key: RequestKey) -> RequestTally:
        step = self._steps[key.step]
        if key not in step.requests:
            if self._names >= NAMES_MAX and key.name not in self._reserved:
                key = RequestKey(key.step, "", OTHER_NAME, key.kind)
            self._names += key not in step.requests
        return step.of(key)

    def _apply_metric(self, delta: MetricDelta) -> None:
        """Beyond the most tags numbers are told without them; beyond twice as many not at all."""
        key = (delta.name, delta.kind or self._kind_of(delta.name), delta.tags)
        if key not in self._metrics and len(self._metrics) >= METRICS_MAX:
            key = (delta.name, key[1], _NO_TAGS)
        if key not in self._metrics:
            if len(self._metrics) >= 2 * METRICS_MAX:
                return
            kind = cast(MetricKind, key[1])
            self._metrics[key] = MetricTally(delta.name, self.name, kind, key[2])
        self._metrics[key].apply(delta)

    def _kind_of(self, metric: str) -> str:
        return next((kind for name, kind, _ in self._metrics if name == metric), "distribution")

    def _apply_check(self, delta: CheckDelta) -> None:
        check = self._checks[delta.name]
        check.passed += delta.passed
        check.failed += delta.failed
        check.samples.extend(delta.samples[: SAMPLES_MAX - len(check.samples)])
        check.first = earlier(check.first, delta.first)

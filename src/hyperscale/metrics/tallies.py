"""What an aggregate adds up per step, custom metric and generator process.

Each takes deltas and freezes into its part of the result; each can also tell its state as a delta
of everything so far, which is how aggregates of other machines are added to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec

from hyperscale.metrics.delta import Delta, MetricDelta, RequestDelta, RequestKey, StepDelta
from hyperscale.metrics.exported import CoreState
from hyperscale.metrics.failures import FailureKinds, add_counts
from hyperscale.metrics.histogram import VALUES, Histogram
from hyperscale.metrics.interval import LatencyPair
from hyperscale.metrics.results import (
    CoreUse,
    ErrorCount,
    MetricResult,
    Point,
    RequestResult,
    StepPoint,
    StepResult,
)
from hyperscale.metrics.saturation import BUSY
from hyperscale.metrics.timeline import Timeline

MetricKind = Literal["count", "rate", "distribution", "sample"]
METRIC_KINDS: tuple[str, ...] = get_args(MetricKind)

PHASES = ("dns", "connect", "tls", "write", "wait", "read")
# Of a step's own timeline: seconds for five minutes, then wider.
STEP_POINTS_MAX = 300


class RequestTally:
    def __init__(self, key: RequestKey) -> None:
        self.key = key
        self.count = 0
        self.failed = 0
        self.unsent = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.latency = LatencyPair()
        self.phases: dict[str, Histogram] = {}
        self.statuses: dict[int, int] = {}
        self.failures = FailureKinds()

    def apply(self, delta: RequestDelta) -> None:
        self.count += delta.count
        self.failed += delta.failed
        self.unsent += delta.unsent
        self.bytes_in += delta.bytes_in
        self.bytes_out += delta.bytes_out
        if delta.service is not None:
            self.latency.add(delta.service, delta.response)
        for phase, durations in delta.phases.items():
            if phase not in self.phases:
                self.phases[phase] = Histogram()
            self.phases[phase].add(durations)
        for status, count in delta.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.failures.merge(delta.errors)

    def compact(self) -> None:
        self.latency.compact()
        for durations in self.phases.values():
            durations.compact()

    def so_far(self) -> RequestDelta:
        service, response = self.latency.sparse()
        return RequestDelta(
            self.key,
            count=self.count,
            failed=self.failed,
            unsent=self.unsent,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            service=service,
            response=response,
            phases={
                name: durations
                for name, histogram in self.phases.items()
                if (durations := histogram.sparse()) is not None
            },
            statuses=dict(self.statuses),
            errors=self.failures.snapshot(),
        )

    def numbers(self, elapsed_s: float, *, buckets: bool) -> dict[str, Any]:
        """The fields that results of requests and of steps have in common."""
        service = self.latency.service.distribution(buckets=buckets)
        response = service
        if self.latency.response is not self.latency.service:
            response = self.latency.response.distribution(buckets=buckets)
        return {
            "count": self.count,
            "failed": self.failed,
            "unsent": self.unsent,
            "rate": self.count / elapsed_s if elapsed_s > 0 else 0.0,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "service": service,
            "response": response,
            "phases": {
                phase: self.phases[phase].distribution(buckets=buckets)
                for phase in PHASES
                if phase in self.phases
            },
            "statuses": {str(status): self.statuses[status] for status in sorted(self.statuses)},
            "errors": error_counts(self.failures),
        }


class StepTally:
    """A step's own runs, and the tallies of its requests by name.

    A step without any of them shows only if it is `listed`: a check may call the target too."""

    def __init__(
        self, template: StepResult, *, points_max: int = STEP_POINTS_MAX, listed: bool = True
    ) -> None:
        self.template = template
        self.listed = listed
        self.requests: dict[RequestKey, RequestTally] = {}
        self.runs = 0
        self.failed = 0
        self.interrupted = 0
        self.duration = Histogram()
        self.skips: dict[str, int] = {}
        self.failures = FailureKinds()
        self._points_max = points_max

    @cached_property
    def timeline(self) -> Timeline:
        """Made when something happens: most hooks make no request, and every part has them all."""
        return Timeline(self._points_max)

    def of(self, key: RequestKey) -> RequestTally:
        tally = self.requests.get(key)
        if tally is None:
            tally = self.requests[key] = RequestTally(key)
        return tally

    def apply(self, delta: StepDelta) -> None:
        self.runs += delta.runs
        self.failed += delta.failed
        self.interrupted += delta.interrupted
        if delta.duration is not None:
            self.duration.add(delta.duration)
        add_counts(self.skips, delta.skips)
        self.failures.merge(delta.errors)

    def compact(self) -> None:
        self.duration.compact()
        for request in self.requests.values():
            request.compact()

    def so_far(self) -> StepDelta | None:
        told = StepDelta(
            self.template.name,
            self.runs,
            self.failed,
            self.interrupted,
            self.duration.sparse(),
            dict(self.skips),
            self.failures.snapshot(),
        )
        return None if told == StepDelta(told.name) else told

    def freeze(self, elapsed_s: float, *, buckets: bool) -> StepResult:
        requests = list(self.requests.values())
        self.timeline.advance(elapsed_s)
        numbers = self._all().numbers(elapsed_s, buckets=buckets)
        template = self.template
        return msgspec.structs.replace(
            template,
            **numbers
            | {
                "kind": template.kind or next((r.key.kind for r in requests), ""),
                "errors": error_counts(self._all_failures()),
                "requests": [
                    RequestResult(
                        name=one.key.name,
                        step=template.name,
                        workflow=template.workflow,
                        kind=one.key.kind,
                        method=one.key.method,
                        tags={**template.tags, **dict(one.key.tags)},
                        **(
                            numbers
                            if len(requests) == 1
                            else one.numbers(elapsed_s, buckets=buckets)
                        ),
                    )
                    for one in requests
                ],
                "runs": self.runs,
                "runs_failed": self.failed,
                "runs_interrupted": self.interrupted,
                "skipped": sum(self.skips.values()),
                "skips": dict(self.skips),
                "duration": self.duration.distribution(buckets=buckets),
                "series": step_points(
                    self.timeline.points() if buckets else self.timeline.latest()
                ),
            },
        )

    def _all(self) -> RequestTally:
        """The requests of all names as one."""
        if len(self.requests) == 1:
            return next(iter(self.requests.values()))
        total = RequestTally(RequestKey(self.template.name))
        for request in self.requests.values():
            total.apply(request.so_far())
        return total

    def _all_failures(self) -> FailureKinds:
        kinds = FailureKinds()
        kinds.merge(self.failures.snapshot())
        for request in self.requests.values():
            kinds.merge(request.failures.snapshot())
        return kinds


def error_counts(failures: FailureKinds) -> list[ErrorCount]:
    return [
        ErrorCount(
            outcome=e.outcome, detail=e.detail, count=e.count, samples=e.samples, first=e.first
        )
        for e in failures.snapshot()
    ]


def step_points(points: Iterable[Point]) -> list[StepPoint]:
    return [
        StepPoint(
            at_s=point.at_s,
            width_s=point.width_s,
            requests=point.requests,
            failed=point.failed,
            p50_ms=point.p50_ms,
            p95_ms=point.p95_ms,
            p99_ms=point.p99_ms,
        )
        for point in points
    ]


class MetricTally:
    """A custom metric. Of a rate the value is the mean, which for yes or no is the share of yes."""

    def __init__(
        self, name: str, workflow: str, kind: MetricKind, tags: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.name = name
        self.workflow = workflow
        self.kind = kind
        self.tags = tags
        self.values = Histogram(VALUES)
        self.last = 0.0

    def apply(self, delta: MetricDelta) -> None:
        self.values.add(delta.values)
        self.last = delta.last

    def so_far(self) -> MetricDelta | None:
        values = self.values.sparse()
        if values is None:
            return None
        return MetricDelta(self.name, values, self.last, self.kind, self.tags)

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
            tags=dict(self.tags),
            count=self.values.count,
            value=values[self.kind],
            per_second=amount / elapsed_s if elapsed_s > 0 else 0.0,
            distribution=self.values.distribution(buckets=buckets) if spread else None,
        )


class CoreTally:
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

    def apply(self, delta: Delta, until_s: float, merged: int) -> None:
        self.seq = delta.seq
        self.until_s = until_s
        self.vus = delta.vus
        self.deltas += merged
        self.cpu_sum += delta.cpu * merged
        self.cpu_max = max(self.cpu_max, delta.cpu)
        self.busy += merged if delta.cpu >= BUSY else 0
        self.rss_mb = max(self.rss_mb, delta.rss_mb)
        if delta.lag is not None:
            self.lag.add(delta.lag)

    def so_far(self) -> CoreState:
        return CoreState(
            seq=self.seq,
            until_s=self.until_s,
            vus=self.vus,
            cpu_sum=self.cpu_sum,
            cpu_max=self.cpu_max,
            busy=self.busy,
            deltas=self.deltas,
            rss_mb=self.rss_mb,
            lag=self.lag.sparse(),
        )

    def absorb(self, other: CoreState) -> None:
        """Add another life of this core, or a core where several are told as one."""
        self.seq = max(self.seq, other.seq)
        self.until_s = max(self.until_s, other.until_s)
        self.vus += other.vus
        self.cpu_sum += other.cpu_sum
        self.cpu_max = max(self.cpu_max, other.cpu_max)
        self.busy += other.busy
        self.deltas += other.deltas
        self.rss_mb = max(self.rss_mb, other.rss_mb)
        if other.lag is not None:
            self.lag.add(other.lag)

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

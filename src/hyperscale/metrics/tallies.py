"""What an aggregate adds up per step, custom metric and generator process.

Each takes deltas and freezes into its part of the result; each can also tell its state as a delta
of everything so far, which is how aggregates of other machines are added to it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from hyperscale.metrics.delta import Delta, MetricDelta, StepDelta
from hyperscale.metrics.exported import CoreState
from hyperscale.metrics.failures import FailureKinds
from hyperscale.metrics.histogram import VALUES, Histogram
from hyperscale.metrics.interval import LatencyPair
from hyperscale.metrics.results import CoreUse, ErrorCount, MetricResult, StepResult
from hyperscale.metrics.saturation import BUSY

MetricKind = Literal["count", "rate", "distribution", "sample"]

PHASES = ("dns", "connect", "tls", "write", "wait", "read")


class StepTally:
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

    def so_far(self) -> StepDelta:
        service, response = self.latency.sparse()
        return StepDelta(
            name=self.template.name,
            count=self.count,
            failed=self.failed,
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


class MetricTally:
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

    def so_far(self) -> MetricDelta | None:
        values = self.values.sparse()
        return None if values is None else MetricDelta(self.name, values, self.last)

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

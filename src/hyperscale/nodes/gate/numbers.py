"""The numbers of a job while it runs: of one datacenter, and of all of them merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import Distribution
from hyperscale.nodes.protocol.jobs import DatacenterView
from hyperscale.runtime.host import Clock

# Merging takes a millisecond for each hundred of steps, and people read no faster.
SPREAD_S = 1.0


def service_times(aggregates: Iterable[WorkflowAggregate]) -> Histogram:
    total = Histogram()
    for aggregate in aggregates:
        total.merge(aggregate.service_times())
    return total


class LiveNumbers:
    """Counts as they are now, percentiles as they were a second ago at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spread = Distribution()
        self._spread_at = float("-inf")

    def put_into(
        self, view: DatacenterView, aggregates: Sequence[WorkflowAggregate]
    ) -> DatacenterView:
        now = self._clock.now()
        if now - self._spread_at >= SPREAD_S:
            self._spread_at = now
            self._spread = service_times(aggregates).distribution(buckets=False)
        spread = self._spread
        return msgspec.structs.replace(
            view,
            requests=sum(one.requests for one in aggregates),
            failed=sum(one.failed for one in aggregates),
            vus=sum(one.vus for one in aggregates),
            elapsed_s=round(max((one.elapsed_s for one in aggregates), default=0.0), 3),
            p50_ms=spread.p50_ms,
            p95_ms=spread.p95_ms,
            p99_ms=spread.p99_ms,
            max_ms=spread.max_ms,
        )

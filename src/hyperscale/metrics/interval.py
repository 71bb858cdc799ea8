"""What is known of one interval of a run: counts, users and latencies, mergeable by addition.

Latencies stay packed histograms however old the interval is. Kept percentiles would be smaller but
cannot be joined; so the percentiles of a joined interval are true ones and not averages.
"""

from __future__ import annotations

import msgspec

from hyperscale.metrics.exported import Counts, SlotState
from hyperscale.metrics.histogram import Histogram, Sparse
from hyperscale.metrics.ranges import ranges
from hyperscale.metrics.results import Point


class Amounts(msgspec.Struct):
    """What is counted per interval."""

    requests: int = 0
    failed: int = 0
    iterations: int = 0
    dropped: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def add(self, other: Amounts) -> None:
        self.requests += other.requests
        self.failed += other.failed
        self.iterations += other.iterations
        self.dropped += other.dropped
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out

    def counts(self) -> Counts:
        return (
            self.requests,
            self.failed,
            self.iterations,
            self.dropped,
            self.bytes_in,
            self.bytes_out,
        )

    def divide(self, share: float) -> tuple[Amounts, Amounts]:
        """Two parts that add up to the whole, the first with `share` of it."""
        first = Amounts(*(int(amount * share) for amount in msgspec.structs.astuple(self)))
        rest = Amounts(
            *(
                whole - part
                for whole, part in zip(
                    msgspec.structs.astuple(self), msgspec.structs.astuple(first), strict=True
                )
            )
        )
        return first, rest


class LatencyPair:
    """Service and response times; the second exists only once they have differed."""

    __slots__ = ("_response", "service")

    def __init__(self) -> None:
        self.service = Histogram()
        self._response: Histogram | None = None

    @property
    def response(self) -> Histogram:
        return self.service if self._response is None else self._response

    def add(self, service: Sparse, response: Sparse | None) -> None:
        if response is not None and self._response is None:
            self._response = self.service.copy()
        if self._response is not None:
            self._response.add(response or service)
        self.service.add(service)

    def merge(self, other: LatencyPair) -> None:
        if other._response is not None and self._response is None:
            self._response = self.service.copy()
        if self._response is not None:
            self._response.merge(other.response)
        self.service.merge(other.service)

    def sparse(self) -> tuple[Sparse | None, Sparse | None]:
        """As they travel: the second is None where response times are the service times."""
        response = None if self._response is None else self._response.sparse()
        return self.service.sparse(), response

    def compact(self) -> None:
        self.service.compact()
        if self._response is not None:
            self._response.compact()

    @property
    def packed_bytes(self) -> int:
        """What the histograms weigh."""
        return sum(
            len(sparse.packed_buckets) + len(sparse.packed_counts)
            for sparse in self.sparse()
            if sparse is not None
        )


_NONE = LatencyPair()


class Interval:
    __slots__ = ("_latency", "amounts", "point", "start_s", "vus", "width_s")

    def __init__(self, start_s: int, width_s: int, vus: int = 0) -> None:
        self.start_s = start_s
        self.width_s = width_s
        self.amounts = Amounts()
        self._latency: LatencyPair | None = None  # until there is one: many intervals are empty
        self.vus = vus
        self.point: Point | None = None  # kept while the interval is neither changed nor recent

    @property
    def end_s(self) -> int:
        return self.start_s + self.width_s

    @property
    def packed_bytes(self) -> int:
        """What its histograms weigh."""
        return 0 if self._latency is None else self._latency.packed_bytes

    @property
    def latency(self) -> LatencyPair:
        """To add to."""
        if self._latency is None:
            self._latency = LatencyPair()
        return self._latency

    def compact(self) -> None:
        if self._latency is not None:
            self._latency.compact()

    def count(self, amounts: Amounts) -> None:
        self.amounts.add(amounts)
        self.point = None

    def absorb(self, other: Interval) -> None:
        """Join a neighbour; the most users of either are the most of both."""
        self.amounts.add(other.amounts)
        if other._latency is not None:
            self.latency.merge(other._latency)
        self.vus = max(self.vus, other.vus)
        self.point = None

    def add(self, other: SlotState) -> None:
        """Add what happened elsewhere in the same time."""
        self.amounts.add(Amounts(*other.amounts))
        self.vus += other.vus
        if other.service is not None:
            self.latency.add(other.service, other.response)
        self.point = None

    def export(self) -> SlotState:
        service, response = (None, None) if self._latency is None else self._latency.sparse()
        return SlotState(self.width_s, self.amounts.counts(), self.vus, service, response)

    def measure(self, width_s: float | None = None, *, ranged: bool = False) -> Point:
        """With another width for an interval that is not over, or has its end added."""
        latency = _NONE if self._latency is None else self._latency
        service, response = latency.service, latency.response
        p50, p95, p99 = service.percentiles((50, 95, 99))
        return Point(
            at_s=float(self.start_s),
            width_s=float(self.width_s) if width_s is None else width_s,
            requests=self.amounts.requests,
            failed=self.amounts.failed,
            iterations=self.amounts.iterations,
            dropped=self.amounts.dropped,
            vus=self.vus,
            bytes_in=self.amounts.bytes_in,
            bytes_out=self.amounts.bytes_out,
            p50_ms=p50 * 1000,
            p95_ms=p95 * 1000,
            p99_ms=p99 * 1000,
            max_ms=service.high * 1000 if service.count else 0.0,
            response_p99_ms=(p99 if response is service else response.percentile(99)) * 1000,
            ranges=ranges(service) if ranged else [],
        )

"""The course of a run as at most 600 intervals, however long it lasts.

When the intervals run out, neighbours merge and the width doubles. Each interval keeps its
histogram, so the percentiles of a merged interval are true ones and not averages. Deltas arrive
every 100 ms or so, across the borders of intervals: their counts are shared between the two
sides by time, else the rate would flicker by one delta in ten.
"""

from __future__ import annotations

import math

import msgspec

from hyperscale.metrics.exported import Counts, SlotState, TimelineState, coarser
from hyperscale.metrics.histogram import Histogram, Sparse
from hyperscale.metrics.results import Point

POINTS_MAX = 600
# A delta covers the time since the one before, but no more than this: longer is silence.
DELTA_S_MAX = 0.25
# Fewer requests than this in a delta are not worth dividing.
REQUESTS_DIVIDED_MIN = 10


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


class Timeline:
    def __init__(self, width_s: float = 1.0, points_max: int = POINTS_MAX) -> None:
        self.width_s = width_s
        self.now_s = 0.0
        self._points_max = points_max
        self._slots = [_Slot()]
        self._vus = 0

    def __len__(self) -> int:
        return len(self._slots)

    def advance(self, now_s: float) -> None:
        """Let time pass: intervals in which nothing arrives are on the timeline too."""
        self.now_s = max(self.now_s, now_s)
        while self.now_s >= self._points_max * self.width_s:
            self._double()
        missing = int(self.now_s / self.width_s) + 1 - len(self._slots)
        for _ in range(missing):
            self._slots.append(_Slot(self._vus))
        if missing > 0:
            # Late deltas still reach the last interval but one; older ones rest.
            for slot in self._slots[-missing - 3 : -2]:
                slot.latency.compact()

    def vus(self, count: int) -> None:
        """The virtual users at this moment; an interval shows the most it saw."""
        self._vus = count
        self._slots[-1].vus = max(self._slots[-1].vus, count)

    def peaked(self, count: int) -> None:
        """Users of a load that was too short for them to be seen at any one moment."""
        if len(self._slots) == 1:
            self._slots[0].vus = max(self._slots[0].vus, count)

    @property
    def vus_max(self) -> int:
        return max(slot.vus for slot in self._slots)

    def add(
        self,
        start_s: float,
        end_s: float,
        amounts: Amounts,
        latencies: list[tuple[Sparse, Sparse | None]],
        deltas: int = 1,
    ) -> None:
        """Add what that many deltas tell of the time between two moments; the histograms go where
        the middle lies."""
        self.advance(end_s)
        end_s = max(0.0, end_s)
        start_s = min(end_s, max(0.0, start_s, end_s - deltas * DELTA_S_MAX))
        middle = self._slot((start_s + end_s) / 2)
        for service, response in latencies:
            middle.latency.add(service, response)
        middle.point = None
        if self._slot(start_s) is self._slot(end_s) or amounts.requests < REQUESTS_DIVIDED_MIN:
            middle.amounts.add(amounts)
            return
        for number in range(int(start_s / self.width_s), int(end_s / self.width_s)):
            border_s = (number + 1) * self.width_s
            before, amounts = amounts.divide((border_s - start_s) / (end_s - start_s))
            start_s = border_s
            self._slots[number].amounts.add(before)
            self._slots[number].point = None
        last = self._slot(end_s)
        last.amounts.add(amounts)
        last.point = None

    def export(self) -> TimelineState:
        return TimelineState(self.width_s, self.now_s, [slot.export() for slot in self._slots])

    def fits(self, other: TimelineState) -> bool:
        """Whether the intervals of both fall together once the finer ones are joined."""
        ratio = math.log2(other.width_s / self.width_s)
        return ratio == int(ratio)

    def absorb(self, other: TimelineState, vus: int) -> None:
        """Add another timeline, on which `vus` users live at this moment.

        Users of one interval add up: the two ran at the same time."""
        assert self.fits(other)
        self.advance(other.now_s)
        while self.width_s < other.width_s:
            self._double()
        while other.width_s < self.width_s:
            other = coarser(other)
        for number, slot in enumerate(self._slots):
            if number < len(other.slots):
                slot.add(other.slots[number])
            else:
                slot.vus += vus
            slot.point = None
            slot.latency.compact()
        self._vus += vus

    def recent(self, seconds: float) -> list[tuple[float, int]]:
        """Requests before the end of each of the last intervals, back that many seconds."""
        total, ends = 0, [(0.0, 0)]
        for number, slot in enumerate(self._slots, 1):
            total += slot.amounts.requests
            ends.append((min(number * self.width_s, self.now_s), total))
        older = sum(1 for end_s, _ in ends if end_s <= self.now_s - seconds)
        return ends[max(0, older - 1) :]

    def points(self) -> list[Point]:
        """The timeline so far. An end shorter than half an interval joins the one before it."""
        if self.now_s == 0 and self._slots[0].amounts == Amounts():
            return []
        points = []
        for number, slot in enumerate(self._slots[:-2]):
            if slot.point is None:
                slot.point = slot.measure(number * self.width_s, self.width_s)
            points.append(slot.point)
        at_s = len(points) * self.width_s
        tail = self._slots[-2:]
        rest_s = self.now_s - at_s - self.width_s
        if len(tail) == 2 and rest_s < self.width_s / 2:
            joined = _Slot()
            joined.absorb(tail[0])
            joined.absorb(tail[1])
            return [*points, joined.measure(at_s, self.width_s + rest_s)]
        for slot in tail:
            # Before any time has passed there is no true width to give.
            width_s = min(self.width_s, self.now_s - at_s) or self.width_s
            points.append(slot.measure(at_s, width_s))
            at_s += self.width_s
        return points

    def _slot(self, at_s: float) -> _Slot:
        return self._slots[min(int(at_s / self.width_s), len(self._slots) - 1)]

    def _double(self) -> None:
        self.width_s *= 2
        pairs = []
        for number in range(0, len(self._slots), 2):
            slot = self._slots[number]
            slot.point = None
            if number + 1 < len(self._slots):
                slot.absorb(self._slots[number + 1])
                slot.latency.compact()
            pairs.append(slot)
        self._slots = pairs


class _Slot:
    __slots__ = ("amounts", "latency", "point", "vus")

    def __init__(self, vus: int = 0) -> None:
        self.amounts = Amounts()
        self.latency = LatencyPair()
        self.vus = vus
        self.point: Point | None = None  # kept while the slot is neither changed nor recent

    def absorb(self, other: _Slot) -> None:
        self.amounts.add(other.amounts)
        self.latency.merge(other.latency)
        self.vus = max(self.vus, other.vus)

    def add(self, other: SlotState) -> None:
        self.amounts.add(Amounts(*other.amounts))
        self.vus += other.vus
        if other.service is not None:
            self.latency.add(other.service, other.response)

    def export(self) -> SlotState:
        service, response = self.latency.sparse()
        return SlotState(self.amounts.counts(), self.vus, service, response)

    def measure(self, at_s: float, width_s: float) -> Point:
        service, response = self.latency.service, self.latency.response
        p50, p95, p99 = service.percentiles((50, 95, 99))
        return Point(
            at_s=at_s,
            width_s=width_s,
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
        )

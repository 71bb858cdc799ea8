"""The course of a run: every second of the last quarter of an hour, coarser the older it is.

How coarse is decided in `tiers`; here intervals are filled and joined. Deltas arrive every 100 ms
or so, across the borders of intervals: their counts are shared between the two sides by time, else
the rate would flicker by one delta in ten.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import zip_longest

from hyperscale.metrics import tiers
from hyperscale.metrics.exported import Counts, TimelineState, regrouped
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.interval import Amounts, Interval
from hyperscale.metrics.results import Point
from hyperscale.metrics.tiers import LOAD_S_MAX, POINTS_MAX, Group, Stretch

# Beyond this the histograms of a timeline are made coarser. A usual second takes 0.4 to 1 KB, so
# most runs of any length stay below. Everything else of an interval takes some 1.2 KB: with 3,166
# of them, and what comes between two weighings, a workflow's timeline stays below 9 MB.
HISTOGRAM_BYTES_MAX = 4 << 20
WEIGHED_EVERY_S = 300.0
# A delta covers the time since the one before, but no more than this: longer is silence.
DELTA_S_MAX = 0.25
# Fewer requests than this in a delta are not worth dividing.
REQUESTS_DIVIDED_MIN = 10


class Timeline:
    """With room for all tiers, or for fewer points, which then are all of one width; `ranged`
    points also tell how latencies spread."""

    def __init__(self, points_max: int = POINTS_MAX, *, ranged: bool = False) -> None:
        self._ranged = ranged
        self.now_s = 0.0
        self._tiers = tiers.tiers_for(points_max)
        self._layout = tiers.layout(0.0, self._tiers)
        self._intervals = [Interval(*cell) for cell in tiers.cells(0, 0.0, self._layout)]
        self._vus = 0
        self._weigh_at_s = WEIGHED_EVERY_S

    def __len__(self) -> int:
        return len(self._intervals)

    def advance(self, now_s: float) -> None:
        """Let time pass: intervals in which nothing arrives are on the timeline too."""
        self.now_s = max(self.now_s, min(now_s, LOAD_S_MAX))
        if self.now_s < self._intervals[-1].end_s:
            return
        layout = tiers.layout(self.now_s, self._tiers)
        if layout != self._layout:
            self._settle(layout)
        if self.now_s >= self._weigh_at_s:
            self._weigh_at_s = self.now_s + WEIGHED_EVERY_S
            self._limit()
        begin_s, before = self._intervals[-1].end_s, len(self._intervals)
        for start_s, width_s in tiers.cells(begin_s, self.now_s, layout):
            self._intervals.append(Interval(start_s, width_s, self._vus))
        # Late deltas still reach the last interval but one; older ones rest.
        for interval in self._intervals[max(0, before - 3) : -2]:
            interval.compact()

    def vus(self, count: int) -> None:
        """The virtual users at this moment; an interval shows the most it saw."""
        self._vus = count
        self._intervals[-1].vus = max(self._intervals[-1].vus, count)

    def peaked(self, count: int) -> None:
        """Users of a load that was too short for them to be seen at any one moment."""
        if len(self._intervals) == 1:
            self._intervals[0].vus = max(self._intervals[0].vus, count)

    @property
    def vus_max(self) -> int:
        return max(interval.vus for interval in self._intervals)

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
        middle = self._intervals[self._number((start_s + end_s) / 2)]
        for service, response in latencies:
            middle.latency.add(service, response)
        middle.point = None
        first, last = self._number(start_s), self._number(end_s)
        if first == last or amounts.requests < REQUESTS_DIVIDED_MIN:
            middle.count(amounts)
            return
        for interval in self._intervals[first:last]:
            before, amounts = amounts.divide((interval.end_s - start_s) / (end_s - start_s))
            start_s = interval.end_s
            interval.count(before)
        self._intervals[last].count(amounts)

    def totals(self) -> Counts:
        """Of all intervals together."""
        whole = Amounts()
        for interval in self._intervals:
            whole.add(interval.amounts)
        return whole.counts()

    def export(self) -> TimelineState:
        return TimelineState(self.now_s, [interval.export() for interval in self._intervals])

    def absorb(self, other: TimelineState, vus: int) -> None:
        """Add another timeline, on which `vus` users live at this moment.

        Where one is coarser the other is made so. Users of one interval add up: the two ran at the
        same time."""
        self.advance(other.now_s)
        theirs_s = [slot.width_s for slot in other.slots]
        if theirs_s != self._widths_s()[: len(theirs_s)]:
            self._join(tiers.groups(self._widths_s(), tiers.stretches(theirs_s)))
            other = regrouped(other, tiers.groups(theirs_s, tiers.stretches(self._widths_s())))
        for interval, slot in zip_longest(self._intervals, other.slots):
            if slot is not None:
                interval.add(slot)
                interval.compact()
            else:
                interval.vus += vus
                interval.point = None
        self._vus += vus
        self._limit()

    def recent(self, seconds: float) -> list[tuple[float, int]]:
        """Requests before the end of each of the last intervals, back that many seconds."""
        total, ends = 0, [(0.0, 0)]
        for interval in self._intervals:
            total += interval.amounts.requests
            ends.append((min(float(interval.end_s), self.now_s), total))
        older = sum(1 for end_s, _ in ends if end_s <= self.now_s - seconds)
        return ends[max(0, older - 1) :]

    def points(self) -> list[Point]:
        """The timeline so far. An end shorter than half an interval joins the one before it."""
        *older, last = self._intervals
        rest_s = self.now_s - last.start_s
        if not older:
            # Before any time has passed there is no true width to give.
            untouched = self.now_s == 0 and last.amounts == Amounts()
            return [] if untouched else [self._measured(last, rest_s or float(last.width_s))]
        *resting, recent = older
        points = []
        for interval in resting:
            if interval.point is None:
                interval.point = self._measured(interval)
            points.append(interval.point)
        if rest_s >= last.width_s / 2:
            return [*points, self._measured(recent), self._measured(last, rest_s)]
        joined = Interval(recent.start_s, recent.width_s)
        joined.absorb(recent)
        joined.absorb(last)
        return [*points, self._measured(joined, recent.width_s + rest_s)]

    def _measured(self, interval: Interval, width_s: float | None = None) -> Point:
        return interval.measure(width_s, ranged=self._ranged)

    def latest(self) -> list[Point]:
        """The last interval that nothing will change any more. It is measured once, so that a live
        view of very many timelines costs little."""
        resting = self._intervals[-3:-2]
        for interval in resting:
            if interval.point is None:
                interval.point = interval.measure()
        return [interval.point for interval in resting if interval.point is not None]

    def _widths_s(self) -> list[int]:
        return [interval.width_s for interval in self._intervals]

    def _number(self, at_s: float) -> int:
        """Of the interval that holds this moment."""
        last = len(self._intervals) - 1
        if at_s >= self._intervals[last].start_s:
            return last
        return bisect_right(self._intervals, at_s, key=_start_s) - 1

    def _settle(self, layout: tuple[Stretch, ...]) -> None:
        """Join what lies in another tier now: a few intervals, unless the last tier is wider."""
        begin, end = 0, len(self._intervals)
        if layout[0] == self._layout[0]:
            pairs = zip(self._layout, layout, strict=True)
            shifts = [(old.start_s, new.start_s) for old, new in pairs if old != new]
            begin = bisect_left(self._intervals, shifts[0][0], key=_start_s)
            end = bisect_left(self._intervals, shifts[-1][1], key=_start_s)
        self._layout = layout
        concerned = self._intervals[begin:end]
        if concerned:
            widths_s = [interval.width_s for interval in concerned]
            joined = tiers.groups(widths_s, layout, concerned[0].start_s)
            self._intervals[begin:end] = _joined(concerned, joined)

    def _join(self, groups: Sequence[Group]) -> None:
        self._intervals = _joined(self._intervals, groups)

    def _limit(self) -> None:
        while len(self._intervals) > 1 and self._packed_bytes() > HISTOGRAM_BYTES_MAX:
            self._join(tiers.coarser(self._widths_s()))

    def _packed_bytes(self) -> int:
        return sum(interval.packed_bytes for interval in self._intervals)


def _start_s(interval: Interval) -> int:
    return interval.start_s


def _joined(intervals: list[Interval], groups: Sequence[Group]) -> list[Interval]:
    joined = []
    for begin, end, width_s in groups:
        first = intervals[begin]
        if width_s != first.width_s:
            first.width_s = width_s
            first.point = None
            for neighbour in intervals[begin + 1 : end]:
                first.absorb(neighbour)
            first.compact()
        joined.append(first)
    return joined

from __future__ import annotations

import numpy as np
import pytest

from hyperscale.metrics.histogram import Histogram, Sparse, summarise
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.tiers import LOAD_S_MAX, POINTS_MAX, TIERS
from hyperscale.metrics.timeline import Timeline

HOUR = 3_600


def sparse(*seconds: float) -> Sparse:
    found = summarise(np.array(seconds))
    assert found is not None
    return found


def test_a_steady_rate_stays_steady_when_deltas_cross_borders():
    timeline = Timeline()
    previous = 0.0
    for tick in range(1, 101):
        now = tick * 0.0973
        timeline.add(previous, now, Amounts(requests=973), [(sparse(0.01), None)])
        previous = now
    rates = [point.requests / point.width_s for point in timeline.points()]
    assert rates == pytest.approx([10_000] * len(rates), rel=0.01)


def test_seconds_without_news_are_on_the_timeline():
    timeline = Timeline()
    timeline.vus(3)
    timeline.add(0.0, 0.1, Amounts(requests=4), [(sparse(0.01), None)])
    timeline.advance(4.8)
    assert [point.requests for point in timeline.points()] == [4, 0, 0, 0, 0]
    assert [point.vus for point in timeline.points()] == [3] * 5


def test_nothing_yet_is_an_empty_timeline():
    assert Timeline().points() == []


def test_a_short_end_joins_the_interval_before():
    timeline = Timeline()
    timeline.add(2.1, 2.2, Amounts(requests=7), [(sparse(0.01), None)])
    points = timeline.points()
    assert [point.width_s for point in points] == pytest.approx([1.0, 1.2])
    assert points[-1].requests == 7
    timeline.advance(2.7)
    assert [point.width_s for point in timeline.points()] == pytest.approx([1.0, 1.0, 0.7])
    timeline.advance(9.0)
    assert timeline.points()[2].width_s == 1.0


def test_percentiles_of_merged_intervals_are_true_ones():
    timeline = Timeline(points_max=4)
    for second in range(8):
        value = 1.0 if second == 0 else 0.01
        timeline.add(second, second + 0.1, Amounts(requests=5), [(sparse(*[value] * 5), None)])
    timeline.advance(7.9)
    points = timeline.points()
    assert [point.at_s for point in points] == [0.0, 2.0, 4.0, 6.0]
    assert [point.requests for point in points] == [10, 10, 10, 10]
    assert points[0].p50_ms == pytest.approx(10, rel=0.01)
    assert points[0].p95_ms == pytest.approx(1000, rel=0.01)
    assert points[1].p99_ms == pytest.approx(10, rel=0.01)


def test_late_news_reach_their_interval():
    timeline = Timeline()
    timeline.advance(30.0)
    timeline.points()
    timeline.add(3.2, 3.3, Amounts(requests=2), [(sparse(0.5), sparse(0.9))])
    point = timeline.points()[3]
    assert point.requests == 2
    assert point.p99_ms == pytest.approx(500, rel=0.01)
    assert point.response_p99_ms == pytest.approx(900, rel=0.01)


def test_a_day_goes_through_the_tiers():
    """A clock that runs through 26 hours, with news every few seconds."""
    timeline = Timeline()
    rng = np.random.default_rng(7)
    wanted = Histogram()
    total, now, slow_hours = 0, 0.0, {3, 20}
    while now < 26 * HOUR:
        start, now = now, now + 9.7
        latency = sparse(*rng.lognormal(-2 if now // HOUR in slow_hours else -5, 0.4, 8))
        wanted.add(latency)
        timeline.add(start, now, Amounts(requests=8, failed=1), [(latency, None)])
        total += 8
        if total % 800 == 0:
            assert len(timeline) <= POINTS_MAX
    intervals = timeline.export().slots
    widths = [interval.width_s for interval in intervals]
    assert sorted(widths, reverse=True) == widths
    rings = {tier.width_s: tier.entries for tier in TIERS}
    assert all(widths.count(width) <= entries for width, entries in rings.items())
    at = {round(now - point.at_s): point.width_s for point in timeline.points()[:-1]}
    assert {width for age, width in at.items() if age <= 60} == {1.0}
    assert {width for age, width in at.items() if 1_010 < age <= HOUR} == {10.0}
    assert {width for age, width in at.items() if 1.5 * HOUR < age <= 24 * HOUR} == {60.0}
    assert {width for age, width in at.items() if age > 25.5 * HOUR} == {3_600.0}
    found = Histogram()
    for interval in intervals:
        if interval.service is not None:
            found.add(interval.service)
    assert found.sparse().counts.tolist() == wanted.sparse().counts.tolist()
    assert sum(point.requests for point in timeline.points()) == total
    third = [p.p50_ms for p in timeline.points() if 3 * HOUR <= p.at_s < 4 * HOUR]
    assert len(third) == 60
    assert min(third) > 100


def test_a_jump_over_months_costs_no_more_than_the_rings_hold():
    timeline = Timeline()
    timeline.add(0.0, 0.1, Amounts(requests=1), [])
    timeline.advance(LOAD_S_MAX)
    assert len(timeline) <= POINTS_MAX
    timeline.advance(10 * LOAD_S_MAX)
    assert timeline.now_s == LOAD_S_MAX
    assert sum(point.requests for point in timeline.points()) == 1


def test_histograms_too_heavy_to_keep_are_joined(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hyperscale.metrics.timeline.HISTOGRAM_BYTES_MAX", 40_000)
    timeline = Timeline()
    rng = np.random.default_rng(3)
    for second in range(2_000):
        latency = sparse(*rng.lognormal(-4, 1.5, 60))
        timeline.add(second, second + 0.5, Amounts(requests=60), [(latency, None)])
        if second % 50 == 0:
            weight = sum(
                len(slot.service.packed_buckets) + len(slot.service.packed_counts)
                for slot in timeline.export().slots
                if slot.service is not None
            )
            assert weight < 40_000 + 310 * 250
    assert sum(point.requests for point in timeline.points()) == 120_000
    assert timeline.points()[-2].width_s == 1.0


def test_a_coarse_part_makes_only_its_own_time_coarse():
    fine, coarse = Timeline(), Timeline(points_max=10)
    fine.add(0.0, 0.1, Amounts(requests=1), [(sparse(0.01), None)])
    fine.advance(300.0)
    coarse.add(99.9, 100.0, Amounts(requests=2), [(sparse(0.03), None)])
    coarse.vus(5)
    fine.absorb(coarse.export(), vus=5)
    points = fine.points()
    assert [point.width_s for point in points[:6]] == [20.0] * 6
    assert {point.width_s for point in points[6:-1]} == {1.0}
    assert [point.requests for point in points if point.requests] == [1, 2]
    assert points[-1].vus == 5


def test_a_delta_that_claims_to_end_before_the_last_loses_nothing():
    timeline = Timeline()
    timeline.add(0.0, 5.0, Amounts(requests=100), [])
    timeline.add(5.0, 2.99, Amounts(requests=100), [])
    assert sum(point.requests for point in timeline.points()) == 200


def test_deltas_told_as_one_are_shared_between_all_the_intervals_they_cover():
    timeline = Timeline()
    timeline.add(0.0, 0.5, Amounts(requests=500), [], deltas=5)
    timeline.add(0.5, 3.5, Amounts(requests=3_000), [(sparse(0.01), None)], deltas=30)
    assert [point.requests for point in timeline.points()] == [1_000, 1_000, 1_000, 500]


def test_silence_before_deltas_told_as_one_is_no_part_of_them():
    timeline = Timeline()
    timeline.add(0.0, 60.2, Amounts(requests=1_000), [], deltas=4)
    assert sum(point.requests for point in timeline.points()[:59]) == 0
    assert sum(point.requests for point in timeline.points()) == 1_000

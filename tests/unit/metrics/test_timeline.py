from __future__ import annotations

import numpy as np
import pytest

from hyperscale.metrics.histogram import Sparse, summarise
from hyperscale.metrics.timeline import Amounts, Timeline


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
    assert timeline.width_s == 2.0
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


def test_any_length_of_run_has_a_bounded_timeline():
    timeline = Timeline()
    for hour in range(48):
        timeline.add(hour * 3600.0, hour * 3600 + 0.1, Amounts(requests=1), [])
        assert len(timeline) <= 600
    assert sum(point.requests for point in timeline.points()) == 48


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

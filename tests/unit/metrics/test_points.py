from __future__ import annotations

import numpy as np
import pytest

from hyperscale.metrics.histogram import Histogram, summarise
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.points import evened, widened
from hyperscale.metrics.results import Point
from hyperscale.metrics.timeline import Timeline


def points(*widths_s: float) -> list[Point]:
    """100 requests a second, of which the odd points fail one each."""
    found, at_s = [], 0.0
    for number, width_s in enumerate(widths_s):
        found.append(
            Point(
                at_s=at_s,
                width_s=width_s,
                requests=int(100 * width_s),
                failed=number % 2,
                vus=number,
                p50_ms=10.0 * (number + 1),
                p95_ms=20.0 * (number + 1),
                p99_ms=30.0 * (number + 1),
                max_ms=40.0 * (number + 1),
            )
        )
        at_s += width_s
    return found


def test_joined_points_add_up():
    first, second = widened(points(1, 1, 1, 1), 2.0)
    assert (first.at_s, first.width_s, second.at_s, second.width_s) == (0.0, 2.0, 2.0, 2.0)
    assert (first.requests, first.failed, first.vus, first.max_ms) == (200, 1, 1, 80.0)
    assert 30.0 < second.p50_ms < 40.0


def test_wider_points_stay_and_an_end_is_as_short_as_it_is():
    joined = widened(points(60, 10, 10, 10, 10, 10, 10, 1, 1, 0.6), 30.0)
    assert [point.width_s for point in joined] == pytest.approx([60.0, 30.0, 30.0, 2.6])


def test_percentiles_of_silence_are_none():
    silent = [Point(at_s=float(at), width_s=1.0) for at in range(4)]
    assert [point.p99_ms for point in widened(silent, 4.0)] == [0.0]


def test_percentiles_of_joined_points_are_close_to_those_of_the_requests():
    """Two slow seconds in a hundred belong into the p99 of all and not into the median."""
    rng = np.random.default_rng(2)
    timeline, whole = Timeline(), Histogram()
    for second in range(100):
        slow = 20.0 if second in (40, 41) else 1.0
        values = rng.lognormal(-4.0, 0.5, 2_000) * slow
        whole.record_many(values)
        latency = summarise(values)
        assert latency is not None
        timeline.add(second, second + 0.9, Amounts(requests=2_000), [(latency, None)])
    timeline.advance(100.0)
    joined, *_ = widened(timeline.points(), 200.0)
    p50, p95, p99 = (1_000 * value for value in whole.percentiles((50, 95, 99)))
    assert joined.p50_ms == pytest.approx(p50, rel=0.1)
    assert joined.p95_ms == pytest.approx(p95, rel=0.1)
    assert joined.p99_ms == pytest.approx(p99, rel=0.25)
    assert p99 > 4 * p95
    assert joined.response_p99_ms == pytest.approx(joined.p99_ms)


def test_a_course_of_one_width_is_even_already():
    given = points(*[1.0] * 50, 0.4)
    assert evened(given, 10) == given


def test_seconds_beside_minutes_are_joined_until_they_have_room():
    given = points(*[60.0] * 100, *[10.0] * 60, *[1.0] * 600)
    even = evened(given, 100)
    assert len(even) <= 101
    assert sum(point.requests for point in even) == sum(point.requests for point in given)
    assert {round(point.requests / point.width_s) for point in even} == {100}
    assert evened([], 10) == []

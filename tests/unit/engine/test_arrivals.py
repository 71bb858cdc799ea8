"""The schedule of an open model whose rate is changed while it runs."""

from __future__ import annotations

import math

import pytest

from hyperscale.engine.models.arrivals import Schedule
from hyperscale.workload.load import ArrivalRate, RampingRate, Stage, split


def followed(schedule: Schedule, changes: dict[float, float]) -> list[float]:
    """When arrivals begin if the rate is changed at these moments and nothing is late."""
    begun = []
    for at_s, factor in changes.items():
        while schedule.due < at_s:
            begun.append(schedule.due)
            schedule.advance()
        schedule.change_rate(factor, at_s)
    while schedule.due < math.inf:
        begun.append(schedule.due)
        schedule.advance()
    return begun


def test_arrivals_after_the_change_follow_the_new_rate() -> None:
    begun = followed(Schedule(ArrivalRate(10, 2.0, 50)), {1.0: 2.0})
    assert begun == pytest.approx([n / 10 for n in range(10)] + [1 + n / 20 for n in range(20)])


def test_what_has_passed_of_an_interval_is_kept() -> None:
    begun = followed(Schedule(ArrivalRate(1, 4.0, 50)), {1.5: 2.0})
    assert begun == pytest.approx([0.0, 1.0, 1.75, 2.25, 2.75, 3.25, 3.75])
    slower = followed(Schedule(ArrivalRate(1, 6.0, 50)), {1.5: 0.5})
    assert slower == pytest.approx([0.0, 1.0, 2.5, 4.5])


def test_a_rate_raised_after_the_last_arrival_brings_more_of_them() -> None:
    assert followed(Schedule(ArrivalRate(0.1, 10.0, 50)), {5.0: 10.0}) == pytest.approx(
        [0.0, 5.5, 6.5, 7.5, 8.5, 9.5]
    )


def test_arrivals_that_are_late_are_not_forgotten() -> None:
    schedule = Schedule(ArrivalRate(10, 1.0, 50))
    schedule.change_rate(2.0, 0.5)  # nothing has begun yet
    begun = followed(schedule, {})
    assert begun == pytest.approx([n / 10 for n in range(5)] + [0.5 + n / 20 for n in range(10)])


def test_a_ramp_is_multiplied() -> None:
    ramp = RampingRate((Stage(4.0, 40.0),), 100)
    begun = followed(Schedule(ramp), {2.0: 3.0})
    assert sum(due < 2 for due in begun) == 20
    assert sum(due >= 2 for due in begun) == 180


def test_cores_stay_interleaved() -> None:
    load = ArrivalRate(10, 2.0, 50)
    begun = sorted(
        due
        for share in split(load, 4)
        if isinstance(share, ArrivalRate)
        for due in followed(Schedule(share), {1.0: 1.1})
    )
    assert begun == pytest.approx(followed(Schedule(load), {1.0: 1.1}))

"""A schedule that is taken up in the middle is the rest of the schedule."""

from __future__ import annotations

from itertools import dropwhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.workload.load import ArrivalRate, Load, RampingRate, Stage, split

durations = st.floats(0.1, 20).map(lambda seconds: round(seconds, 2))
rates = st.floats(0.5, 60).map(lambda rate: round(rate, 1))


@st.composite
def open_loads(draw: st.DrawFn) -> ArrivalRate | RampingRate:
    if draw(st.booleans()):
        return ArrivalRate(draw(rates), draw(durations), max_vus=10)
    stages = draw(st.lists(st.tuples(st.just(0.0) | durations, rates), min_size=1, max_size=4))
    stages.append((draw(durations), draw(rates)))
    return RampingRate(
        tuple(Stage(*stage) for stage in stages), max_vus=10, start=draw(st.just(0.0) | rates)
    )


@given(open_loads(), st.integers(1, 3), st.floats(0, 1))
def test_arrivals_from_a_moment_on(
    load: ArrivalRate | RampingRate, cores: int, share: float
) -> None:
    from_s = load.planned_seconds * share
    for part in split(load, cores):
        assert isinstance(part, (ArrivalRate, RampingRate))
        rest = list(part.arrivals(from_s))
        # A hair of time belongs to either side: areas are sums of floating-point numbers.
        expected = list(dropwhile(lambda due: due < from_s - 1e-6, part.arrivals()))
        certain = list(dropwhile(lambda due: due < from_s + 1e-6, part.arrivals()))
        assert rest in (expected, certain) or rest == pytest.approx(expected, abs=1e-6)
        assert all(due >= from_s - 1e-6 for due in rest)


@given(open_loads())
def test_from_the_beginning_nothing_is_left_out(load: Load) -> None:
    assert isinstance(load, (ArrivalRate, RampingRate))
    assert list(load.arrivals(0.0)) == list(load.arrivals())

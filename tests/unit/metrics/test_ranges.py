"""Ranges of latency: exact counts, and an axis on which all are of one height."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics.histogram import LATENCY, Histogram
from hyperscale.metrics.ranges import joined, lower_ms, place, ranges

latencies_s = st.lists(st.floats(1e-6, 4_000.0), min_size=1, max_size=200)


def histogram(values: list[float]) -> Histogram:
    made = Histogram()
    made.record_many(np.array(values))
    return made


def test_without_a_value_there_are_none() -> None:
    assert ranges(Histogram()) == []


@given(latencies_s)
def test_each_latency_counts_in_the_range_that_holds_it(values: list[float]) -> None:
    first, *counts = ranges(histogram(values))
    assert counts[0] > 0
    assert counts[-1] > 0
    expected = [0] * len(counts)
    for value in values:
        numbers = range(first, first + len(counts))
        expected[
            next(n for n in numbers if lower_ms(n) / 1000 <= value < lower_ms(n + 1) / 1000) - first
        ] += 1
    assert counts == expected


@given(latencies_s, latencies_s)
def test_joined_ranges_are_those_of_all_values(one: list[float], other: list[float]) -> None:
    apart = joined([ranges(histogram(one)), [], ranges(histogram(other))])
    assert apart == ranges(histogram([*one, *other]))


def test_the_last_range_ends_where_the_histogram_does() -> None:
    assert lower_ms(128) == LATENCY.edges[-1] * LATENCY.unit


@pytest.mark.parametrize("number", [0, 1, 4, 37, 127])
def test_every_range_is_one_high(number: int) -> None:
    assert place(lower_ms(number + 1)) - place(lower_ms(number)) == pytest.approx(1.0)

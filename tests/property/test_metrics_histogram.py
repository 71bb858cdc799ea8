"""Histograms against the raw values they stand for."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics.histogram import LATENCY, VALUES, Histogram, Scale, Sparse

PERCENTS = (1.0, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0)

durations = st.lists(st.floats(1e-6, 3600.0), min_size=1, max_size=300)
anything = st.lists(
    st.one_of(st.floats(-1e13, -1e-6), st.just(0.0), st.floats(1e-6, 1e13)),
    min_size=1,
    max_size=300,
)


def recorded(values: list[float], scale: Scale = LATENCY) -> Histogram:
    histogram = Histogram(scale)
    histogram.record_many(np.array(values, dtype=np.float64))
    return histogram


def nearest_rank(values: list[float], percent: float) -> float:
    rank = math.ceil(percent * len(values) / 100 - 1e-9)
    return sorted(values)[max(rank, 1) - 1]


def close(found: float, exact: float) -> bool:
    return abs(found - exact) <= 0.01 * abs(exact)


def state(histogram: Histogram) -> tuple[object, ...]:
    sparse = histogram.sparse()
    assert sparse is not None
    return sparse.buckets.tolist(), sparse.counts.tolist(), sparse.low, sparse.high, histogram.count


@given(durations)
def test_percentiles_are_within_one_percent_of_the_raw_values(values: list[float]) -> None:
    found = recorded(values).percentiles(PERCENTS)
    for percent, value in zip(PERCENTS, found, strict=True):
        assert close(value, nearest_rank(values, percent))
    assert found == sorted(found)
    assert min(values) <= found[0]
    assert found[-1] == max(values)


@given(anything)
def test_signed_percentiles_are_within_one_percent_too(values: list[float]) -> None:
    found = recorded(values, VALUES).percentiles(PERCENTS)
    for percent, value in zip(PERCENTS, found, strict=True):
        assert close(value, nearest_rank(values, percent))


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 2.5), st.integers(1, 5000))
def test_heavy_tails_keep_the_bound(seed: int, sigma: float, size: int) -> None:
    values = np.random.default_rng(seed).lognormal(-5, sigma, size).clip(1e-6, 3600)
    histogram = recorded(values.tolist())
    for percent in PERCENTS:
        assert close(histogram.percentile(percent), nearest_rank(values.tolist(), percent))


@given(durations, durations, durations)
def test_merging_in_any_order_equals_recording_everything(
    a: list[float], b: list[float], c: list[float]
) -> None:
    left = recorded(a)
    left.merge(recorded(b))
    left.merge(recorded(c))
    tail = recorded(c)
    tail.merge(recorded(b))
    right = recorded(a)
    right.merge(tail)
    whole = recorded(a + b + c)
    assert state(left) == state(right) == state(whole)
    assert math.isclose(left.total, whole.total)
    assert math.isclose(left.squares, whole.squares)


@given(durations)
def test_sparse_form_survives_the_wire(values: list[float]) -> None:
    histogram = recorded(values)
    sparse = histogram.sparse()
    assert sparse is not None
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(sparse), type=Sparse)
    assert back == sparse
    assert back.count == len(values)
    assert Histogram.of(back).distribution() == histogram.distribution()


@given(durations, durations)
def test_a_compacted_histogram_is_the_same_histogram(a: list[float], b: list[float]) -> None:
    plain, compacted = recorded(a), recorded(a)
    compacted.compact()
    assert compacted.distribution() == plain.distribution()
    plain.record_many(np.array(b))
    compacted.record_many(np.array(b))
    compacted.compact()
    assert state(compacted) == state(plain)


@given(durations)
def test_a_result_gives_its_histogram_back(values: list[float]) -> None:
    result = recorded(values).distribution()
    again = Histogram.from_distribution(result).distribution()
    assert (again.buckets, again.counts) == (result.buckets, result.counts)
    assert math.isclose(again.p99_ms, result.p99_ms)
    assert math.isclose(again.mean_ms, result.mean_ms)

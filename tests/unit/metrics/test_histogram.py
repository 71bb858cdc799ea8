from __future__ import annotations

import msgspec
import numpy as np
import pytest

from hyperscale.metrics.histogram import (
    LATENCY,
    SUB_BUCKETS,
    VALUES,
    Histogram,
    Sparse,
    add_up,
    summarise,
)


def recorded(*values: float) -> Histogram:
    histogram = Histogram()
    histogram.record_many(np.array(values))
    return histogram


def test_every_power_of_two_has_64_buckets_and_none_is_wider_than_its_64th():
    assert LATENCY.size == 32 * SUB_BUCKETS
    assert LATENCY.edges[0] <= 1e-6
    assert LATENCY.edges[-1] >= 3600
    widths = np.diff(LATENCY.edges) / LATENCY.edges[:-1]
    assert widths.max() == pytest.approx(1 / SUB_BUCKETS)


@pytest.mark.parametrize("scale", [LATENCY, VALUES])
def test_a_lower_edge_belongs_to_its_bucket(scale):
    first = scale.size // 2 + 1 if scale.signed else 0
    numbers = np.arange(first, scale.size)
    edges = scale.edges[first:-1]
    assert (scale.buckets(edges) == numbers).all()
    assert (scale.buckets(scale.middles[first:]) == numbers).all()


def test_an_empty_histogram_is_all_zeros():
    assert Histogram().percentile(99) == 0.0
    assert Histogram().distribution().count == 0
    assert Histogram().sparse() is None
    assert Histogram().mean == Histogram().stdev == 0.0


def test_moments_are_exact():
    result = recorded(0.001, 0.002, 0.006).distribution()
    assert result.count == 3
    assert result.mean_ms == pytest.approx(3.0)
    assert result.stdev_ms == pytest.approx(np.std([1, 2, 6]))
    assert (result.min_ms, result.max_ms) == (1.0, 6.0)


def test_a_percentile_never_leaves_the_recorded_range():
    result = recorded(*[0.0101] * 1000).distribution()
    assert result.p50_ms == result.p999_ms == result.max_ms == result.min_ms


def test_values_outside_the_range_count_in_the_outer_buckets():
    histogram = recorded(0.0, 1e-9, 1e7)
    assert histogram.count == 3
    assert histogram.percentile(100) == 1e7
    assert histogram.percentile(1) == 0.0
    assert histogram.distribution().buckets == [0, LATENCY.size - 1]


def test_a_clock_that_went_back_counts_as_no_time():
    histogram = recorded(-0.5, 0.01)
    assert histogram.low == 0.0
    assert histogram.count == 2


def test_what_is_not_a_number_is_left_out():
    histogram = recorded(float("nan"), 0.01, float("inf"))
    assert histogram.count == 1
    assert summarise(np.array([float("nan")])) is None


def test_own_values_may_be_negative_or_zero_or_large():
    histogram = Histogram(VALUES)
    histogram.record_many(np.array([-250.0, -1.0, 0.0, 3.0, 5e9]))
    assert histogram.percentiles((1, 40, 60, 80, 100)) == pytest.approx(
        [-250.0, -1.0, 0.0, 3.0, 5e9], rel=0.01
    )
    assert histogram.distribution().min_ms == -250.0


def test_one_value_at_a_time_is_the_same_as_many():
    one = Histogram()
    for value in (0.1, 0.2, 0.3):
        one.record(value)
    assert one.distribution() == recorded(0.1, 0.2, 0.3).distribution()


def test_counts_of_any_size_add_up() -> None:
    sizes = (1, 255, 256, 70_000, 2**32, 2**40)
    parts = [
        Sparse.of([800, 900 + n], [size, 1], 0.1, 0.2, 1.0, 1.0) for n, size in enumerate(sizes)
    ]
    whole = add_up(parts)
    assert whole is not None
    counted = dict(zip(whole.buckets.tolist(), whole.counts.tolist(), strict=True))
    assert counted == {800: sum(sizes), **{900 + n: 1 for n in range(len(sizes))}}
    assert whole.count == sum(sizes) + len(sizes)


@pytest.mark.parametrize(
    ("buckets", "counts"), [(b"", b""), (b"\0", b"\0"), (b"\0\0", b""), (b"\0\0\0\0", b"\1\1\1")]
)
def test_a_histogram_that_does_not_fit_together_is_not_read(buckets: bytes, counts: bytes) -> None:
    told = msgspec.msgpack.encode([buckets, counts, 1, 0.1, 0.1, 0.1, 0.1])
    with pytest.raises(msgspec.ValidationError, match="do not fit"):
        msgspec.msgpack.decode(told, type=Sparse)


def test_a_bucket_that_does_not_exist_counts_as_the_nearest() -> None:
    strange = Histogram.of(Sparse.of([60_000], [5], 0.1, 0.2, 1.0, 1.0))
    strange.merge(recorded(0.1))
    assert strange.count == 6
    assert strange.percentile(90) <= 0.2

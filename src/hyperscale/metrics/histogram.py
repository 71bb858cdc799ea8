"""Log-linear histograms: any number of values in a fixed space, mergeable by addition.

Every power of two is cut into 64 equal buckets. The exponent and the six leading mantissa bits
of an IEEE double number exactly these buckets, so a bucket index is one shift of the value's
bits. A bucket is at most 1/64 of its lower edge wide; its middle is therefore off by at most
0.8 %. Count, sum, sum of squares, minimum and maximum are kept beside the buckets, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt

from hyperscale.metrics.results import Distribution

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.unsignedinteger[npt.NBitBase]]

SUB_BUCKETS = 64
_SHIFT = 52 - 6  # a double has 52 mantissa bits; the upper six number the 64 sub-buckets
_BIAS = 1023  # exponent bias of a double
# Sparse histograms are put into the buckets this many at a time: most of the price is per visit.
WAITING_MAX = 16
_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)


class Scale:
    """Which values have buckets of their own; what lies outside counts in the nearest bucket.

    An unsigned scale has buckets 0..n-1 upwards from 2**low. A signed one mirrors them around a
    middle bucket for zero and everything smaller than 2**low. `unit` turns a recorded value into
    the unit of a Distribution.
    """

    def __init__(self, low: int, high: int, *, unit: float, signed: bool = False) -> None:
        self.unit = unit
        self.signed = signed
        self._base = (_BIAS + low) * SUB_BUCKETS
        self._span = (high - low) * SUB_BUCKETS
        self.size = 2 * self._span + 1 if signed else self._span

    def buckets(self, values: Floats) -> Ints:
        """The bucket of each value; values must be finite."""
        if not self.signed:
            raw = (values.view(np.int64) >> _SHIFT) - self._base
            found: Ints = np.clip(raw, 0, self._span - 1)
            return found
        raw = (np.abs(values).view(np.int64) >> _SHIFT) - self._base + 1
        magnitude: Ints = np.clip(raw, 0, self._span)
        return np.where(values < 0, -magnitude, magnitude) + self._span

    @cached_property
    def edges(self) -> Floats:
        """The size + 1 borders of the buckets, in recorded units."""
        numbers = np.arange(self._base, self._base + self._span + 1, dtype=np.int64)
        upward = (numbers << _SHIFT).view(np.float64)
        return np.concatenate((-upward[::-1], upward)) if self.signed else upward

    @cached_property
    def middles(self) -> Floats:
        return (self.edges[:-1] + self.edges[1:]) / 2


# 2**-20 s = 0.95 µs to 2**12 s = 68 min: 2048 buckets; Distribution is in milliseconds.
LATENCY = Scale(-20, 12, unit=1000.0)
# An author's own numbers, in the author's unit: ±1e-6 to ±1.7e13 and zero.
VALUES = Scale(-20, 44, unit=1.0, signed=True)


class Sparse(msgspec.Struct, array_like=True, frozen=True):
    """A histogram with at least one value, as it travels: only the buckets in use."""

    buckets: list[int]
    counts: list[int]
    low: float
    high: float
    total: float
    squares: float

    @property
    def count(self) -> int:
        return sum(self.counts)


def summarise(values: Floats, scale: Scale = LATENCY) -> Sparse | None:
    """Values as a sparse histogram. Not-a-number and infinities are left out."""
    if not values.size:
        return None
    total = float(values.sum())
    if not math.isfinite(total):
        finite = values[np.isfinite(values)]
        if finite.size < values.size:
            return summarise(finite, scale)
    low = float(values.min())
    if low < 0 and not scale.signed:  # a clock that went back took no time
        return summarise(np.maximum(values, 0.0), scale)
    dense = np.bincount(scale.buckets(values))
    used = np.flatnonzero(dense)
    return Sparse(
        buckets=used.tolist(),
        counts=dense[used].tolist(),
        low=low,
        high=float(values.max()),
        total=total,
        squares=float(np.dot(values, values)),
    )


def add_up(sparses: Iterable[Sparse | None]) -> Sparse | None:
    """One sparse histogram of several on the same scale; None when there is no value in them."""
    given = [sparse for sparse in sparses if sparse is not None]
    if len(given) < 2:
        return given[0] if given else None
    numbers = np.fromiter(chain.from_iterable(s.buckets for s in given), np.int64)
    weights = np.fromiter(chain.from_iterable(s.counts for s in given), np.float64)
    dense = np.bincount(numbers, weights)  # doubles are exact up to 2**53
    used = np.flatnonzero(dense)
    return Sparse(
        buckets=used.tolist(),
        counts=dense[used].astype(np.int64).tolist(),
        low=min(s.low for s in given),
        high=max(s.high for s in given),
        total=math.fsum(s.total for s in given),
        squares=math.fsum(s.squares for s in given),
    )


class Histogram:
    """Adds up values and other histograms; buckets are allocated with the first value."""

    __slots__ = (
        "_dense",
        "_packed",
        "_waiting",
        "count",
        "high",
        "low",
        "scale",
        "squares",
        "total",
    )

    def __init__(self, scale: Scale = LATENCY) -> None:
        self.scale = scale
        self.clear()

    @classmethod
    def of(cls, sparse: Sparse, scale: Scale = LATENCY) -> Histogram:
        histogram = cls(scale)
        histogram.add(sparse)
        return histogram

    @classmethod
    def from_distribution(cls, distribution: Distribution, scale: Scale = LATENCY) -> Histogram:
        """The histogram behind a result, for merging and comparing results later."""
        histogram = cls(scale)
        if distribution.count:
            mean = distribution.mean_ms / scale.unit
            stdev = distribution.stdev_ms / scale.unit
            histogram.add(
                Sparse(
                    buckets=distribution.buckets,
                    counts=distribution.counts,
                    low=distribution.min_ms / scale.unit,
                    high=distribution.max_ms / scale.unit,
                    total=mean * distribution.count,
                    squares=(stdev**2 + mean**2) * distribution.count,
                )
            )
        return histogram

    def clear(self) -> None:
        self.count = 0
        self.total = 0.0
        self.squares = 0.0
        self.low = math.inf
        self.high = -math.inf
        self._dense: Ints | None = None
        self._packed: tuple[Unsigned, Unsigned] | None = None
        self._waiting: list[Sparse] = []  # added, but not yet in the buckets

    def record(self, value: float) -> None:
        self.record_many(np.array([value], dtype=np.float64))

    def record_many(self, values: Floats) -> None:
        sparse = summarise(values, self.scale)
        if sparse is not None:
            self.add(sparse)

    def add(self, sparse: Sparse) -> None:
        self._waiting.append(sparse)
        self._add_moments(sum(sparse.counts), sparse.total, sparse.squares, sparse.low, sparse.high)
        if len(self._waiting) == WAITING_MAX:
            self._unpack()

    def merge(self, other: Histogram) -> None:
        if not other.count:
            return
        used, counts = other._used()
        self._unpack()[used] += counts
        self._add_moments(other.count, other.total, other.squares, other.low, other.high)

    def copy(self) -> Histogram:
        twin = Histogram(self.scale)
        twin.merge(self)
        return twin

    def compact(self) -> None:
        """Keep only the buckets in use, in the smallest integers; the next change undoes it."""
        if self._dense is not None or self._waiting:
            used, counts = self._used()
            self._packed = (
                used.astype(np.uint16),
                counts.astype(np.min_scalar_type(int(counts.max()))),
            )
            self._dense = None

    def sparse(self) -> Sparse | None:
        if not self.count:
            return None
        used, counts = self._used()
        return Sparse(
            buckets=used.tolist(),
            counts=counts.tolist(),
            low=self.low,
            high=self.high,
            total=self.total,
            squares=self.squares,
        )

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def stdev(self) -> float:
        if not self.count:
            return 0.0
        return math.sqrt(max(0.0, self.squares / self.count - self.mean**2))

    def percentile(self, percent: float) -> float:
        return self.percentiles((percent,))[0]

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Nearest-rank percentiles, never outside [minimum, maximum]; zeros when empty."""
        if not self.count:
            return [0.0] * len(percents)
        return self._percentiles(*self._used(), percents)

    def distribution(self, *, buckets: bool = True) -> Distribution:
        if not self.count:
            return Distribution()
        used, counts = self._used()
        unit = self.scale.unit
        p50, p75, p90, p95, p99, p999 = self._percentiles(used, counts, _PERCENTILES)
        return Distribution(
            count=self.count,
            mean_ms=self.mean * unit,
            stdev_ms=self.stdev * unit,
            min_ms=self.low * unit,
            p50_ms=p50 * unit,
            p75_ms=p75 * unit,
            p90_ms=p90 * unit,
            p95_ms=p95 * unit,
            p99_ms=p99 * unit,
            p999_ms=p999 * unit,
            max_ms=self.high * unit,
            buckets=used.tolist() if buckets else [],
            counts=counts.tolist() if buckets else [],
        )

    def _percentiles(self, used: Ints, counts: Ints, percents: Iterable[float]) -> list[float]:
        # The subtraction undoes rounding such as 99.9 * n / 100 landing just above a whole rank.
        ranks = [max(1, math.ceil(p * self.count / 100 - 1e-9)) for p in percents]
        found = used[np.searchsorted(counts.cumsum(), ranks)]
        middles = self.scale.middles[found].tolist()
        return [
            self.low
            if rank == 1
            else self.high
            if rank >= self.count
            else min(max(middle, self.low), self.high)
            for rank, middle in zip(ranks, middles, strict=True)
        ]

    def _used(self) -> tuple[Ints, Ints]:
        """Numbers and counts of the buckets in use."""
        if self._packed is not None and not self._waiting:
            packed, counts = self._packed
            return packed.astype(np.int64), counts.astype(np.int64)
        dense = self._unpack()
        used = np.flatnonzero(dense)
        return used, dense[used]

    def _unpack(self) -> Ints:
        if self._dense is None:
            self._dense = np.zeros(self.scale.size, dtype=np.int64)
            if self._packed is not None:
                used, counts = self._packed
                self._dense[used] = counts
                self._packed = None
        if self._waiting:
            numbers = np.fromiter(chain.from_iterable(s.buckets for s in self._waiting), np.int64)
            more = np.fromiter(chain.from_iterable(s.counts for s in self._waiting), np.int64)
            np.add.at(self._dense, numbers, more)
            self._waiting.clear()
        return self._dense

    def _add_moments(
        self, count: int, total: float, squares: float, low: float, high: float
    ) -> None:
        self.count += count
        self.total += total
        self.squares += squares
        self.low = min(self.low, low)
        self.high = max(self.high, high)

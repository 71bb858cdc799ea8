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

import msgspec

from hyperscale.metrics.arrays import ArrayLike, Floats, Ints, np
from hyperscale.metrics.results import Distribution

SUB_BUCKETS = 64
_SHIFT = 52 - 6  # a double has 52 mantissa bits; the upper six number the 64 sub-buckets
_BIAS = 1023  # exponent bias of a double
# Sparse histograms are added up this many at a time: most of the price is per visit.
PARTS_MAX = 16
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


class Sparse(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A histogram with at least one value, as it travels: only the buckets in use.

    Numbers of buckets take 16 bits, counts as many bytes as their sum needs, little-endian:
    thousands of these a second are read and added up without touching a number in Python."""

    packed_buckets: bytes
    packed_counts: bytes
    count: int
    low: float
    high: float
    total: float
    squares: float

    def __post_init__(self) -> None:
        size = len(self.packed_buckets)
        if not size or size % 2 or len(self.packed_counts) / size not in _COUNT_TYPES:
            raise ValueError("a histogram whose counts do not fit its buckets")

    @classmethod
    def of(
        cls,
        buckets: ArrayLike,
        counts: ArrayLike,
        low: float,
        high: float,
        total: float,
        squares: float,
    ) -> Sparse:
        amounts = np.asarray(counts)
        return pack_sparse(
            np.asarray(buckets), amounts, int(amounts.sum()), low, high, total, squares
        )

    @property
    def buckets(self) -> Ints:
        return np.frombuffer(self.packed_buckets, _BUCKET_TYPE).astype(np.int64)

    @property
    def counts(self) -> Ints:
        kind = _COUNT_TYPES[len(self.packed_counts) / len(self.packed_buckets)]
        return np.frombuffer(self.packed_counts, kind).astype(np.int64)


_BUCKET_TYPE = "<u2"
# By how many bytes the counts take for each byte of the buckets.
_COUNT_TYPES = {width / 2: f"<u{width}" for width in (1, 2, 4, 8)}


def pack_sparse(
    buckets: Ints,
    counts: Ints,
    count: int,
    low: float,
    high: float,
    total: float,
    squares: float,
) -> Sparse:
    """No bucket holds more than all of them together, so `count` tells what a count needs."""
    kind = next(kind for share, kind in _COUNT_TYPES.items() if count < 1 << int(16 * share))
    return Sparse(
        buckets.astype(_BUCKET_TYPE).tobytes(),
        counts.astype(kind).tobytes(),
        count,
        low,
        high,
        total,
        squares,
    )


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
    squares = float(np.dot(values, values))
    return pack_sparse(used, dense[used], values.size, low, float(values.max()), total, squares)


def add_up(sparses: Iterable[Sparse | None]) -> Sparse | None:
    """One sparse histogram of several on the same scale; None when there is no value in them."""
    given = [sparse for sparse in sparses if sparse is not None]
    if len(given) < 2:
        return given[0] if given else None
    dense = _dense(given)
    used = np.flatnonzero(dense)
    return pack_sparse(
        used,
        dense[used],
        sum([s.count for s in given]),
        min([s.low for s in given]),
        max([s.high for s in given]),
        math.fsum([s.total for s in given]),
        math.fsum([s.squares for s in given]),
    )


def _dense(sparses: Sequence[Sparse]) -> Ints:
    """The counts of all of them by bucket."""
    share, *others = {len(s.packed_counts) / len(s.packed_buckets) for s in sparses}
    if others:
        by_share: dict[float, list[Sparse]] = {}
        for s in sparses:
            by_share.setdefault(len(s.packed_counts) / len(s.packed_buckets), []).append(s)
        *sums, largest = sorted((_dense(same) for same in by_share.values()), key=len)
        for one in sums:
            largest[: len(one)] += one
        return largest
    buckets = np.frombuffer(b"".join([s.packed_buckets for s in sparses]), _BUCKET_TYPE)
    counts = np.frombuffer(b"".join([s.packed_counts for s in sparses]), _COUNT_TYPES[share])
    # Adds up doubles, which are exact up to 2**53.
    return np.bincount(buckets, counts).astype(np.int64)


class Histogram:
    """Adds up values and other histograms; only the buckets in use take room."""

    __slots__ = ("_parts", "count", "high", "low", "scale", "squares", "total")

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
                Sparse.of(
                    distribution.buckets,
                    distribution.counts,
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
        self._parts: list[Sparse] = []  # not yet added up

    def record(self, value: float) -> None:
        self.record_many(np.array([value], dtype=np.float64))

    def record_many(self, values: Floats) -> None:
        sparse = summarise(values, self.scale)
        if sparse is not None:
            self.add(sparse)

    def add(self, sparse: Sparse) -> None:
        self._parts.append(sparse)
        self.count += sparse.count
        self.total += sparse.total
        self.squares += sparse.squares
        self.low = min(self.low, sparse.low)
        self.high = max(self.high, sparse.high)
        if len(self._parts) == PARTS_MAX:
            self.compact()

    def merge(self, other: Histogram) -> None:
        sparse = other.sparse()
        if sparse is not None:
            self.add(sparse)

    def copy(self) -> Histogram:
        twin = Histogram(self.scale)
        twin.merge(self)
        return twin

    def compact(self) -> None:
        """Add up what was added, and keep the sum only."""
        if len(self._parts) > 1:
            whole = add_up(self._parts)
            assert whole is not None
            moments = {"total": self.total, "squares": self.squares}
            self._parts = [msgspec.structs.replace(whole, **moments)]

    def sparse(self) -> Sparse | None:
        self.compact()
        return self._parts[0] if self._parts else None

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def stdev(self) -> float:
        if not self.count:
            return 0.0
        mean = self.mean
        spread = self.squares / self.count - mean * mean  # a power would raise where this is inf
        return math.sqrt(spread) if 0.0 < spread < math.inf else 0.0

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
        """Numbers and counts of the buckets in use; one that does not exist is the nearest."""
        self.compact()
        (whole,) = self._parts
        return np.minimum(whole.buckets, self.scale.size - 1), whole.counts

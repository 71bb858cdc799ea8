"""Latencies in as many ranges as a chart can tell apart: four to each doubling.

A range is exactly sixteen buckets of a histogram, so its count is exact. An interval tells the
number of its first range that has any and the counts from there on: `[37, 4, 90, 12]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hyperscale.metrics.arrays import np
from hyperscale.metrics.histogram import LATENCY, SUB_BUCKETS, Histogram

PER_DOUBLING = 4
_BUCKETS = SUB_BUCKETS // PER_DOUBLING


def ranges(histogram: Histogram) -> list[int]:
    sparse = histogram.sparse()
    if sparse is None:
        return []
    numbers = np.minimum(sparse.buckets, LATENCY.size - 1) // _BUCKETS
    first = int(numbers[0])
    counts = np.bincount(numbers - first, sparse.counts).astype(np.int64)  # exact up to 2**53
    return [first, *counts.tolist()]


def lower_ms(number: int) -> float:
    """Where a range begins; the one before it ends there."""
    return float(LATENCY.edges[number * _BUCKETS]) * LATENCY.unit


def place(ms: float) -> float:
    """Where a latency lies on an axis on which all ranges are of one height."""
    mantissa, exponent = math.frexp(ms / LATENCY.unit)
    return PER_DOUBLING * (exponent + 2 * mantissa)


def joined(several: Iterable[Sequence[int]]) -> list[int]:
    told = [one for one in several if one]
    if len(told) < 2:
        return list(told[0]) if told else []
    first = min(one[0] for one in told)
    counts = [0] * (max(one[0] + len(one) - 1 for one in told) - first)
    for begin, *amounts in told:
        for place, amount in enumerate(amounts, begin - first):
            counts[place] += amount
    return [first, *counts]

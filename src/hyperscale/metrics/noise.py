"""How far apart two runs can be by chance.

Requests of a load test are not independent: a slow second slows everything in it, and with
hundreds of thousands of requests a test that assumes independence calls every difference
significant. So the noise is taken from the runs themselves: the two timelines are paired second
by second (which removes a ramp both runs share), and the spread of these differences, widened
for their autocorrelation, says how uncertain the mean difference is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from hyperscale.metrics.arrays import Floats
from hyperscale.metrics.histogram import Histogram

PAIRS_MIN = 5
# Runs too short to show their own noise: requests are taken to be this much noisier (variance)
# than independent ones, about what runs on a busy shared machine show.
INFLATION_UNKNOWN = 25.0
FREEDOM_UNKNOWN = 1000.0  # an assumption has no sampling error of its own
# Half a histogram bucket, as a standard deviation of a uniform error.
_BUCKET_ERROR = 0.0078 / math.sqrt(3)

_NORMAL = NormalDist()


class Spread(NamedTuple):
    """Variance of a mean difference and the degrees of freedom behind it."""

    variance: float
    freedom: float


def spread(differences: Floats) -> Spread | None:
    """The uncertainty of the mean of paired differences, or None with too few of them.

    Positive lag-one autocorrelation r leaves n (1 - r) / (1 + r) independent values. Short series
    show too little of it, by (1 + 3 r) / n (Kendall's bias), which is added back.
    """
    n = differences.size
    if n < PAIRS_MIN:
        return None
    centred = differences - differences.mean()
    squares = float(np.dot(centred, centred))
    if squares == 0:
        return Spread(0.0, n - 1)
    r = float(np.dot(centred[1:], centred[:-1])) / squares
    r = min(max(r + (1 + 3 * r) / n, 0.0), 0.95)
    effective = max(2.0, n * (1 - r) / (1 + r))
    return Spread(squares / (n - 1) / effective, effective - 1)


def has_percentile(histogram: Histogram, percent: float) -> bool:
    """A percentile beyond which not one value lies is the largest value: nothing says how much
    larger it might have been."""
    return histogram.count * (1 - percent / 100) > 0.999


def percentile_variance(histogram: Histogram, percent: float) -> float:
    """Variance of the logarithm of a percentile if all requests were independent.

    Woodruff's method: one standard error up and down in rank, read back as values.
    """
    p = percent / 100
    step = math.sqrt(p * (1 - p) / histogram.count)
    low_p, high_p = max(0.0, p - step), min(1.0, p + step)
    low, high = histogram.percentiles((low_p * 100, high_p * 100))
    width = math.log(max(high, 1e-9) / max(low, 1e-9))
    # At the end of the range only one side is there; half a width is then one standard error.
    return float((width * step / (high_p - low_p)) ** 2 + _BUCKET_ERROR**2)


def p_value(difference: float, variance: float, freedom: float) -> float:
    """Two-sided, Student's t through Wallace's normal approximation (error below 0.002)."""
    if variance <= 0:
        return 1.0 if difference == 0 else 0.0
    t2 = difference**2 / variance
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    z = factor * math.sqrt(freedom * math.log1p(t2 / freedom))
    return 2 * (1 - _NORMAL.cdf(z))


def margin(variance: float, freedom: float, confidence: float = 0.95) -> float:
    """Half the width of the confidence interval: the same approximation, solved for t."""
    z = _NORMAL.inv_cdf(0.5 + confidence / 2) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(z * z / freedom) * variance)


def holm(p_values: Sequence[float], error: float = 0.01) -> list[bool]:
    """Which of many tests are significant, if `error` is the chance that any is a false alarm."""
    significant = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        if p_values[index] > error / (len(p_values) - rank):
            break
        significant[index] = True
    return significant

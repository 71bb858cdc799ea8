"""Points of a timeline joined to wider ones, where the histograms behind them are gone.

Counts add up exactly. A percentile is read from the distributions that the percentiles of the
parts describe: close enough for a curve and for how much it varies, not for a number to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from hyperscale.metrics.arrays import np
from hyperscale.metrics.ranges import joined as joined_ranges
from hyperscale.metrics.results import Point

# What a point tells of its latencies, from none of them to all.
_SHARES = (0.0, 0.5, 0.95, 0.99, 1.0)


def widened(points: Iterable[Point], width_s: float) -> list[Point]:
    """Intervals of this width; wider where a point is, shorter where points end before it does."""
    cells = groupby(points, key=lambda point: math.floor(point.at_s / width_s + 1e-9))
    return [_joined(list(parts)) for _, parts in cells]


def evened(points: Sequence[Point], count: int) -> Sequence[Point]:
    """For curves: seconds swing more than minutes, and a run that changes from one to the other
    seems to change itself. So where widths differ no more than `count` intervals share the time."""
    if len({point.width_s for point in points[:-1]}) < 2:
        return points
    return widened(points, (points[-1].at_s + points[-1].width_s) / count)


def _joined(parts: Sequence[Point]) -> Point:
    if len(parts) == 1:
        return parts[0]
    p50_ms, p95_ms, p99_ms, lateness = _latencies([part for part in parts if part.p50_ms > 0])
    return Point(
        at_s=parts[0].at_s,
        width_s=math.fsum(part.width_s for part in parts),
        requests=sum(part.requests for part in parts),
        failed=sum(part.failed for part in parts),
        iterations=sum(part.iterations for part in parts),
        dropped=sum(part.dropped for part in parts),
        vus=max(part.vus for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
        p50_ms=p50_ms,
        p95_ms=p95_ms,
        p99_ms=p99_ms,
        max_ms=max(part.max_ms for part in parts),
        response_p99_ms=p99_ms * lateness,
        ranges=joined_ranges(part.ranges for part in parts),
    )


def _latencies(parts: Sequence[Point]) -> tuple[float, float, float, float]:
    """p50, p95 and p99 of all, and how many times as high the p99 of response times is."""
    if not parts:
        return 0.0, 0.0, 0.0, 1.0
    weights = np.array([max(1, part.requests) for part in parts], float)
    known = np.array([(0.0, p.p50_ms, p.p95_ms, p.p99_ms, p.max_ms) for p in parts])
    known = np.maximum.accumulate(known, axis=1)
    values = np.unique(known)
    shares = np.zeros_like(values)
    for each, weight in zip(known, weights / weights.sum(), strict=True):
        shares += weight * np.interp(values, each, _SHARES)
    p50_ms, p95_ms, p99_ms = np.interp(_SHARES[1:4], shares, values).tolist()
    lateness = np.average([p.response_p99_ms / max(p.p99_ms, 1e-9) for p in parts], weights=weights)
    return p50_ms, p95_ms, p99_ms, float(lateness)

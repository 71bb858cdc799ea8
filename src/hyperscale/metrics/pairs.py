"""Two timelines side by side, second by second, and how much their differences vary."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from hyperscale.metrics.arrays import Floats
from hyperscale.metrics.noise import Spread, spread
from hyperscale.metrics.points import widened
from hyperscale.metrics.results import Point, StepPoint

Metric = Literal["throughput", "error_share", "p50", "p95", "p99"]


def timeline_spreads(before: list[Point], after: list[Point]) -> dict[Metric, Spread]:
    """How uncertain the mean difference of each metric is; short timelines tell nothing."""
    old, new = _align(before, after)
    old_rates = np.array([point.requests / point.width_s for point in old])
    new_rates = np.array([point.requests / point.width_s for point in new])
    differences: dict[Metric, Floats] = {}
    if old_rates.any():
        differences["throughput"] = (new_rates - old_rates) / old_rates.mean()
    pairs = [(o, n) for o, n in zip(old, new, strict=True) if _calls(o) and _calls(n)]
    differences["error_share"] = np.array([_error_share(n) - _error_share(o) for o, n in pairs])
    timed = [(o, n) for o, n in pairs if o.p50_ms > 0 and n.p50_ms > 0]
    differences["p50"] = np.array([math.log(n.p50_ms / o.p50_ms) for o, n in timed])
    differences["p95"] = np.array([math.log(n.p95_ms / o.p95_ms) for o, n in timed])
    differences["p99"] = np.array([math.log(n.p99_ms / o.p99_ms) for o, n in timed])
    return {
        metric: found
        for metric, values in differences.items()
        if (found := spread(values)) is not None
    }


def step_spreads(before: list[StepPoint], after: list[StepPoint]) -> dict[Metric, Spread]:
    return timeline_spreads([_point(each) for each in before], [_point(each) for each in after])


def _point(point: StepPoint) -> Point:
    return Point(**msgspec.structs.asdict(point))


def _calls(point: Point) -> int:
    """At least so many: a point does not tell which of the failed ones were never sent."""
    return max(point.requests, point.failed)


def _error_share(point: Point) -> float:
    return point.failed / _calls(point)


def _align(before: list[Point], after: list[Point]) -> tuple[list[Point], list[Point]]:
    """Both timelines in intervals of the same width over the time they share.

    The last point of a timeline is as wide as the run left it; all others are whole intervals."""
    width_s = max((point.width_s for point in (*before[:-1], *after[:-1])), default=math.inf)
    old, new = _whole(before, width_s), _whole(after, width_s)
    shared = sorted(old.keys() & new.keys())
    return [old[at_s] for at_s in shared], [new[at_s] for at_s in shared]


def _whole(points: list[Point], width_s: float) -> dict[float, Point]:
    """Intervals of this width by where they begin; those with less in them are left out."""
    return {
        point.at_s: point
        for point in widened(points, width_s)
        if math.isclose(point.width_s, width_s, rel_tol=1e-6)
    }

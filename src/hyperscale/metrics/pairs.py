"""Two timelines side by side, second by second, and how much their differences vary."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from hyperscale.metrics.histogram import Floats
from hyperscale.metrics.noise import Spread, spread
from hyperscale.metrics.results import Point

Metric = Literal["throughput", "error_share", "p50", "p95", "p99"]


def timeline_spreads(before: list[Point], after: list[Point]) -> dict[Metric, Spread]:
    """How uncertain the mean difference of each metric is; short timelines tell nothing."""
    old, new = _align(before, after)
    old_rates = np.array([point.requests / point.width_s for point in old])
    new_rates = np.array([point.requests / point.width_s for point in new])
    differences: dict[Metric, Floats] = {}
    if old_rates.any():
        differences["throughput"] = (new_rates - old_rates) / old_rates.mean()
    pairs = [(o, n) for o, n in zip(old, new, strict=True) if o.requests and n.requests]
    differences["error_share"] = np.array(
        [n.failed / n.requests - o.failed / o.requests for o, n in pairs]
    )
    timed = [(o, n) for o, n in pairs if o.p50_ms > 0 and n.p50_ms > 0]
    differences["p50"] = np.array([math.log(n.p50_ms / o.p50_ms) for o, n in timed])
    differences["p95"] = np.array([math.log(n.p95_ms / o.p95_ms) for o, n in timed])
    differences["p99"] = np.array([math.log(n.p99_ms / o.p99_ms) for o, n in timed])
    return {
        metric: found
        for metric, values in differences.items()
        if (found := spread(values)) is not None
    }


def _align(before: list[Point], after: list[Point]) -> tuple[list[Point], list[Point]]:
    """Both timelines in intervals of the same width over the time they share."""
    if not before or not after:
        return [], []
    width_s = max(before[0].width_s, after[0].width_s)
    old, new = _widen(before, width_s), _widen(after, width_s)
    shared = min(len(old), len(new))
    return old[:shared], new[:shared]


def _widen(points: list[Point], width_s: float) -> list[Point]:
    """Join intervals up to a width; an incomplete last one is left out.

    A joined percentile is the mean of the parts: good enough to see how much it varies.
    """
    ratio = max(1, round(width_s / points[0].width_s))
    regular = [p for p in points if math.isclose(p.width_s, points[0].width_s, rel_tol=1e-6)]
    joined = []
    for start in range(0, len(regular) - ratio + 1, ratio):
        parts = regular[start : start + ratio]
        weights = [p.requests for p in parts] if any(p.requests for p in parts) else None
        joined.append(
            Point(
                at_s=parts[0].at_s,
                width_s=width_s,
                requests=sum(p.requests for p in parts),
                failed=sum(p.failed for p in parts),
                p50_ms=float(np.average([p.p50_ms for p in parts], weights=weights)),
                p95_ms=float(np.average([p.p95_ms for p in parts], weights=weights)),
                p99_ms=float(np.average([p.p99_ms for p in parts], weights=weights)),
            )
        )
    return joined

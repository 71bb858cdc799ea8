"""Statistics of one or more latency distributions, asked for by the names k6 gives them.

Several distributions are added up as histograms; percentiles are never averaged. Without
histograms (results written by another tool) the percentiles of a single one are still known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from hyperscale.errors import BadInput
from hyperscale.metrics.histogram import LATENCY, Histogram, Scale
from hyperscale.metrics.results import Distribution

DEFAULT_STATS = ("avg", "min", "med", "max", "p(90)", "p(95)", "p(99)")

_PERCENTILE = re.compile(r"p\((\d+(?:\.\d+)?)\)")
_KNOWN: dict[float, Callable[[Distribution], float]] = {
    50.0: lambda d: d.p50_ms,
    75.0: lambda d: d.p75_ms,
    90.0: lambda d: d.p90_ms,
    95.0: lambda d: d.p95_ms,
    99.0: lambda d: d.p99_ms,
    99.9: lambda d: d.p999_ms,
}


def parse_trend_stats(value: str | Sequence[str]) -> tuple[str, ...]:
    """`"avg,p(95)"` or a list; BadInput names what is not a statistic."""
    names = value.split(",") if isinstance(value, str) else value
    stats = tuple(name.strip() for name in names if name.strip())
    for name in stats:
        found = _PERCENTILE.fullmatch(name)
        if name not in ("avg", "min", "med", "max", "count", "stdev") and (
            not found or float(found[1]) > 100
        ):
            raise BadInput(
                f"{name!r} is not a summary statistic.",
                "Use avg, min, med, max, count, stdev or a percentile such as p(95) or p(99.9).",
            )
    return stats or DEFAULT_STATS


class Trend:
    def __init__(self, distributions: Iterable[Distribution], scale: Scale = LATENCY) -> None:
        self._parts = [part for part in distributions if part.count]
        self._scale = scale
        self._histogram: Histogram | None = None
        if self._parts and all(len(p.buckets) == len(p.counts) > 0 for p in self._parts):
            self._histogram = Histogram(scale)
            for part in self._parts:
                self._histogram.merge(Histogram.from_distribution(part, scale))

    @property
    def count(self) -> int:
        return sum(part.count for part in self._parts)

    @property
    def mean(self) -> float:
        return sum(part.mean_ms * part.count for part in self._parts) / max(1, self.count)

    def stat(self, name: str) -> float:
        """In milliseconds (or the author's unit); not a number when it cannot be known."""
        if not self._parts:
            return math.nan
        match name:
            case "count":
                return self.count
            case "avg":
                return self.mean
            case "min":
                return min(part.min_ms for part in self._parts)
            case "max":
                return max(part.max_ms for part in self._parts)
            case "med":
                return self.percentile(50.0)
            case "stdev":
                return self._stdev()
        found = _PERCENTILE.fullmatch(name)
        return self.percentile(float(found[1])) if found else math.nan

    def percentile(self, percent: float) -> float:
        if len(self._parts) == 1 and percent in _KNOWN:
            return _KNOWN[percent](self._parts[0])
        if self._histogram is None:
            return math.nan
        return self._histogram.percentile(percent) * self._scale.unit

    def _stdev(self) -> float:
        squares = sum((p.stdev_ms**2 + p.mean_ms**2) * p.count for p in self._parts)
        return math.sqrt(max(0.0, squares / max(1, self.count) - self.mean**2))

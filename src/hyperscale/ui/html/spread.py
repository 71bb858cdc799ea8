"""How latencies are spread: the histogram, and the percentile spectrum that shows the tail.

Both come from the merged histograms of the steps, never from averaged percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hyperscale.metrics.histogram import LATENCY, Histogram
from hyperscale.metrics.results import Distribution, WorkflowResult
from hyperscale.ui.html import numbers, scale
from hyperscale.ui.html.chart import Chart, Position, bar, line
from hyperscale.ui.html.markup import Html, tag
from hyperscale.ui.html.scale import Scale

_BARS = 72
# A bar must span several buckets of the histogram, or the chart shows the buckets, not the data.
_BARS_PER_DOUBLING = 16
# Bars too low to see are drawn this high: a tail that exists must be visible.
_LOWEST_BAR = 0.006
_SPECTRUM_STEP = 0.04
_NINES = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999)


def merged(distributions: Iterable[Distribution]) -> Histogram:
    total = Histogram()
    for distribution in distributions:
        if distribution.buckets:
            total.merge(Histogram.from_distribution(distribution))
    return total


def spread(workflow: WorkflowResult, index: int) -> Html | None:
    service = merged(step.service for step in workflow.steps)
    response = merged(step.response for step in workflow.steps)
    if not service.count:
        return None
    views = [("service", "service time", service)]
    if response.count and _differ(service, response):
        views.append(("response", "response time", response))
    return tag(
        "div",
        _bars(views, index).render(),
        _spectrum(views, index).render(),
        class_="pair",
    )


_View = tuple[str, str, Histogram]


def _bars(views: list[_View], index: int) -> Chart:
    low = min(view.low for _, _, view in views) * 1000
    high = max(view.high for _, _, view in views) * 1000
    x = scale.logarithmic(low, high, 9)
    doublings = math.log2(x.high / x.low)
    bars = max(8, min(_BARS, int(doublings * _BARS_PER_DOUBLING)))
    borders = np.geomspace(x.low, x.high, bars + 1)
    shares = {kind: _shares(view, borders) for kind, _, view in views}
    y = scale.linear(max(max(values) for values in shares.values()))
    curves = []
    for position, share in enumerate(shares["service"]):
        if share > 0:
            left, right = borders[position], borders[position + 1]
            tip = (
                f"{numbers.milliseconds(left)} to {numbers.milliseconds(right)}: "
                f"{numbers.share(share, 1)} of requests"
            )
            top = max(_LOWEST_BAR, y.position(share))
            edges = position / bars, (position + 1) / bars
            curves.append(bar(*edges, top, "service", tip))
    if "response" in shares:
        curves.append(line(_outline(shares["response"], y), "response"))
    _, _, service = views[0]
    return Chart(
        key=f"w{index}-histogram",
        title="Distribution",
        unit="share of requests by latency, logarithmic scale",
        description=f"Service times between {numbers.milliseconds(service.low * 1000)} "
        f"and {numbers.milliseconds(service.high * 1000)}, "
        f"half of them at or below {numbers.milliseconds(service.percentile(50) * 1000)}.",
        x=x,
        y=y,
        x_label=numbers.milliseconds,
        y_label=lambda value: numbers.share(value, 1),
        curves=curves,
        legend=[(kind, name) for kind, name, _ in views],
        data={"data_kind": "histogram"},
    )


def _shares(view: Histogram, borders: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """The share between two borders, a bucket across a border divided in proportion."""
    sparse = view.sparse()
    if sparse is None:
        return [0.0] * (len(borders) - 1)
    counts = np.zeros(LATENCY.size)
    counts[sparse.buckets] = sparse.counts
    reached = np.concatenate(([0.0], counts.cumsum())) / view.count
    below = np.interp(borders, LATENCY.edges * LATENCY.unit, reached)
    below[0], below[-1] = 0.0, 1.0
    shares: list[float] = np.diff(below).tolist()
    return shares


def _outline(shares: list[float], y: Scale) -> list[Position]:
    points: list[Position] = []
    for position, share in enumerate(shares):
        height = max(_LOWEST_BAR if share > 0 else 0, y.position(share))
        points.append((position / len(shares), height))
        points.append(((position + 1) / len(shares), height))
    return points


def _spectrum(views: list[_View], index: int) -> Chart:
    most = max(view.count for _, _, view in views)
    end = max(1.0, math.log10(most))
    nines = [percentile for percentile in _NINES if _depth(percentile) <= end + 1e-9]
    x = Scale(0, end, [_depth(percentile) for percentile in nines])
    low = min(max(view.low, 1e-6) for _, _, view in views) * 1000
    high = max(view.high for _, _, view in views) * 1000
    y = scale.fitting(low, high)
    curves = []
    for kind, _, view in reversed(views):
        depths = np.arange(0, math.log10(view.count) if view.count > 1 else 0, _SPECTRUM_STEP)
        values = view.percentiles([100 - 100 * 10 ** -float(depth) for depth in depths])
        points = [
            (x.position(float(depth)), y.position(value * 1000))
            for depth, value in zip(depths, values, strict=True)
        ]
        points.append((x.position(math.log10(view.count)), y.position(view.high * 1000)))
        if len(points) == 1:
            points.insert(0, (0.0, points[0][1]))
        curves.append(line(points, kind))
    _, _, service = views[0]
    return Chart(
        key=f"w{index}-spectrum",
        title="Percentile spectrum",
        unit="latency by percentile" + (", logarithmic scale" if y.log else ""),
        description=", ".join(
            f"p{percentile:g} {numbers.milliseconds(value * 1000)}"
            for percentile, value in zip(nines, service.percentiles(nines), strict=True)
        ),
        x=x,
        y=y,
        x_label=lambda depth: f"{100 - 100 * 10**-depth:.6g}%",
        y_label=numbers.milliseconds,
        curves=curves,
        legend=[(kind, name) for kind, name, _ in views],
        data={"data_kind": "spectrum"},
    )


def _depth(percentile: float) -> float:
    """Each further nine is one step: p90 at 1, p99 at 2, p99.9 at 3."""
    return -math.log10(1 - percentile / 100)


def _differ(one: Histogram, other: Histogram) -> bool:
    pairs = zip(
        one.percentiles((50, 95, 99, 99.9)), other.percentiles((50, 95, 99, 99.9)), strict=True
    )
    return any(abs(a - b) > 0.02 * max(a, b) for a, b in pairs)

"""A workflow over time: throughput with failures, latency percentiles, virtual users; and a step.

The three charts share one time axis and the same marks, so that a change in one can be read in
the others. Intervals in which nothing was answered leave a gap in the latency, not a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from hyperscale.metrics.points import evened, widened
from hyperscale.metrics.results import Mark, Point, StepPoint, StepResult, WorkflowResult
from hyperscale.ui.html import numbers, scale
from hyperscale.ui.html.chart import Chart, Position, area, line
from hyperscale.ui.html.markup import Attribute, Html, join, tag
from hyperscale.ui.html.scale import Scale

Value = Callable[[Point], float]

_INTERVALS = 1000  # as many as a wide page has room for
_STEP_INTERVALS = 300  # in a chart of half the width

_PERCENTILES: tuple[tuple[str, str, Value], ...] = (
    ("p50", "p50", lambda point: point.p50_ms),
    ("p95", "p95", lambda point: point.p95_ms),
    ("p99", "p99", lambda point: point.p99_ms),
)
_RESPONSE = ("response", "p99 response", lambda point: point.response_p99_ms)


def timeline(workflow: WorkflowResult, index: int) -> Html:
    series = evened(workflow.series, _INTERVALS)
    if not series:
        return tag("p", "No timeline: the run ended before its first interval.", class_="empty")
    end = max(point.at_s + point.width_s for point in series)
    marks = sorted(
        (mark for mark in workflow.marks if 0 <= mark.at_s <= end), key=lambda mark: mark.at_s
    )
    axis, step = scale.time(end)
    frame = _Frame(
        f"w{index}", axis, lambda at: numbers.clock(at, step), marks, {"data_workflow": index}
    )
    return join(
        [
            _throughput(series, frame).render(),
            _latency(series, frame),
            heat_map(series, frame),
            _users(series, frame).render(),
        ]
    )


def step_charts(workflow: WorkflowResult, step: StepResult, index: int, place: int) -> Html | None:
    """Throughput and latency of a step, on the time axis of its workflow."""
    series = [_point(point) for point in step.series]
    if not series:
        return None
    end = max(point.at_s + point.width_s for point in [*workflow.series[-1:], series[-1]])
    if len(series) > _STEP_INTERVALS:
        series = widened(series, end / _STEP_INTERVALS)
    axis, width = scale.time(end, 4)
    frame = _Frame(
        f"w{index}-s{place}",
        axis,
        lambda at: numbers.clock(at, width),
        sorted((m for m in workflow.marks if 0 <= m.at_s <= end), key=lambda mark: mark.at_s),
        {"data_workflow": index, "data_step": place},
    )
    charts = [_throughput(series, frame).render(), _latency(series, frame)]
    return tag("div", charts, class_="pair")


def side_by_side(runs: Sequence[tuple[str, WorkflowResult]], index: int) -> Iterator[Html]:
    """A workflow in several runs, all on the same scales; its place among all is `index` and the
    following."""
    shown = [(label, w, evened(w.series, _STEP_INTERVALS)) for label, w in runs]
    points = [point for _, _, series in shown for point in series]
    if not points:
        return
    end = max(point.at_s + point.width_s for point in points)
    axis, step = scale.time(end, 4)
    top = max(_per_second(point.requests, point) for point in points)
    for place, (label, workflow, series) in enumerate(shown, index):
        if not series:
            yield tag("div", tag("h4", label), tag("p", "No timeline.", class_="empty"))
            continue
        marks = sorted((m for m in workflow.marks if 0 <= m.at_s <= end), key=lambda m: m.at_s)
        data: dict[str, Attribute] = {"data_workflow": place}
        frame = _Frame(
            f"w{place}", axis, lambda at: numbers.clock(at, step), marks, data, words=False
        )
        charts = [_throughput(series, frame, top).render(), _latency(series, frame, points)]
        yield tag("div", tag("h4", label), charts, heat_map(series, frame, points))


def _point(point: StepPoint) -> Point:
    return Point(**msgspec.structs.asdict(point))


class _Frame:
    """What the charts of one workflow or step have in common."""

    def __init__(
        self,
        key: str,
        x: Scale,
        x_label: Callable[[float], str],
        marks: Sequence[Mark],
        data: dict[str, Attribute],
        *,
        words: bool = True,
    ) -> None:
        self.key = key
        self.x = x
        self.x_label = x_label
        self.marks = marks
        self.data = data
        self.words = words

    def chart(
        self,
        kind: str,
        title: str,
        unit: str,
        description: str,
        y: Scale,
        y_label: Callable[[float], str],
        curves: Sequence[Html],
        legend: Sequence[tuple[str, str]] = (),
    ) -> Chart:
        return Chart(
            key=f"{self.key}-{kind}",
            title=title,
            unit=unit,
            description=description,
            x=self.x,
            y=y,
            x_label=self.x_label,
            y_label=y_label,
            curves=curves,
            legend=legend,
            marks=self.marks,
            mark_texts=self.words and kind == "throughput" and "data_step" not in self.data,
            data={"data_kind": kind, "data_end": f"{self.x.high:g}", **self.data},
        )

    def run(self, points: Sequence[Point], value: Value, y: Scale) -> list[Position]:
        """Through the middle of every interval, level to the outer edge of the first and last."""
        places = [
            (self.x.position(point.at_s + point.width_s / 2), y.position(value(point)))
            for point in points
        ]
        first, last = points[0], points[-1]
        return [
            (self.x.position(first.at_s), places[0][1]),
            *places,
            (self.x.position(last.at_s + last.width_s), places[-1][1]),
        ]


def _throughput(series: Sequence[Point], frame: _Frame, top: float = 0.0) -> Chart:
    """At least as high as `top`, where several charts share a scale."""
    rates = [_per_second(point.requests, point) for point in series]
    failed = sum(point.failed for point in series)
    dropped = sum(point.dropped for point in series)
    missed_rate = max(_per_second(point.dropped, point) for point in series)
    y = scale.linear(max(top, missed_rate, *rates))
    requests = frame.run(series, lambda point: _per_second(point.requests, point), y)
    curves = [area(requests, "requests"), line(requests, "requests")]
    legend = [("requests", "requests")]
    if failed:
        failures = frame.run(series, lambda point: _per_second(point.failed, point), y)
        curves += [area(failures, "failed"), line(failures, "failed")]
        legend.append(("failed", "failed"))
    if dropped:
        missed = frame.run(series, lambda point: _per_second(point.dropped, point), y)
        curves.append(line(missed, "dropped"))
        legend.append(("dropped", "arrivals not started"))
    return frame.chart(
        "throughput",
        "Throughput",
        "requests per second",
        f"Between {numbers.rate(min(rates))} and {numbers.rate(max(rates))}; "
        f"{numbers.count(failed)} requests failed, {numbers.count(dropped)} arrivals not started.",
        y,
        numbers.short,
        curves,
        legend,
    )


def _latency(series: Sequence[Point], frame: _Frame, scope: Sequence[Point] = ()) -> Html:
    """`scope`: points of other charts too, with which it shares a scale."""
    percentiles = [*_PERCENTILES]
    if any(_waited(point) for point in series):
        percentiles.append(_RESPONSE)
    answered = [point for piece in _pieces(series) for point in piece]
    if not answered:
        return tag("p", "No latencies: nothing was answered.", class_="empty")
    told = [*answered, *(point for point in scope if point.p50_ms > 0)]
    values = [value(point) for point in told for _, _, value in percentiles]
    y = scale.fitting(min(value for value in values if value > 0), max(values))
    curves = [
        line(frame.run(piece, value, y), kind)
        for kind, _, value in reversed(percentiles)
        for piece in _pieces(series)
    ]
    worst = max(answered, key=lambda point: point.p99_ms)
    return frame.chart(
        "latency",
        "Latency",
        "percentiles of each interval" + (", logarithmic scale" if y.log else ""),
        f"The highest p99 of an interval is {numbers.milliseconds(worst.p99_ms)}, "
        f"at {numbers.clock(worst.at_s)}.",
        y,
        numbers.milliseconds,
        curves,
        [(kind, name) for kind, name, _ in percentiles],
    ).render()


def heat_map(series: Sequence[Point], frame: _Frame, scope: Sequence[Point] = ()) -> Html | None:
    """Only the frame: the cells are drawn by the script, from the results."""
    if not any(point.ranges for point in series):
        return None
    told = [point.ranges for point in (*series, *scope) if point.ranges]
    first = min(ranges[0] for ranges in told)
    last = max(ranges[0] + len(ranges) - 2 for ranges in told)
    y = scale.ranged(first, last)
    chart = frame.chart(
        "heat",
        "Latency heat map",
        "requests by time and latency; the stronger, the more",
        f"Latencies lie between {numbers.milliseconds(y.low)} and {numbers.milliseconds(y.high)}.",
        y,
        numbers.milliseconds,
        [],
    )
    chart.data |= {"data_low": first, "data_high": last + 1}
    return chart.render()


def _users(series: Sequence[Point], frame: _Frame) -> Chart:
    most = max(point.vus for point in series)
    y = scale.whole(most, 2)
    points = frame.run(series, lambda point: point.vus, y)
    return frame.chart(
        "users",
        "Virtual users",
        "active",
        f"At most {numbers.count(most)} virtual users at a time.",
        y,
        numbers.short,
        [area(points, "users"), line(points, "users")],
    )


def _per_second(value: int, point: Point) -> float:
    return value / point.width_s if point.width_s > 0 else 0.0


def _waited(point: Point) -> bool:
    """Whether the response view says something the service view does not."""
    return point.response_p99_ms > point.p99_ms * 1.02 + 0.05


def _pieces(series: Iterable[Point]) -> list[list[Point]]:
    pieces: list[list[Point]] = [[]]
    for point in series:
        if point.requests and point.p50_ms > 0:
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]

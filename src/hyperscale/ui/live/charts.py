"""Rate and latency over time as two panels, side by side where the screen is wide enough.

Drawn again only when the timeline has grown: a frame in between costs nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from hyperscale.metrics.points import evened
from hyperscale.metrics.results import Mark, Point, WorkflowResult
from hyperscale.ui import plot, text
from hyperscale.ui.live import palette
from hyperscale.ui.live.palette import Line

MIN_ROWS = 5  # heading, three lines of plot, time axis
_SIDE_BY_SIDE = 72  # columns; below, one panel leaves too few dots
_AXIS = 8  # "40,120 ┤"
_BETWEEN = 2
_DOTS = 200  # about what a panel has side by side
_FLAG, _RULE = Segment("▲", palette.WARN), Segment("─", palette.FAINT)


@dataclass(frozen=True, slots=True)
class Panel:
    heading: str
    curves: list[tuple[str, Style, list[plot.Sample]]]
    label: Callable[[float], str]


class Charts:
    """Keeps the last drawing and what it was made from."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._lines: list[Line] = []

    def draw(self, workflow: WorkflowResult, width: int, rows: int, pen: plot.Pen) -> list[Line]:
        points = whole_points(workflow)
        if rows < MIN_ROWS or len(points) < 2:
            return []
        until = points[-1].at_s + points[-1].width_s
        key = (workflow.name, len(points), until, len(workflow.marks))
        return self._drawn(
            key, lambda: _panels(workflow, points), until, workflow.marks, width, rows, pen
        )

    def draw_all(
        self, workflows: Sequence[WorkflowResult], width: int, rows: int, pen: plot.Pen
    ) -> list[Line]:
        """A curve for each workflow, on the time of the run."""
        shown = [(w, points) for w in workflows if len(points := whole_points(w)) > 1]
        if rows < MIN_ROWS or not shown:
            return []
        until = max(w.started_s + points[-1].at_s + points[-1].width_s for w, points in shown)
        key = ("", until, *(len(points) for _, points in shown))
        return self._drawn(key, lambda: _panels_of_all(shown), until, (), width, rows, pen)

    def _drawn(
        self,
        key: tuple[object, ...],
        panels: Callable[[], list[Panel]],
        until: float,
        marks: Sequence[Mark],
        width: int,
        rows: int,
        pen: plot.Pen,
    ) -> list[Line]:
        if rows > MIN_ROWS and rows % 2 == 0:
            rows -= 1  # an odd number of lines has a middle one to label
        key = (*key, width, rows, id(pen))
        if key != self._key:
            self._key, self._lines = key, _side_by_side(panels(), until, marks, width, rows, pen)
        return self._lines


def whole_points(workflow: WorkflowResult) -> list[Point]:
    """Without the interval still being filled, whose rate would look like a fall."""
    points = workflow.series
    if points and workflow.state != "finished":
        last = points[-1]
        if last.at_s + last.width_s > workflow.elapsed_s:
            return points[:-1]
    return points


def _panels(workflow: WorkflowResult, points: Sequence[Point]) -> list[Panel]:
    even = evened(points, _DOTS)
    return [_rate_panel(even), _latency_panel(workflow, even)]


def _panels_of_all(shown: Sequence[tuple[WorkflowResult, Sequence[Point]]]) -> list[Panel]:
    rates, latencies = [], []
    for place, (workflow, points) in enumerate(shown):
        style = palette.WORKFLOWS[place % len(palette.WORKFLOWS)]
        even = [(workflow.started_s + _middle(p), p) for p in evened(points, _DOTS)]
        rate = [(at, p.requests / p.width_s) for at, p in even if p.width_s > 0]
        latency = [(at, p.p95_ms if p.requests else math.nan) for at, p in even]
        rates.append((workflow.name, style, rate))
        latencies.append((workflow.name, style, latency))
    return [
        Panel("requests/s", rates, text.short_count),
        Panel("p95", latencies, text.duration),
    ]


def _side_by_side(
    panels: Sequence[Panel],
    until: float,
    marks: Sequence[Mark],
    width: int,
    rows: int,
    pen: plot.Pen,
) -> list[Line]:
    if width >= _SIDE_BY_SIDE:
        half = (width - _BETWEEN) // 2
        left, right = (_panel(p, half, rows, until, marks, pen) for p in panels)
        return [
            [*a, Segment(" " * (half + _BETWEEN - palette.text_width(a))), *b]
            for a, b in zip(left, right, strict=True)
        ]
    if rows >= 2 * MIN_ROWS:
        upper = rows // 2
        return [
            line
            for panel, height in zip(panels, (upper, rows - upper), strict=True)
            for line in _panel(panel, width, height, until, marks, pen)
        ]
    return _panel(panels[0], width, rows, until, marks, pen)


def _rate_panel(points: Sequence[Point]) -> Panel:
    wide = [p for p in points if p.width_s > 0]
    curves = [("", palette.RATE, [(_middle(p), p.requests / p.width_s) for p in wide])]
    if any(p.failed for p in wide):
        failures = [(_middle(p), p.failed / p.width_s if p.failed else math.nan) for p in wide]
        curves.insert(0, ("failed", palette.BAD, failures))
    return Panel("requests/s", curves, text.short_count)


def _middle(point: Point) -> float:
    return point.at_s + point.width_s / 2


def _latency_panel(workflow: WorkflowResult, points: Sequence[Point]) -> Panel:
    def curve(value: Callable[[Point], float]) -> list[plot.Sample]:
        return [(_middle(p), value(p) if p.requests else math.nan) for p in points]

    curves = [
        ("p95", palette.CURVES[0], curve(lambda p: p.p95_ms)),
        ("p99", palette.CURVES[1], curve(lambda p: p.p99_ms)),
    ]
    if workflow.open_model:
        name = "response p99"
        curves.append((name, palette.CURVES[2], curve(lambda p: p.response_p99_ms)))
    return Panel("latency", curves, text.duration)


def _panel(
    panel: Panel, width: int, rows: int, until: float, marks: Sequence[Mark], pen: plot.Pen
) -> list[Line]:
    body = rows - 2
    columns = max(1, width - _AXIS)
    values = [value for _, _, samples in panel.curves for _, value in samples]
    top = plot.ceiling(max(filter(math.isfinite, values), default=0.0))
    drawn = plot.draw(
        [samples for _, _, samples in panel.curves],
        width=columns, height=body, until=until, top=top, pen=pen,
    )  # fmt: skip
    heading: Line = [Segment(panel.heading, palette.HEADING)]
    heading += [Segment(f"  {name}", style) for name, style, _ in panel.curves if name]
    lines = [palette.spread(heading, [Segment(f"0–{text.seconds(until)}", palette.FAINT)], width)]
    middle = body // 2 if body >= 5 and body % 2 else -1
    for i, runs in enumerate(drawn):
        label = ""
        if i == 0:
            label = panel.label(top)
        elif i == body - 1:
            label = "0"
        elif i == middle:
            label = panel.label(top / 2)
        axis = Segment(
            f"{text.fit(label, _AXIS - 2):>{_AXIS - 2}} {'┤' if label else '│'}", palette.FAINT
        )
        colored = [
            Segment(run, panel.curves[owner][1] if owner >= 0 else palette.PLAIN)
            for run, owner in runs
        ]
        lines.append([axis, *colored])
    lines.append(_time_axis(columns, until, marks))
    return lines


def _time_axis(columns: int, until: float, marks: Sequence[Mark]) -> Line:
    flags = {plot.column_of(mark.at_s, until, columns) for mark in marks if mark.at_s <= until}
    line: Line = [Segment(" " * (_AXIS - 1) + "└", palette.FAINT)]
    for i in range(columns):
        line.append(_FLAG if i in flags else _RULE)
    return list(Segment.simplify(line))

"""The table of steps: service time in the first row of a step, response time in the second, its
requests by name below where there is room.

Columns give way by importance as the screen narrows; the name takes what is left. Both latency
views are shown where they differ; where there is no room for both, the heading says by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from hyperscale.metrics.results import Distribution, RequestResult, StepResult, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.live import palette
from hyperscale.ui.live.columns import GAP, fitting
from hyperscale.ui.live.palette import Line
from hyperscale.ui.totals import request_label, told_requests, views_differ

_NAME_MIN, _NAME_MAX = 12, 40
_NAME_ROOMY = 19  # room for a remark beside the word "step"


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    width: int
    rank: int  # 1 stays longest
    of_step: Callable[[StepResult | RequestResult], str] | None = None
    of_latency: Callable[[Distribution], float] | None = None


_COLUMNS = (
    Column("count", 7, 5, of_step=lambda step: text.short_count(step.count)),
    Column("rate", 9, 1, of_step=lambda step: text.rate(step.rate)),
    Column("p50", 6, 4, of_latency=lambda latency: latency.p50_ms),
    Column("p90", 6, 8, of_latency=lambda latency: latency.p90_ms),
    Column("p95", 6, 2, of_latency=lambda latency: latency.p95_ms),
    Column("p99", 6, 6, of_latency=lambda latency: latency.p99_ms),
    Column("max", 6, 7, of_latency=lambda latency: latency.max_ms),
    Column("errors", 7, 3, of_step=lambda step: text.short_count(step.failed)),
)
_STEP_P95 = Column("step p95", 8, 9, of_step=lambda step: _spent(step))


def _spent(of: StepResult | RequestResult) -> str:
    """The time inside a step, its own code and waits included; a request has none of its own."""
    if isinstance(of, RequestResult):
        return ""
    return text.short_duration(of.duration.p95_ms) if of.duration.count else text.NOTHING


def rows_of(steps: Sequence[StepResult], *, both: bool, names: bool) -> int:
    """Without the heading."""
    named = sum(len(told_requests(step)) for step in steps) if names else 0
    return len(steps) * (2 if both else 1) + named


def step_table(
    workflow: WorkflowResult, width: int, rows: int, *, both: bool, names: bool
) -> list[Line]:
    """At most `rows` lines, heading included; `both` adds a row of response time to each step,
    `names` one for each name of its requests."""
    if rows < 1:
        return []
    timed = any(step.duration.count for step in workflow.steps)
    columns = fitting([*_COLUMNS, *[_STEP_P95] * timed], width - _NAME_MIN)
    taken = sum(column.width + GAP for column in columns)
    name_width = max(1, min(_NAME_MAX, width - taken))
    lines = [_heading(workflow, columns, name_width, both)]
    steps = workflow.steps
    shown = len(steps)
    if rows_of(steps, both=both, names=names) > rows - 1:
        shown = max(0, (rows - 2) // (2 if both else 1))
        names = False
    for step in steps[:shown]:
        style = palette.BAD if step.failed else palette.PLAIN
        lines.append(_row(step.name, step, step.service, columns, name_width, style))
        if both:
            lines.append(
                _row("↳ response", None, step.response, columns, name_width, palette.FAINT)
            )
        for request in told_requests(step) if names else ():
            label = f"  {request_label(request)}"
            lines.append(_row(label, request, request.service, columns, name_width, palette.FAINT))
    if shown < len(steps) and len(lines) < rows:
        rest = f"… {len(steps) - shown} more steps"
        lines.append([Segment(text.fit(rest, width), palette.FAINT)])
    return [palette.clip(line, width) for line in lines]


def _heading(workflow: WorkflowResult, columns: list[Column], name_width: int, both: bool) -> Line:
    name = "step"
    if both:
        name = "step (service time)" if name_width >= _NAME_ROOMY else "service"
    elif name_width >= _NAME_ROOMY and (
        differing := [step for step in workflow.steps if views_differ(workflow, step)]
    ):
        worst = max(step.response.p99_ms for step in differing)
        name = f"step (response p99 {text.short_duration(worst)})"
    heading = palette.cell(name, name_width)
    heading += "".join(" " * GAP + column.heading.rjust(column.width) for column in columns)
    return [Segment(heading, palette.HEADING)]


def _row(
    name: str,
    step: StepResult | RequestResult | None,
    latency: Distribution,
    columns: list[Column],
    name_width: int,
    style: Style,
) -> Line:
    line: Line = [Segment(palette.cell(name, name_width), style)]
    for column in columns:
        value = ""
        cell_style = palette.FAINT if step is None else palette.PLAIN
        if column.of_latency:
            value = text.NOTHING
            if latency.count:
                value = text.short_duration(column.of_latency(latency))
        elif column.of_step and step is not None:
            value = column.of_step(step)
            if column.heading == "errors" and step.failed:
                cell_style = palette.BAD
        line.append(
            Segment(" " * GAP + text.fit(value, column.width).rjust(column.width), cell_style)
        )
    return line

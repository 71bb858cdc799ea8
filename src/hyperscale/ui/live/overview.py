"""All workflows at a glance, a row each: state, users, rate, failures, latency now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.segment import Segment

from hyperscale.metrics.results import WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.live import palette
from hyperscale.ui.live.columns import GAP, fitting
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.parts import STATES
from hyperscale.ui.live.scene import Scene, share_done
from hyperscale.ui.window import recent_p95_ms

_NAME_MIN, _NAME_MAX = 12, 32


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    width: int
    rank: int  # 1 stays longest
    of: Callable[[WorkflowResult, float], str]  # given its rate of the last seconds


def _p95(workflow: WorkflowResult) -> str:
    found = recent_p95_ms(workflow)
    return text.NOTHING if found is None else text.short_duration(found)


def _done(workflow: WorkflowResult) -> str:
    share = share_done(workflow)
    return text.NOTHING if share is None else f"{int(share * 100)}%"


_COLUMNS = (
    Column("state", 9, 6, lambda workflow, rate: workflow.state),
    Column("done", 5, 5, lambda workflow, rate: _done(workflow)),
    Column("VUs", 7, 4, lambda workflow, rate: text.short_count(workflow.vus)),
    Column("rate", 9, 1, lambda workflow, rate: text.rate(rate)),
    Column("failed", 7, 2, lambda workflow, rate: text.percent(workflow.failed_share, 1)),
    Column("p95", 6, 3, lambda workflow, rate: _p95(workflow)),
    Column("requests", 8, 7, lambda workflow, rate: text.short_count(workflow.requests)),
    Column("dropped", 7, 8, lambda workflow, rate: text.short_count(workflow.dropped_iterations)),
)


def workflow_table(scene: Scene, width: int, rows: int) -> list[Line]:
    """At most `rows` lines, heading included; the number of a workflow is the key to its page."""
    workflows = scene.workflows
    if rows < 1 or not workflows:
        return []
    columns = fitting(_COLUMNS, width - _NAME_MIN)
    taken = sum(column.width + GAP for column in columns)
    name_width = max(1, min(_NAME_MAX, width - taken))
    heading = palette.cell("  workflow", name_width)
    heading += "".join(" " * GAP + column.heading.rjust(column.width) for column in columns)
    lines: list[Line] = [[Segment(heading, palette.HEADING)]]
    shown = len(workflows) if len(workflows) < rows else max(0, rows - 2)
    for number, workflow in enumerate(workflows[:shown], start=1):
        lines.append(_row(scene, workflow, number, columns, name_width))
    if shown < len(workflows) and len(lines) < rows:
        rest = f"… {len(workflows) - shown} more workflows"
        lines.append([Segment(text.fit(rest, width), palette.FAINT)])
    return [palette.clip(line, width) for line in lines]


def _row(
    scene: Scene, workflow: WorkflowResult, number: int, columns: list[Column], name_width: int
) -> Line:
    sign, style = STATES[workflow.state]
    if workflow.error:
        sign, style = "✗", palette.BAD
    name = f"{number} {workflow.name}" if number < 10 else f"  {workflow.name}"
    line: Line = [
        Segment(f"{sign} ", style),
        Segment(palette.cell(name, max(0, name_width - 2))),
    ]
    rate = scene.recent_rates.get(workflow.name, 0.0)
    bad = {"failed": workflow.failed, "dropped": workflow.dropped_iterations}
    for column in columns:
        value = text.fit(column.of(workflow, rate), column.width).rjust(column.width)
        alarming = palette.BAD if bad.get(column.heading) else palette.PLAIN
        line.append(Segment(" " * GAP + value, alarming))
    return line

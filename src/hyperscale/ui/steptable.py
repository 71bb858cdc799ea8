"""The table of steps in the summary, in the shape of Locust's: counts, latencies, rate."""

from __future__ import annotations

from hyperscale.metrics.results import Distribution, StepResult, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.output import Paint
from hyperscale.ui.totals import views_differ

_HEADINGS = ("name", "#reqs", "#fails", "avg", "min", "med", "p95", "p99", "max", "req/s")
_FAILS = _HEADINGS.index("#fails")
_NAME_MIN = 16
_GAP = "  "
# Left out one by one where even a short name does not fit beside them.
_GIVE_WAY = ("min", "avg", "med", "max")


def step_table(workflow: WorkflowResult, width: int, paint: Paint) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for step in workflow.steps:
        label = f"{step.method} {step.name}" if step.method else step.name
        rows.append(_row(text.one_line(label), step))
        if views_differ(workflow, step):
            rows.append(("↳ response time", "", "", *_latencies(step.response), ""))
    shown = list(range(len(_HEADINGS)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    for heading in _GIVE_WAY:
        if _space_for_name(shown, widths, width) >= _NAME_MIN:
            break
        shown.remove(_HEADINGS.index(heading))
    widths[0] = max(1, min(widths[0], _space_for_name(shown, widths, width)))
    return [_line(row, shown, widths, paint, is_heading=row is rows[0]) for row in rows]


def _space_for_name(shown: list[int], widths: list[int], width: int) -> int:
    return width - len(_GAP) - sum(widths[i] + len(_GAP) for i in shown if i)


def _row(label: str, step: StepResult) -> tuple[str, ...]:
    return (
        label,
        text.count(step.count),
        text.count(step.failed),
        *_latencies(step.service),
        text.rate(step.rate).removesuffix("/s"),
    )


def _latencies(latency: Distribution) -> tuple[str, ...]:
    if not latency.count:
        return (text.NOTHING,) * 6
    shown = (
        latency.mean_ms,
        latency.min_ms,
        latency.p50_ms,
        latency.p95_ms,
        latency.p99_ms,
        latency.max_ms,
    )
    return tuple(text.short_duration(value) for value in shown)


def _line(
    row: tuple[str, ...], shown: list[int], widths: list[int], paint: Paint, *, is_heading: bool
) -> str:
    cells = [text.fit(row[0], widths[0]).ljust(widths[0])]
    for i in shown[1:]:
        cell = row[i].rjust(widths[i])
        failing = i == _FAILS and not is_heading and row[i] not in ("", "0")
        cells.append(paint.bad(cell) if failing else cell)
    line = _GAP + _GAP.join(cells)
    return paint.faint(line.rstrip()) if is_heading else line.rstrip()

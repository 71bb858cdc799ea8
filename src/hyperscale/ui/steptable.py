"""The table of steps in the summary, in the shape of Locust's: counts, latencies, rate.

A row per step with all its requests and the time inside the step; below it a row per name of a
request where names tell more, and what else there is to know of the step.
"""

from __future__ import annotations

from hyperscale.metrics.results import FLOW, Distribution, RequestResult, StepResult, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.output import Paint
from hyperscale.ui.totals import request_label, tag_words, told_requests, views_differ

HEADINGS = (
    "name", "#reqs", "#fails", "avg", "min", "med", "p95", "p99", "max", "req/s", "step p95",
)  # fmt: skip
_FAILS = HEADINGS.index("#fails")
_NAME_MIN = 16
_GAP = "  "
# Left out one by one where even a short name does not fit beside them.
_GIVE_WAY = ("min", "avg", "med", "max")

Row = tuple[str, ...]  # of one cell: a remark under the row above


def step_table(workflow: WorkflowResult, width: int | None, paint: Paint) -> list[str]:
    """Without a width the lines are as long as the names need."""
    rows: list[Row] = [HEADINGS]
    for step in workflow.steps:
        rows += step_rows(workflow, step)
    shown = list(range(len(HEADINGS)))
    if not any(step.duration.count for step in workflow.steps):
        shown.remove(HEADINGS.index("step p95"))
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(HEADINGS))]
    widths[0] = max(len(row[0]) for row in rows if len(row) > 1)
    if width is not None:
        for heading in _GIVE_WAY:
            if _space_for_name(shown, widths, width) >= min(_NAME_MIN, widths[0]):
                break
            shown.remove(HEADINGS.index(heading))
        widths[0] = max(1, min(widths[0], _space_for_name(shown, widths, width)))
    lines: list[str] = []
    for row in rows:
        if len(row) == 1:
            lines += text.wrapped(row[0], width, indent=_GAP * 2, paint=paint.faint)
        else:
            lines.append(_line(row, shown, widths, paint, is_heading=row is rows[0]))
    return lines


def step_rows(workflow: WorkflowResult, step: StepResult) -> list[Row]:
    label = f"{step.method} {step.name}" if step.method else step.name
    spent = text.short_duration(step.duration.p95_ms) if step.duration.count else text.NOTHING
    rows: list[Row] = [(*_numbers(label, step), spent)]
    if views_differ(workflow, step):
        rows.append(("↳ response time", "", "", *_latencies(step.response), "", ""))
    rows += [(*_numbers(f"  {request_label(r)}", r), "") for r in told_requests(step)]
    remarks = step_remarks(step)
    return [*rows, (" · ".join(remarks),)] if remarks else rows


def step_remarks(step: StepResult) -> list[str]:
    """What the numbers of its requests do not say: its group and tags, and how its runs ended."""
    remarks = [f"group {step.group}"] if step.group else []
    remarks += [tag_words(step.tags)] if step.tags else []
    if step.runs_failed and step.name == FLOW:  # whose runs are counted only where it raised
        remarks.append(f"raised in {text.count(step.runs_failed)} iterations")
    elif step.runs_failed:
        remarks.append(f"{text.count(step.runs_failed)} of {text.count(step.runs)} runs failed")
    reasons = [
        f"skipped {text.count(count)}: {reason}"
        for reason, count in sorted(step.skips.items(), key=lambda item: -item[1])
    ]
    if unexplained := step.skipped - sum(step.skips.values()):
        reasons.append(f"skipped {text.count(unexplained)}")
    remarks += reasons if step.skipped else []
    if step.runs_interrupted:
        remarks.append(f"interrupted {text.count(step.runs_interrupted)}")
    return [text.one_line(remark) for remark in remarks]


def _space_for_name(shown: list[int], widths: list[int], width: int) -> int:
    return width - len(_GAP) - sum(widths[i] + len(_GAP) for i in shown if i)


def _numbers(label: str, of: StepResult | RequestResult) -> Row:
    indent = label[: len(label) - len(label.lstrip())]
    return (
        indent + text.one_line(label),
        text.count(of.count),
        text.count(of.failed),
        *_latencies(of.service),
        text.rate(of.rate).removesuffix("/s"),
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


def _line(row: Row, shown: list[int], widths: list[int], paint: Paint, *, is_heading: bool) -> str:
    cells = [text.fit(row[0], widths[0]).ljust(widths[0])]
    for i in shown[1:]:
        cell = row[i].rjust(widths[i])
        failing = i == _FAILS and not is_heading and row[i] not in ("", "0")
        cells.append(paint.bad(cell) if failing else cell)
    line = _GAP + _GAP.join(cells)
    return paint.faint(line.rstrip()) if is_heading else line.rstrip()

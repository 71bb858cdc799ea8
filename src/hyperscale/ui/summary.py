"""The final summary on stdout, in the words k6 and Locust users already know.

Sections THRESHOLDS, CHECKS, HTTP, EXECUTION, GROUPS, NETWORK and CUSTOM with k6's metric names and
dotted leaders, then one row per step, errors, and what a reader must know before trusting the
numbers. The last line is the verdict; `quiet` is that line alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from hyperscale.metrics import totals
from hyperscale.metrics.histogram import VALUES
from hyperscale.metrics.results import (
    Distribution,
    MetricResult,
    Results,
    StepResult,
)
from hyperscale.ui import text
from hyperscale.ui.datacenters import datacenter_table
from hyperscale.ui.failures import never_sent
from hyperscale.ui.lines import INDENT, Lines
from hyperscale.ui.output import Output, Paint
from hyperscale.ui.steptable import step_table
from hyperscale.ui.summary_failures import checks, errors
from hyperscale.ui.totals import generator_cost, judged, notes, unmeasured, views_differ
from hyperscale.ui.trend import DEFAULT_STATS, Trend
from hyperscale.ui.verdict import verdict

_TERMINAL_WIDTH_MAX = 140
# k6's names for the phases worth a line; the rest are in the JSON and the HTML report.
_PHASE_MIN_MS = 0.1  # a phase that never took longer explains nothing
_PHASES = {
    "dns": "looking_up",
    "connect": "connecting",
    "tls": "tls_handshaking",
    "write": "sending",
    "wait": "waiting",
    "read": "receiving",
}
_OF_LONG_BODIES = ("write", "read")  # else an instant, with an outlier when the machine was busy


def print_summary(
    results: Results,
    stream: TextIO | None = None,
    *,
    trend_stats: Sequence[str] = DEFAULT_STATS,
    quiet: bool = False,
    tracebacks: bool = False,
) -> bool:
    """To stdout unless told otherwise; False when nobody can read it. Never raises."""
    output = Output(sys.stdout if stream is None else stream)
    summary = render_summary(
        results,
        trend_stats=trend_stats,
        quiet=quiet,
        tracebacks=tracebacks,
        width=output.columns(_TERMINAL_WIDTH_MAX),
        paint=output.paint(),
    )
    return output.write(summary)


def render_summary(
    results: Results,
    *,
    trend_stats: Sequence[str] = DEFAULT_STATS,
    quiet: bool = False,
    tracebacks: bool = False,
    width: int | None = None,
    paint: Paint | None = None,
) -> str:
    """`width` is a terminal's; without one no line is wrapped and no name shortened."""
    paint = paint or Paint(False)
    if quiet:
        return verdict(results, paint) + "\n"
    lines = Lines(tuple(trend_stats), width, paint)
    _thresholds(lines, results)
    checks(lines, results, tracebacks=tracebacks)
    _requests(lines, results)
    _execution(lines, results)
    _groups(lines, results)
    _network(lines, results)
    _custom(lines, results)
    for workflow in results.workflows:
        if workflow.steps:
            lines.section("STEPS" if len(results.workflows) == 1 else f"STEPS {workflow.name}")
            lines.extend(step_table(workflow, width, paint))
    if results.datacenters:
        lines.section("DATACENTERS")
        lines.extend(datacenter_table(results, paint))
    errors(lines, results, tracebacks=tracebacks)
    _notes(lines, results)
    return "\n".join([*lines.lines, "", verdict(results, paint), ""])


def _steps(results: Results) -> list[StepResult]:
    return [step for workflow in results.workflows for step in workflow.steps]


def _thresholds(lines: Lines, results: Results) -> None:
    if not results.thresholds:
        return
    lines.section("THRESHOLDS")
    for threshold in results.thresholds:
        sign = lines.paint.good("✓") if threshold.passed else lines.paint.bad("✗")
        scope, expression = threshold.scope, threshold.expression
        lines.add(f"{INDENT}{sign} {scope} '{expression}'  {judged(threshold)}")


def _requests(lines: Lines, results: Results) -> None:
    kinds = dict.fromkeys(step.kind for step in _steps(results) if step.kind not in ("", "custom"))
    for kind in kinds:
        _protocol(lines, results, kind)
    besides = unmeasured(results)
    if kinds and besides:
        parts = [f"{text.count(n)} in {part}" for part, n in besides.items()]
        lines.note(f"besides, in none of the numbers: {', '.join(parts)}")


def _protocol(lines: Lines, results: Results, kind: str) -> None:
    pairs = [
        (workflow, step)
        for workflow in results.workflows
        for step in workflow.steps
        if step.kind == kind
    ]
    steps = [step for _, step in pairs]
    lines.section(kind.upper())
    lines.trend(f"{kind}_req_duration", Trend(step.service for step in steps))
    if any(views_differ(workflow, step) for workflow, step in pairs):
        lines.trend(f"{kind}_req_response", Trend(step.response for step in steps))
        lines.note("from intended start; duration is from sending")
    for phase, name in _PHASES.items():
        found = [step.phases[phase] for step in steps if phase in step.phases]
        of_bodies = phase in _OF_LONG_BODIES
        took_ms = (each.p95_ms if of_bodies else each.max_ms for each in found)
        if any(ms >= _PHASE_MIN_MS for ms in took_ms):
            lines.trend(f"{kind}_req_{name}", Trend(found))
    count, failed = sum(step.count for step in steps), sum(step.failed for step in steps)
    calls = count + sum(step.unsent for step in steps)
    lines.field(f"{kind}_req_failed", text.out_of(failed, calls))
    if unsent := never_sent(steps):
        lines.note(unsent)
    rate = text.rate(totals.per_second(count, results))
    lines.field(f"{kind}_reqs", f"{text.count(count)}  {rate}")


def _execution(lines: Lines, results: Results) -> None:
    workflows = [workflow for workflow in results.workflows if workflow.is_test]
    if not workflows:
        return
    lines.section("EXECUTION")
    lines.trend("iteration_duration", Trend(workflow.iteration for workflow in workflows))
    iterations = sum(workflow.iterations for workflow in workflows)
    per_second = totals.per_second(iterations, results)
    lines.field("iterations", f"{text.count(iterations)}  {text.rate(per_second)}")
    if dropped := sum(workflow.dropped_iterations for workflow in workflows):
        lines.field("dropped_iterations", lines.paint.bad(text.count(dropped)))
    elif any(workflow.open_model for workflow in workflows):
        lines.field("dropped_iterations", "0")
    if interrupted := sum(workflow.interrupted_iterations for workflow in workflows):
        lines.field("interrupted_iterations", text.count(interrupted))
    if stopped := sum(workflow.stopped_iterations for workflow in workflows):
        lines.field("stopped_iterations", f"{text.count(stopped)}  by stop_iteration()")
    if stopped := sum(workflow.stopped_users for workflow in workflows):
        lines.field("stopped_users", f"{text.count(stopped)}  by stop_user()")
    steps = [step for workflow in workflows for step in workflow.steps if step.runs]
    if steps:
        lines.trend("step_duration", Trend(step.duration for step in steps))
        runs = sum(step.runs for step in steps)
        lines.field("step_failed", text.out_of(sum(step.runs_failed for step in steps), runs))
    lines.field("vus", text.count(totals.vus(results)))
    lines.field("vus_max", text.count(totals.vus_max(results)))
    if cost := generator_cost(results):
        lines.field("generators", cost)


def _groups(lines: Lines, results: Results) -> None:
    groups = [group for workflow in results.workflows for group in workflow.groups]
    if not groups:
        return
    lines.section("GROUPS")
    several = len(results.workflows) > 1
    for group in groups:
        name = f"{group.workflow}.{group.name}" if several else group.name
        lines.trend(name, Trend([group.duration]))


def _network(lines: Lines, results: Results) -> None:
    steps = _steps(results)
    if not steps:
        return
    lines.section("NETWORK")
    for name, total in (
        ("data_received", sum(step.bytes_in for step in steps)),
        ("data_sent", sum(step.bytes_out for step in steps)),
    ):
        per_second = totals.per_second(total, results)
        lines.field(name, f"{text.size(total)}  {text.size(per_second)}/s")


def _custom(lines: Lines, results: Results) -> None:
    metrics = [metric for workflow in results.workflows for metric in workflow.metrics]
    if not metrics:
        return
    lines.section("CUSTOM")
    several = len({metric.workflow for metric in metrics}) > 1
    for metric in metrics:
        name = f"{metric.workflow}.{metric.name}" if several else metric.name
        if metric.tags:
            name += "{" + ",".join(f"{key}:{value}" for key, value in metric.tags.items()) + "}"
        if metric.kind == "distribution":
            lines.trend(name, _own_unit(metric), is_time=False)
        elif metric.kind == "count":
            lines.field(name, f"{text.number(metric.value)}  {text.rate(metric.per_second)}")
        else:
            lines.field(name, text.number(metric.value))


def _own_unit(metric: MetricResult) -> Trend:
    return Trend([metric.distribution or Distribution()], VALUES)


def _notes(lines: Lines, results: Results) -> None:
    marks = [
        (workflow.name if len(results.workflows) > 1 else "", mark)
        for workflow in results.workflows
        for mark in workflow.marks
    ]
    if marks:
        lines.section("MARKS")
        for name, mark in marks:
            what = text.one_line(f"{name}: {mark.text}" if name else mark.text)
            begin = f"{INDENT}{text.seconds(mark.at_s):>7}  "
            lines.extend(text.wrapped(begin + what, lines.width, hanging=" " * len(begin)))
    told = notes(results)
    if told:
        lines.add("")
    for label, sentence in told:
        lines.sentence(label, sentence)

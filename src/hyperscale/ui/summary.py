"""The final summary on stdout, in the words k6 and Locust users already know.

Sections THRESHOLDS, CHECKS, HTTP, EXECUTION, NETWORK and CUSTOM with k6's metric names and dotted
leaders, then one row per step, errors, and what a reader must know before trusting the numbers.
The last line is the verdict; `quiet` is that line alone.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
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
from hyperscale.ui.output import Output, Paint
from hyperscale.ui.steptable import step_table
from hyperscale.ui.totals import coverage, explains_cut, top_errors, views_differ
from hyperscale.ui.trend import DEFAULT_STATS, Trend
from hyperscale.ui.verdict import verdict

WIDTH = 100
_TERMINAL_WIDTH_MAX = 140
_INDENT = "  "
_LEADER = 26  # "http_req_tls_handshaking" and two dots
_ERRORS_MAX = 10
# k6's names for the phases worth a line; the rest are in the JSON and the HTML report.
_PHASE_MIN_MS = 0.1  # a phase that never took longer explains nothing
_PHASES = {
    "dns": "http_req_looking_up",
    "connect": "http_req_connecting",
    "tls": "http_req_tls_handshaking",
    "wait": "http_req_waiting",
}


def print_summary(
    results: Results,
    stream: TextIO | None = None,
    *,
    trend_stats: Sequence[str] = DEFAULT_STATS,
    quiet: bool = False,
) -> bool:
    """To stdout unless told otherwise; False when nobody can read it. Never raises."""
    output = Output(sys.stdout if stream is None else stream)
    width = output.columns(WIDTH, _TERMINAL_WIDTH_MAX)
    summary = render_summary(
        results, trend_stats=trend_stats, quiet=quiet, width=width, paint=output.paint()
    )
    return output.write(summary)


def render_summary(
    results: Results,
    *,
    trend_stats: Sequence[str] = DEFAULT_STATS,
    quiet: bool = False,
    width: int = WIDTH,
    paint: Paint | None = None,
) -> str:
    paint = paint or Paint(False)
    if quiet:
        return verdict(results, paint) + "\n"
    lines = _Lines(tuple(trend_stats), width, paint)
    _thresholds(lines, results)
    _checks(lines, results)
    _http(lines, results)
    _execution(lines, results)
    _network(lines, results)
    _custom(lines, results)
    for workflow in results.workflows:
        if workflow.steps:
            lines.section("STEPS" if len(results.workflows) == 1 else f"STEPS {workflow.name}")
            lines.extend(step_table(workflow, width, paint))
    _errors(lines, results)
    _notes(lines, results)
    return "\n".join([*lines.lines, "", verdict(results, paint), ""])


class _Lines:
    def __init__(self, trend_stats: tuple[str, ...], width: int, paint: Paint) -> None:
        self.lines: list[str] = []
        self.width = width
        self.paint = paint
        self._stats = trend_stats

    def section(self, title: str) -> None:
        self.lines += ["", self.paint.strong(title)]

    def add(self, line: str) -> None:
        self.lines.append(line)

    def extend(self, lines: Iterable[str]) -> None:
        self.lines.extend(lines)

    def field(self, name: str, value: str) -> None:
        name = text.one_line(name)
        self.add(f"{_INDENT}{name}{self.paint.faint('.' * max(1, _LEADER - len(name)))}: {value}")

    def trend(self, name: str, trend: Trend, *, is_time: bool = True) -> None:
        """On one line where it fits, else on as few of about equal length as do."""
        if not trend.count:
            self.field(name, "nothing measured")
            return
        show = text.duration if is_time else text.number
        items = [
            f"{stat}={text.count(trend.count) if stat == 'count' else show(trend.stat(stat))}"
            for stat in self._stats
        ]
        used = len(_INDENT) + max(_LEADER, len(name) + 1) + 2
        for count in range(1, len(items) + 1):
            per_row = -(-len(items) // count)
            texts = _aligned([items[i : i + per_row] for i in range(0, len(items), per_row)])
            if used + max(map(len, texts)) <= self.width:
                break
        self.field(name, texts[0])
        self.extend(" " * used + rest for rest in texts[1:])

    def sentence(self, label: str, sentence: str) -> None:
        sentence = text.one_line(sentence)
        wrapped = textwrap.wrap(f"{label}: {sentence}", self.width, subsequent_indent=_INDENT)
        painted = [self.paint.warn(wrapped[0][: len(label) + 1]) + wrapped[0][len(label) + 1 :]]
        self.extend([*painted, *wrapped[1:]])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(rows[0]))]
    return [
        " ".join(item.ljust(width) for item, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]


def _steps(results: Results) -> list[StepResult]:
    return [step for workflow in results.workflows for step in workflow.steps]


def _thresholds(lines: _Lines, results: Results) -> None:
    if not results.thresholds:
        return
    lines.section("THRESHOLDS")
    for threshold in results.thresholds:
        sign = lines.paint.good("✓") if threshold.passed else lines.paint.bad("✗")
        actual = threshold.actual_text
        if threshold.actual is None:
            actual = "nothing to judge"
        elif not actual:
            actual = text.number(threshold.actual)
        if threshold.aborted_at_s is not None:
            actual += f", stopped the run at {text.seconds(threshold.aborted_at_s)}"
        lines.add(f"{_INDENT}{sign} {threshold.scope} '{threshold.expression}'  {actual}")


def _checks(lines: _Lines, results: Results) -> None:
    checks = [check for workflow in results.workflows for check in workflow.checks]
    if not checks:
        return
    lines.section("CHECKS")
    passed, failed = sum(c.passed for c in checks), sum(c.failed for c in checks)
    lines.field("checks", _out_of(passed, passed + failed) if passed + failed else "none ran")
    for check in checks:
        name = text.one_line(check.name)
        if not check.passed + check.failed:
            lines.add(f"{_INDENT}- {name}  never ran")
            continue
        if not check.failed:
            lines.add(f"{_INDENT}{lines.paint.good('✓')} {name}")
            continue
        total = text.count(check.passed + check.failed)
        lines.add(
            f"{_INDENT}{lines.paint.bad('✗')} {name}  {text.count(check.failed)} of {total} failed"
        )
        for sample in check.samples[:1]:
            lines.add(text.fit(f"{_INDENT * 2}↳ {text.one_line(sample)}", lines.width))


def _http(lines: _Lines, results: Results) -> None:
    pairs = [
        (workflow, step)
        for workflow in results.workflows
        for step in workflow.steps
        if step.kind == "http"
    ]
    if not pairs:
        return
    steps = [step for _, step in pairs]
    lines.section("HTTP")
    lines.trend("http_req_duration", Trend(step.service for step in steps))
    if any(views_differ(workflow, step) for workflow, step in pairs):
        lines.trend("http_req_response", Trend(step.response for step in steps))
        lines.add(
            lines.paint.faint(f"{_INDENT * 2}(from intended start; duration is from sending)")
        )
    for phase, name in _PHASES.items():
        found = [step.phases[phase] for step in steps if phase in step.phases]
        if any(each.max_ms >= _PHASE_MIN_MS for each in found):
            lines.trend(name, Trend(found))
    count, failed = sum(step.count for step in steps), sum(step.failed for step in steps)
    lines.field("http_req_failed", _out_of(failed, count))
    lines.field("http_reqs", f"{text.count(count)}  {text.rate(totals.per_second(count, results))}")


def _execution(lines: _Lines, results: Results) -> None:
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
    lines.field("vus", text.count(totals.vus(results)))
    lines.field("vus_max", text.count(totals.vus_max(results)))


def _network(lines: _Lines, results: Results) -> None:
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


def _custom(lines: _Lines, results: Results) -> None:
    metrics = [metric for workflow in results.workflows for metric in workflow.metrics]
    if not metrics:
        return
    lines.section("CUSTOM")
    several = len({metric.workflow for metric in metrics}) > 1
    for metric in metrics:
        name = f"{metric.workflow}.{metric.name}" if several else metric.name
        if metric.kind == "distribution":
            lines.trend(name, _own_unit(metric), is_time=False)
        elif metric.kind == "count":
            lines.field(name, f"{text.number(metric.value)}  {text.rate(metric.per_second)}")
        else:
            lines.field(name, text.number(metric.value))


def _own_unit(metric: MetricResult) -> Trend:
    return Trend([metric.distribution or Distribution()], VALUES)


def _errors(lines: _Lines, results: Results) -> None:
    found = top_errors(_steps(results))
    if not found:
        return
    lines.section("ERRORS")
    shown = found[:_ERRORS_MAX]
    widths = [max(len(getattr(error, field)) for error in shown) for field in ("step", "what")]
    for error in shown:
        count = f"{_INDENT}{text.count(error.count):>9}"
        rest = (
            f"  {error.step:<{widths[0]}}  {error.what:<{widths[1]}}  {text.one_line(error.sample)}"
        )
        lines.add(lines.paint.bad(count) + text.fit(rest.rstrip(), lines.width - len(count)))
    if len(found) > len(shown):
        lines.add(
            f"{_INDENT}… {len(found) - len(shown)} more kinds, all of them in the JSON output"
        )


def _notes(lines: _Lines, results: Results) -> None:
    marks = [
        (workflow.name if len(results.workflows) > 1 else "", mark)
        for workflow in results.workflows
        for mark in workflow.marks
    ]
    if marks:
        lines.section("MARKS")
        for name, mark in marks:
            what = text.one_line(f"{name}: {mark.text}" if name else mark.text)
            lines.add(text.fit(f"{_INDENT}{text.seconds(mark.at_s):>7}  {what}", lines.width))
    notes = [(workflow.name, workflow.error) for workflow in results.workflows if workflow.error]
    notes += [("warning", each) for each in (results.saturation, *results.warnings) if each]
    if covered := coverage(results):
        notes.append(("coverage", covered))
    if results.cut and not explains_cut(results):
        notes.append(("cut short", results.cut_reason or f"by {results.cut}"))
    if notes:
        lines.add("")
    for label, sentence in notes:
        lines.sentence(label, sentence)


def _out_of(part: int, whole: int) -> str:
    return f"{text.percent(part, whole)}  {text.count(part)} out of {text.count(whole)}"

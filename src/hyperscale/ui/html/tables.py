"""The tables of one workflow: steps, phases of a request, errors, checks, custom metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hyperscale.metrics.results import (
    CheckResult,
    Distribution,
    ErrorCount,
    MetricResult,
    StepResult,
    WorkflowResult,
)
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Child, Html, join, tag
from hyperscale.ui.html.table import Cell, Column, number, table, words

_SAMPLE_CHARACTERS = 400
_PHASES = ("dns", "connect", "tls", "write", "wait", "read")
_STEP_COLUMNS = (
    Column("Step", number=False),
    Column("Requests"),
    Column("Rate"),
    Column("Failed"),
    Column("Mean", hint="Service time", wide=True),
    Column("p50", hint="Service time"),
    Column("p95", hint="Service time"),
    Column("p99", hint="Service time"),
    Column("Max", hint="Service time"),
    Column("Response p99", hint="From the moment the request was due"),
    Column("Received", wide=True),
)


def latency(value: float, of: Distribution) -> Cell:
    return number(numbers.milliseconds(value) if of.count else numbers.NONE, value)


def failures(failed: int, total: int) -> Cell:
    return number(numbers.share(failed, total), failed / total if total else 0, _alarm(failed))


def steps(workflow: WorkflowResult) -> Html:
    if not workflow.steps:
        return tag("p", "No step of this workflow is a measured request.", class_="empty")
    return table(
        f"Steps of {workflow.name}",
        _STEP_COLUMNS,
        [_step(step) for step in workflow.steps],
        sortable=True,
        kind="steps",
    )


def _step(step: StepResult) -> list[Cell]:
    service, response = step.service, step.response
    return [
        words(_step_name(step), step.name),
        number(numbers.count(step.count), step.count),
        number(numbers.rate(step.rate), step.rate),
        failures(step.failed, step.count),
        latency(service.mean_ms, service),
        latency(service.p50_ms, service),
        latency(service.p95_ms, service),
        latency(service.p99_ms, service),
        latency(service.max_ms, service),
        latency(response.p99_ms, response),
        number(numbers.size(step.bytes_in), step.bytes_in),
    ]


def _step_name(step: StepResult) -> Html:
    target = f"{step.method} {step.target}".strip()
    tags = [f"{key}={value}" for key, value in step.tags.items()]
    return join(
        [
            f"{step.group} / {step.name}" if step.group else step.name,
            tag("small", clip(target, 80), title=target) if target else None,
            tag("small", ", ".join(tags)) if tags else None,
        ]
    )


def phases(workflow: WorkflowResult) -> Html | None:
    """Where the time of an average request goes. A phase that only some requests have (a new
    connection) counts by its share of all requests in the bar, and by its own mean in its cell."""
    measured = [step for step in workflow.steps if any(d.count for d in step.phases.values())]
    if not measured:
        return None
    names = [name for name in _PHASES if any(name in step.phases for step in measured)]
    names += sorted({name for step in measured for name in step.phases} - set(_PHASES))
    rows = [
        [
            words(step.name),
            words(_phase_bar(step, names)),
            *(_phase(step.phases.get(name)) for name in names),
        ]
        for step in measured
    ]
    heads = [Column(name, swatch=_phase_class(name)) for name in names]
    return join(
        [
            tag("h4", "Phases of a request", tag("span", "means", class_="unit")),
            table(
                f"Phases of a request in {workflow.name}",
                [Column("Step", number=False), Column("Share", number=False), *heads],
                rows,
                kind="phases",
            ),
        ]
    )


def _phase_class(name: str) -> str:
    return f"phase-{name}" if name in _PHASES else "phase-other"


def _phase(phase: Distribution | None) -> Cell:
    if phase is None or not phase.count:
        return number(numbers.NONE, 0, "faint")
    tip = f"p99 {numbers.milliseconds(phase.p99_ms)}, {numbers.count(phase.count)} times"
    return Cell(tag("span", numbers.milliseconds(phase.mean_ms), data_tip=tip), phase.mean_ms)


def _phase_bar(step: StepResult, names: Sequence[str]) -> Html:
    spent = {
        name: step.phases[name].mean_ms * step.phases[name].count
        for name in names
        if name in step.phases
    }
    total = sum(spent.values()) or 1.0
    return tag(
        "div",
        (
            tag(
                "i",
                class_=_phase_class(name),
                style=f"flex-grow:{1000 * value / total:.0f}",
                data_tip=f"{name}: {numbers.share(value, total)} of the time",
            )
            for name, value in spent.items()
            if value > 0
        ),
        class_="stack",
        role="img",
        aria_label=", ".join(f"{name} {numbers.share(v, total)}" for name, v in spent.items()),
    )


def errors(workflow: WorkflowResult) -> Html | None:
    found = sorted(
        ((step, error) for step in workflow.steps for error in step.errors),
        key=lambda pair: -pair[1].count,
    )
    statuses = _statuses(workflow)
    if not found:
        return statuses
    columns = [
        Column("Error", number=False),
        Column("Step", number=False),
        Column("Count"),
        Column("Of step"),
        Column("First messages", number=False),
    ]
    return join(
        [
            tag("h3", "Errors"),
            table(
                f"Errors of {workflow.name}",
                columns,
                [_error(step, error) for step, error in found],
                sortable=True,
                kind="errors",
            ),
            statuses,
        ]
    )


def _error(step: StepResult, error: ErrorCount) -> list[Cell]:
    outcome = "HTTP" if error.outcome == "status" and step.kind == "http" else error.outcome
    return [
        words(
            join([tag("b", outcome), " ", clip(error.detail, 80)]),
            f"{outcome} {error.detail}",
        ),
        words(step.name),
        number(numbers.count(error.count), error.count),
        number(numbers.share(error.count, step.count), error.count / max(1, step.count)),
        words(samples(error.samples), " ", "samples"),
    ]


def samples(messages: Sequence[str]) -> Child:
    """The first message in sight, the others one click away."""
    if not messages:
        return numbers.NONE
    first, *rest = (tag("code", clip(message, _SAMPLE_CHARACTERS)) for message in messages)
    if not rest:
        return first
    more = tag("summary", f"{len(rest)} more")
    return join([first, tag("details", more, (tag("div", one) for one in rest))])


def _statuses(workflow: WorkflowResult) -> Html | None:
    totals: dict[str, int] = {}
    for step in workflow.steps:
        for status, seen in step.statuses.items():
            totals[status] = totals.get(status, 0) + seen
    if not totals:
        return None
    return tag(
        "p",
        tag("b", "Status codes"),
        (
            tag("span", tag("b", status), f" {numbers.count(seen)}", class_=_status_kind(status))
            for status, seen in sorted(totals.items())
        ),
        class_="statuses",
    )


def _status_kind(status: str) -> str:
    return "chip alarm" if status[:1] in "45" else "chip"


def checks(found: Sequence[CheckResult], caption: str) -> Html | None:
    if not found:
        return None
    columns = [
        Column("Check", number=False),
        Column("Passed"),
        Column("Failed"),
        Column("Pass share"),
        Column("First failures", number=False),
    ]
    rows = [
        [
            words(check.name),
            number(numbers.count(check.passed), check.passed),
            number(numbers.count(check.failed), check.failed, _alarm(check.failed)),
            number(numbers.share(check.passed, check.passed + check.failed), check.passed),
            words(samples(check.samples), " ", "samples"),
        ]
        for check in found
    ]
    return join([tag("h3", "Checks"), table(caption, columns, rows, kind="checks")])


def metrics(found: Sequence[MetricResult], caption: str) -> Html | None:
    if not found:
        return None
    columns = [
        Column("Metric", number=False),
        Column("Kind", number=False),
        Column("Value"),
        Column("Per second"),
        *(Column(name) for name in ("Mean", "p50", "p95", "p99", "Max")),
    ]
    rows = [_metric(metric) for metric in found]
    return join([tag("h3", "Custom metrics"), table(caption, columns, rows, kind="metrics")])


def _metric(metric: MetricResult) -> list[Cell]:
    spread = metric.distribution
    values = (
        (spread.mean_ms, spread.p50_ms, spread.p95_ms, spread.p99_ms, spread.max_ms)
        if spread is not None and spread.count
        else None
    )
    # A distribution in the author's own unit: no unit is invented for it.
    cells = (
        [number(numbers.NONE, 0, "faint")] * 5
        if values is None
        else [number(numbers.short(value), value) for value in values]
    )
    value = metric.count if metric.kind == "distribution" else metric.value
    return [
        words(metric.name),
        words(metric.kind),
        number(
            f"{numbers.count(metric.count)} values"
            if metric.kind == "distribution"
            else _value(metric.value),
            value,
        ),
        number(numbers.rate(metric.per_second) if metric.per_second else numbers.NONE, 0),
        *cells,
    ]


def _value(value: float) -> str:
    whole = math.isfinite(value) and value == int(value)
    return numbers.count(int(value)) if whole else numbers.short(value)


def clip(words_: str, most: int) -> str:
    return words_ if len(words_) <= most else words_[: most - 1] + "…"


def _alarm(failed: int) -> str:
    return "alarm" if failed else ""

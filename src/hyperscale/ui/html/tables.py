"""Further tables of one workflow: phases of a request, status codes, checks, custom metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hyperscale.metrics.results import (
    CheckResult,
    Distribution,
    MetricResult,
    StepResult,
    WorkflowResult,
)
from hyperscale.ui.html import numbers
from hyperscale.ui.html.failures import first_failure, samples
from hyperscale.ui.html.markup import Html, join, tag
from hyperscale.ui.html.table import Cell, Column, number, table, words
from hyperscale.ui.totals import tag_words

_PHASES = ("dns", "connect", "tls", "write", "wait", "read")


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


def statuses(workflow: WorkflowResult) -> Html | None:
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
            words(_evidence(check), " ", "samples"),
        ]
        for check in found
    ]
    return join([tag("h3", "Checks"), table(caption, columns, rows, kind="checks")])


def _evidence(check: CheckResult) -> Html:
    where = check.first.where if check.first else ""
    return join(
        [
            samples(check.samples),
            tag("p", tag("code", where), class_="first") if where else None,
            first_failure(check.first),
        ]
    )


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
    tags = tag_words(metric.tags)
    return [
        words(join([metric.name, tag("small", tags) if tags else None]), metric.name),
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


def _alarm(failed: int) -> str:
    return "alarm" if failed else ""

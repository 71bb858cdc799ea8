"""The steps of a workflow: one table of them all, then each with its course over time and its
requests by name; and the groups they form."""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.metrics.results import Distribution, RequestResult, StepResult, WorkflowResult
from hyperscale.ui.html import numbers
from hyperscale.ui.html.failures import clip
from hyperscale.ui.html.markup import Html, join, tag
from hyperscale.ui.html.table import Cell, Column, number, table, words
from hyperscale.ui.html.timeline import step_charts
from hyperscale.ui.steptable import step_remarks
from hyperscale.ui.totals import request_label, tag_words, told_requests

_OPEN_MAX = 8  # steps of a workflow that are shown without a click

_NUMBERS = (
    Column("Requests"),
    Column("Rate"),
    Column("Failed", hint="Of all calls, those that were never sent included"),
    Column("Mean", hint="Service time", wide=True),
    Column("p50", hint="Service time"),
    Column("p95", hint="Service time"),
    Column("p99", hint="Service time"),
    Column("Max", hint="Service time"),
    Column("Response p99", hint="From the moment the request was due"),
    Column("Received", wide=True),
)
_STEP_P95 = Column("Step p95", hint="Time inside the step: its requests, its own code, its waits")


def latency(value: float, of: Distribution) -> Cell:
    return number(numbers.milliseconds(value) if of.count else numbers.NONE, value)


def failures(of: StepResult | RequestResult | WorkflowResult) -> Cell:
    calls = (of.requests if isinstance(of, WorkflowResult) else of.count) + of.unsent
    return number(numbers.share(of.failed, calls), of.failed_share, "alarm" if of.failed else "")


def steps(workflow: WorkflowResult, index: int) -> Html:
    if not workflow.steps:
        return tag("p", "No step of this workflow is a measured request.", class_="empty")
    timed = any(step.duration.count for step in workflow.steps)
    overview = table(
        f"Steps of {workflow.name}",
        [Column("Step", number=False), *_NUMBERS, *[_STEP_P95] * timed],
        [
            [
                words(_name(step, f"#{_id(index, place)}" if _has_panel(step) else ""), step.name),
                *_cells(step),
                *[latency(step.duration.p95_ms, step.duration)] * timed,
            ]
            for place, step in enumerate(workflow.steps)
        ],
        sortable=True,
        kind="steps",
    )
    panels = [
        _panel(workflow, step, index, place)
        for place, step in enumerate(workflow.steps)
        if _has_panel(step)
    ]
    return join([overview, *panels])


def _has_panel(step: StepResult) -> bool:
    return bool(step.series or told_requests(step))


def _id(index: int, place: int) -> str:
    return f"w{index}-s{place}"


def _panel(workflow: WorkflowResult, step: StepResult, index: int, place: int) -> Html:
    by_name = told_requests(step)
    return tag(
        "details",
        tag("summary", tag("b", step.name), " ", tag("span", " · ".join(_facts(step)))),
        step_charts(workflow, step, index, place),
        _requests(step.name, by_name) if by_name else None,
        id=_id(index, place),
        class_="step",
        open=len(workflow.steps) <= _OPEN_MAX,
    )


def _facts(step: StepResult) -> list[str]:
    facts = [f"{numbers.count(step.runs)} runs"] if step.runs else []
    if step.duration.count:
        facts.append(
            f"p50 {numbers.milliseconds(step.duration.p50_ms)} and "
            f"p95 {numbers.milliseconds(step.duration.p95_ms)} inside the step"
        )
    return [*facts, *step_remarks(step)]


def _requests(step: str, requests: Sequence[RequestResult]) -> Html:
    return table(
        f"Requests of {step}",
        [Column("Request", number=False), *_NUMBERS],
        [
            [words(_labelled(request), request_label(request)), *_cells(request)]
            for request in requests
        ],
        sortable=True,
        kind="names",
    )


def _labelled(request: RequestResult) -> Html:
    label = request_label(request)
    tags = tag_words(request.tags)
    return join(
        [
            tag("span", clip(label, 80), title=label),
            tag("small", tags) if tags else None,
        ]
    )


def _cells(of: StepResult | RequestResult) -> list[Cell]:
    service, response = of.service, of.response
    return [
        number(numbers.count(of.count), of.count),
        number(numbers.rate(of.rate), of.rate),
        failures(of),
        latency(service.mean_ms, service),
        latency(service.p50_ms, service),
        latency(service.p95_ms, service),
        latency(service.p99_ms, service),
        latency(service.max_ms, service),
        latency(response.p99_ms, response),
        number(numbers.size(of.bytes_in), of.bytes_in),
    ]


def _name(step: StepResult, panel: str) -> Html:
    name = f"{step.group} / {step.name}" if step.group else step.name
    target = f"{step.method} {step.target}".strip() if step.target else ""
    tags = tag_words(step.tags)
    return join(
        [
            tag("a", name, href=panel) if panel else name,
            tag("small", clip(target, 80), title=target) if target else None,
            tag("small", tags) if tags else None,
        ]
    )


def groups(workflow: WorkflowResult) -> Html | None:
    if not workflow.groups:
        return None
    columns = [
        Column("Group", number=False),
        Column("Times", hint="Iterations that ran a step of it"),
        *(Column(name) for name in ("Mean", "p50", "p95", "p99", "Max")),
    ]
    rows = [
        [
            words(group.name),
            number(numbers.count(group.duration.count), group.duration.count),
            *(
                latency(value, group.duration)
                for value in (
                    group.duration.mean_ms,
                    group.duration.p50_ms,
                    group.duration.p95_ms,
                    group.duration.p99_ms,
                    group.duration.max_ms,
                )
            ),
        ]
        for group in workflow.groups
    ]
    return join(
        [
            tag("h3", "Groups"),
            table(f"Groups of {workflow.name}", columns, rows, sortable=True, kind="groups"),
        ]
    )

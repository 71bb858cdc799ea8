"""The run as a whole: key numbers, both views of latency, thresholds, workflows side by side."""

from __future__ import annotations

from hyperscale.metrics import totals
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import Results, ThresholdResult, WorkflowResult
from hyperscale.ui.datacenters import HEADINGS, TEXTS, rows
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Child, Html, join, tag
from hyperscale.ui.html.spread import merged
from hyperscale.ui.html.steps import failures
from hyperscale.ui.html.table import Cell, Column, number, table, words
from hyperscale.ui.totals import unmeasured

_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_FIRST_PERCENTILES = (50.0, 95.0, 99.0)  # where there is little room


def key_numbers(results: Results) -> Html:
    steps = [step for workflow in results.workflows for step in workflow.steps]
    iterations = sum(workflow.iterations for workflow in results.workflows)
    received = sum(step.bytes_in for step in steps)
    sent = sum(step.bytes_out for step in steps)
    span = totals.load_seconds(results)
    rate = totals.per_second(results.requests, results)
    failed, unsent = results.failed, numbers.count(results.unsent) if results.unsent else ""
    return tag(
        "dl",
        _tile(
            "Requests",
            numbers.count(results.requests),
            [f"{numbers.count(iterations)} iterations", _besides(results)],
        ),
        _tile("Throughput", numbers.rate(rate), f"over {numbers.duration(round(span, 1))}"),
        _tile(
            "Failed",
            numbers.share(failed, results.requests + results.unsent),
            f"{numbers.count(failed)} calls" + (f", {unsent} never sent" if unsent else ""),
            "alarm" if failed else "",
        ),
        _tile("Virtual users", numbers.count(totals.vus_max(results)), _arrivals(results)),
        _tile("Received", numbers.size(received), f"{numbers.size(sent)} sent"),
        class_="tiles",
    )


def latency(results: Results) -> Html | None:
    steps = [step for workflow in results.workflows for step in workflow.steps]
    service = merged(step.service for step in steps)
    response = merged(step.response for step in steps)
    if not service.count:
        return None
    columns = [
        Column("Latency", number=False),
        Column("Mean", wide=True),
        *(Column(f"p{p:g}", wide=p not in _FIRST_PERCENTILES) for p in _PERCENTILES),
        Column("Max"),
    ]
    rows = [
        _latency_row("Service", "request sent to response received", service),
        _latency_row("Response", "from the moment it was due, waiting included", response),
    ]
    return table("Latency of all requests", columns, rows, kind="latency")


def _latency_row(name: str, meaning: str, view: Histogram) -> list[Cell]:
    heading = words(join([name, tag("small", meaning)]), name)
    if not view.count:
        return [heading, *[number(numbers.NONE, 0)] * (len(_PERCENTILES) + 2)]
    values = [view.mean, *view.percentiles(_PERCENTILES), view.high]
    return [heading, *(number(numbers.milliseconds(v * 1000), v) for v in values)]


def thresholds(results: Results) -> Html | None:
    if not results.thresholds:
        return None
    columns = [
        Column("Threshold", number=False),
        Column("Measured"),
        Column("Verdict", number=False),
    ]
    order = sorted(results.thresholds, key=lambda threshold: threshold.passed)
    rows = [
        [
            words(join([threshold.scope, " ", tag("code", threshold.expression)])),
            number(_measured(threshold), threshold.actual or 0),
            words(_verdict(threshold), kind="good" if threshold.passed else "alarm"),
        ]
        for threshold in order
    ]
    return tag(
        "section", tag("h2", "Thresholds"), table("Thresholds", columns, rows, kind="thresholds")
    )


def datacenters(results: Results) -> Html | None:
    if not results.datacenters:
        return None
    columns = [Column(name, number=place >= TEXTS) for place, name in enumerate(HEADINGS)]
    cells = [[words(cell) for cell in row] for row in rows(results)]
    return tag(
        "section",
        tag("h2", "Datacenters"),
        table("Datacenters", columns, cells, kind="workflows"),
    )


def workflows(results: Results) -> Html | None:
    if len(results.workflows) < 2:
        return None
    columns = [
        Column("Workflow", number=False),
        Column("Load", number=False),
        Column("Started"),
        Column("Ran"),
        Column("Requests"),
        Column("Rate"),
        Column("Failed"),
        Column("p50"),
        Column("p95"),
        Column("p99"),
    ]
    rows = [_workflow(workflow, index) for index, workflow in enumerate(results.workflows)]
    return tag(
        "section",
        tag("h2", "Workflows"),
        table("Workflows", columns, rows, sortable=True, kind="workflows"),
    )


def _workflow(workflow: WorkflowResult, index: int) -> list[Cell]:
    service = merged(step.service for step in workflow.steps)
    p50, p95, p99 = (value * 1000 for value in service.percentiles((50, 95, 99)))
    rate = workflow.requests / workflow.elapsed_s if workflow.elapsed_s else 0.0
    return [
        words(tag("a", workflow.name, href=f"#w{index}"), workflow.name),
        words(workflow.load),
        number(numbers.clock(workflow.started_s), workflow.started_s),
        number(numbers.duration(round(workflow.elapsed_s, 1)), workflow.elapsed_s),
        number(numbers.count(workflow.requests), workflow.requests),
        number(numbers.rate(rate), rate),
        failures(workflow),
        *(
            number(numbers.milliseconds(value) if service.count else numbers.NONE, value)
            for value in (p50, p95, p99)
        ),
    ]


def _tile(name: str, value: str, below: Child, kind: str = "") -> Html:
    return tag(
        "div",
        tag("dt", name),
        tag("dd", value, class_=kind or None),
        tag("dd", below, class_="sub"),
    )


def _besides(results: Results) -> Html | None:
    """Requests that are in none of the numbers."""
    parts = [f"{numbers.count(n)} in {part}" for part, n in unmeasured(results).items()]
    return tag("span", f"; besides {', '.join(parts)}") if parts else None


def _arrivals(results: Results) -> str:
    dropped = sum(workflow.dropped_iterations for workflow in results.workflows)
    if dropped:
        return f"{numbers.count(dropped)} arrivals not started"
    cores = totals.cores(results)
    if not cores:
        return "at most"
    return "on 1 core" if cores == 1 else f"on {cores} cores"


def _measured(threshold: ThresholdResult) -> str:
    if threshold.actual_text:
        return threshold.actual_text
    return "nothing to judge" if threshold.actual is None else numbers.significant(threshold.actual)


def _verdict(threshold: ThresholdResult) -> str:
    if threshold.passed:
        return "✓ met"
    if threshold.aborted_at_s is not None:
        return f"✕ crossed, run ended at {numbers.clock(threshold.aborted_at_s)}"
    return "✕ crossed"

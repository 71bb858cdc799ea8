"""The whole report of a run."""

from __future__ import annotations

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui.html import failures, machine, numbers, overview, steps, tables, verdict
from hyperscale.ui.html.document import document
from hyperscale.ui.html.embed import embed
from hyperscale.ui.html.markup import Html, join, tag
from hyperscale.ui.html.spread import spread
from hyperscale.ui.html.timeline import timeline

_MARKS_IN_SIGHT = 20


def render(results: Results) -> str:
    """The report as the text of an HTML file; write it as UTF-8."""
    title = results.name or ", ".join(workflow.name for workflow in results.workflows)
    return document(
        f"{verdict.judge(results).title}: {title or 'load test'}",
        _header(results, title or "Load test"),
        tag(
            "main",
            verdict.banner(results),
            verdict.notices(results),
            tag(
                "section",
                overview.key_numbers(results),
                overview.latency(results),
                aria_label="Key numbers",
            ),
            overview.thresholds(results),
            overview.datacenters(results),
            overview.workflows(results),
            (
                _workflow(workflow, index, named=len(results.workflows) > 1)
                for index, workflow in enumerate(results.workflows)
            ),
            machine.generator(results),
            machine.environment(results),
        ),
        tag("footer", _footer(results)),
        data=embed(results),
        version=results.environment.hyperscale,
    )


def _header(results: Results, title: str) -> Html:
    begun = results.started_at.replace("T", " ").removesuffix("Z").removesuffix("+00:00")
    facts = [
        f"{begun.split('.')[0]} UTC" if begun else "",
        numbers.duration(round(results.elapsed_s, 1)) if results.elapsed_s else "",
        results.environment.host,
    ]
    tags = [tag("span", f"{key}={value}", class_="chip") for key, value in results.tags.items()]
    return tag(
        "header",
        tag("p", "Hyperscale load test report", class_="mark"),
        tag("h1", title),
        tag("p", " · ".join(filter(None, facts)), tags, class_="facts"),
    )


def _workflow(workflow: WorkflowResult, index: int, *, named: bool) -> Html:
    # With one workflow its parts stand directly under the page's headings.
    return tag(
        "section",
        tag("h2", workflow.name if named or workflow.name else "Workflow"),
        tag("p", " · ".join(_summary(workflow)), class_="lead"),
        timeline(workflow, index),
        _marks(workflow),
        spread(workflow, index),
        tag("h3", "Steps"),
        steps.steps(workflow, index),
        steps.groups(workflow),
        tables.phases(workflow),
        failures.errors(workflow),
        tables.statuses(workflow),
        tables.checks(workflow.checks, f"Checks of {workflow.name}"),
        tables.metrics(workflow.metrics, f"Custom metrics of {workflow.name}"),
        id=f"w{index}",
        class_="workflow",
    )


def _summary(workflow: WorkflowResult) -> list[str]:
    facts = [workflow.load, "open model" if workflow.open_model else "closed model"]
    if workflow.state != "finished":
        facts.append(workflow.state)
    facts.append(f"{numbers.count(workflow.iterations)} iterations")
    if workflow.iteration.count:
        spent = workflow.iteration
        facts.append(
            f"iteration p50 {numbers.milliseconds(spent.p50_ms)}, "
            f"p99 {numbers.milliseconds(spent.p99_ms)}"
        )
    if workflow.dropped_iterations:
        facts.append(f"{numbers.count(workflow.dropped_iterations)} arrivals not started")
    if workflow.interrupted_iterations:
        facts.append(f"{numbers.count(workflow.interrupted_iterations)} interrupted at the end")
    if workflow.stopped_iterations:
        facts.append(f"{numbers.count(workflow.stopped_iterations)} iterations stopped by the test")
    if workflow.stopped_users:
        facts.append(f"{numbers.count(workflow.stopped_users)} users stopped by the test")
    if workflow.prepare_s:
        facts.append(f"prepared in {numbers.seconds(workflow.prepare_s)}")
    return [fact for fact in facts if fact]


def _marks(workflow: WorkflowResult) -> Html | None:
    if not workflow.marks:
        return None
    listed = tag(
        "ol",
        (
            tag("li", tag("b", numbers.clock(mark.at_s)), " ", mark.text)
            for mark in sorted(workflow.marks, key=lambda mark: mark.at_s)
        ),
        class_="marks",
        aria_label="What happened during the run",
    )
    if len(workflow.marks) <= _MARKS_IN_SIGHT:
        return listed
    return tag("details", tag("summary", f"{len(workflow.marks)} marks"), listed)


def _footer(results: Results) -> Html:
    version = results.environment.hyperscale
    return join(
        [
            f"Made by Hyperscale {version}".rstrip(),
            ". Percentiles have at most 1 % relative error. The complete results are inside "
            "this file: ",
            tag("code", "hyperscale report"),
            " reads them back.",
        ]
    )

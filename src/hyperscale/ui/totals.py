"""What the view, the summary and the report all say: names of requests, latency views compared,
what was not measured, what was lost of the planned load, what making it took."""

from __future__ import annotations

from collections.abc import Mapping

from hyperscale.metrics.results import (
    RequestResult,
    Results,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)
from hyperscale.ui import text

_PARTS = {"warmup": "the warm-up"}


def views_differ(workflow: WorkflowResult, step: StepResult) -> bool:
    """Whether response time (from the intended start) says something service time does not.

    Always in the open model, where it is the number to look at; in the closed one only when
    starts were late by more than the histogram's own error.
    """
    if not step.response.count:
        return False
    late_ms = step.response.p99_ms - step.service.p99_ms
    return workflow.open_model or late_ms > max(1.0, 0.05 * step.service.p99_ms)


def coverage(results: Results) -> str:
    """How much of the planned load there was and what is missing; nothing when all of it was."""
    if results.coverage >= 1 and not results.lost:
        return ""
    share = "less than all" if results.coverage >= 1 else f"{results.coverage * 100:.1f} %"
    share = "99.9 %" if share == "100.0 %" else share
    return ", ".join([f"{share} of planned load", *results.lost])


def explains_cut(results: Results) -> bool:
    """Whether the cut is the loss itself, so that saying it again would be news to nobody."""
    return bool(results.lost) and results.cut_reason == "; ".join(results.lost)


def notes(results: Results) -> list[tuple[str, str]]:
    """What a reader must know before trusting the numbers: a label and a sentence each."""
    found = [(workflow.name, workflow.error) for workflow in results.workflows if workflow.error]
    found += [("warning", each) for each in (results.saturation, *results.warnings) if each]
    if covered := coverage(results):
        found.append(("coverage", covered))
    if results.cut and not explains_cut(results):
        found.append(("cut short", results.cut_reason or f"by {results.cut}"))
    return found


def judged(threshold: ThresholdResult) -> str:
    """What a threshold found, and whether that stopped the run."""
    actual = threshold.actual_text
    if threshold.actual is None:
        actual = "nothing to judge"
    elif not actual:
        actual = text.number(threshold.actual)
    if threshold.aborted_at_s is not None:
        actual += f", stopped the run at {text.seconds(threshold.aborted_at_s)}"
    return actual


def request_label(request: RequestResult) -> str:
    """Method and name, the method once."""
    if not request.method or request.name.startswith(f"{request.method} "):
        return request.name
    return f"{request.method} {request.name}"


def told_requests(step: StepResult) -> list[RequestResult]:
    """The requests of a step by name, where the names tell more than the step's own."""
    if len(step.requests) == 1 and step.requests[0].name in (step.name, step.target):
        return []
    return step.requests


def tag_words(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def generator_cost(results: Results) -> str:
    """What making the load took; nothing where nobody measured it."""
    cost = results.generator
    if not cost.cpu_seconds:
        return ""
    cores = f"{cost.cores:.2f}" if cost.cores < 10 else f"{cost.cores:.0f}"
    return f"{cores} cores, {text.count(cost.requests_per_cpu_second)} requests per CPU second"


def unmeasured(results: Results) -> dict[str, int]:
    """Requests in none of the numbers: those of the warm-up, of setup and of teardown."""
    found: dict[str, int] = {}
    for workflow in results.workflows:
        for part, count in workflow.unmeasured.items():
            if count:
                words = _PARTS.get(part, part)
                found[words] = found.get(words, 0) + count
    return found

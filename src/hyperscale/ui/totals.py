"""What the view and the summary both draw from the steps: errors ranked, latency views compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyperscale.metrics.results import ErrorCount, StepResult, WorkflowResult

_SENTENCES = {
    "dns": "host not found",
    "refused": "connection refused",
    "tls": "TLS failed",
    "timeout": "timed out",
    "reset": "connection reset",
    "protocol": "protocol error",
    "cancelled": "cancelled",
    "failed": "failed by the test",
}


@dataclass(frozen=True, slots=True)
class RankedError:
    step: str
    what: str  # "HTTP 503", "connection refused", "KeyError"
    count: int
    sample: str  # the first message, or ""


def top_errors(steps: Iterable[StepResult]) -> list[RankedError]:
    """The most frequent first; equals in the order of the steps."""
    ranked = [
        RankedError(step.name, _what(step, error), error.count, next(iter(error.samples), ""))
        for step in steps
        for error in step.errors
        if error.count
    ]
    return sorted(ranked, key=lambda error: -error.count)


def _what(step: StepResult, error: ErrorCount) -> str:
    if error.outcome == "status":
        return f"HTTP {error.detail}" if step.kind == "http" else f"status {error.detail}"
    if error.outcome == "exception":
        return error.detail or "exception"
    return _SENTENCES.get(error.outcome, error.outcome)


def views_differ(workflow: WorkflowResult, step: StepResult) -> bool:
    """Whether response time (from the intended start) says something service time does not.

    Always in the open model, where it is the number to look at; in the closed one only when
    starts were late by more than the histogram's own error.
    """
    if not step.response.count:
        return False
    late_ms = step.response.p99_ms - step.service.p99_ms
    return workflow.open_model or late_ms > max(1.0, 0.05 * step.service.p99_ms)

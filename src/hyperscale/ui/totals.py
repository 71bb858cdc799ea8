"""What the view, the summary and the report all say: errors ranked, latency views compared, what
was lost of the planned load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyperscale.metrics.results import ErrorCount, Results, StepResult, WorkflowResult

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

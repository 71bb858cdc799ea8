"""What went wrong, told once for the summary, the view and the report: how often, what, where in
the author's code, and the first exchange that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyperscale.metrics.results import (
    ErrorCount,
    Exchange,
    FirstFailure,
    StepResult,
    WorkflowResult,
)
from hyperscale.ui import text

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
_NEVER_SENT = ("refused", "dns", "tls")
# Headers of an answer that tell what to do about it.
_TELLING = ("retry-after", "location", "www-authenticate")
_EXCERPT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """The failures of one kind in one step."""

    workflow: str
    step: str
    kind: str  # "HTTP 503", "connection refused", "KeyError"
    message: str  # the kind, with what was said about it
    count: int
    samples: list[str]
    first: FirstFailure


def ranked(workflows: Iterable[WorkflowResult]) -> list[Failure]:
    """The most frequent first; equals in the order of the steps."""
    found = [
        Failure(
            workflow=workflow.name,
            step=step.name,
            kind=_kind(step, error),
            message=_message(step, error),
            count=error.count,
            samples=error.samples,
            first=error.first or FirstFailure(),
        )
        for workflow in workflows
        for step in workflow.steps
        for error in step.errors
        if error.count
    ]
    return sorted(found, key=lambda failure: -failure.count)


def _kind(step: StepResult, error: ErrorCount) -> str:
    if error.outcome == "status":
        return f"HTTP {error.detail}" if step.kind == "http" else f"status {error.detail}"
    if error.outcome == "exception":
        return error.detail or "exception"
    return _SENTENCES.get(error.outcome, error.outcome)


def _message(step: StepResult, error: ErrorCount) -> str:
    kind = _kind(step, error)
    said = text.one_line(next(iter(error.samples), ""))
    exchange = error.first.exchange if error.first else None
    if not said and error.outcome == "status" and exchange:
        said = exchange.reason
    if error.outcome == "status" and said.startswith(error.detail):
        return f"{kind}{said[len(error.detail) :]}"
    if not said or said.lower().startswith(kind.lower()):
        return said or kind
    return f"{kind} {said}" if error.outcome == "status" else f"{kind}: {said}"


def moment(first: FirstFailure) -> str:
    """ "first at 12.4 s, user 3, worker w1"."""
    where = f", worker {first.worker}" if first.worker else ""
    return f"first at {first.at_s:.1f} s, user {first.user}{where}"


def told(exchange: Exchange) -> str:
    """ "GET https://shop.example/items/77 → 200, 312 bytes"."""
    answer = "no answer"
    if exchange.status:
        noun = "byte" if exchange.size == 1 else "bytes"
        answer = f"{exchange.status}, {text.count(exchange.size)} {noun}"
    return f"{exchange.method} {exchange.url} → {answer}"


def excerpt(exchange: Exchange) -> str:
    """Headers that tell what to do, and the beginning of the answer's body."""
    lowered = {name.lower(): value for name, value in exchange.headers.items()}
    parts = [f"{name}: {lowered[name]}" for name in _TELLING if name in lowered]
    if body := text.one_line(exchange.body):
        body = text.fit(body, _EXCERPT_CHARACTERS)
        parts.append(body if body[0] in "{[<" else f'"{body}"')
    return " · ".join(parts)


def first_lines(first: FirstFailure) -> list[str]:
    """When and to whom it happened first, and what the target had answered."""
    if first == FirstFailure(where=first.where):
        return []
    exchange = first.exchange
    if exchange is None:
        return [moment(first)]
    return [f"{moment(first)}: {told(exchange)}", *filter(None, [excerpt(exchange)])]


def never_sent(steps: Iterable[StepResult]) -> str:
    """ "12 calls were never sent: connection refused"; nothing when all were."""
    several = list(steps)
    unsent = sum(step.unsent for step in several)
    if not unsent:
        return ""
    reasons: dict[str, int] = {}
    for step in several:
        for error in step.errors:
            if error.outcome in _NEVER_SENT:
                sentence = _SENTENCES[error.outcome]
                reasons[sentence] = reasons.get(sentence, 0) + error.count
    words = (
        "1 call was never sent" if unsent == 1 else f"{text.count(unsent)} calls were never sent"
    )
    if len(reasons) > 1:
        return f"{words}: {', '.join(f'{why} ({text.count(n)})' for why, n in reasons.items())}"
    return ": ".join([words, *reasons])

"""What failed, with the evidence: where the author's code raised, its frames, and the first
exchange that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyperscale.metrics.results import Exchange, FirstFailure, StepResult, WorkflowResult
from hyperscale.ui import failures
from hyperscale.ui.failures import Failure
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Child, Html, join, tag


def errors(workflow: WorkflowResult) -> Html | None:
    found = failures.ranked([workflow])
    if not found:
        return None
    steps = {step.name: step for step in workflow.steps}
    return join(
        [
            tag("h3", "Errors"),
            tag("ol", (_failure(each, steps[each.step]) for each in found), class_="failures"),
        ]
    )


def _failure(failure: Failure, step: StepResult) -> Html:
    if failure.first.where:  # the author's code raised, with or without a call
        share = f"{numbers.share(failure.count, step.runs)} of its runs"
    else:
        share = f"{numbers.share(failure.count, step.count + step.unsent)} of its calls"
    more = failure.samples[1:]
    return tag(
        "li",
        tag(
            "p",
            tag("b", f"{numbers.count(failure.count)} ×", class_="alarm"),
            tag("b", failure.step),
            tag("span", failure.message),
            tag("code", failure.first.where) if failure.first.where else None,
            tag("small", share),
            class_="what",
        ),
        first_failure(failure.first),
        _details(
            f"{len(more)} more messages" if len(more) > 1 else "1 more message",
            [tag("div", tag("code", sample)) for sample in more],
        )
        if more
        else None,
    )


def first_failure(first: FirstFailure | None) -> Html | None:
    if first is None:
        return None
    lines = failures.first_lines(first)
    exchange = first.exchange
    return join(
        [
            *(tag("p", line, class_="first") for line in lines),
            _details("Exchange", _exchange(exchange)) if exchange else None,
            _details("Traceback", tag("pre", first.traceback)) if first.traceback else None,
        ]
    )


def _exchange(exchange: Exchange) -> Html:
    status = f"{exchange.status} {exchange.reason}".strip() if exchange.status else "no answer"
    took = f"  {numbers.milliseconds(exchange.duration_ms)}" if exchange.duration_ms else ""
    return join(
        [
            _message(
                f"{exchange.method} {exchange.url}", exchange.request_headers, exchange.request_body
            ),
            _message(f"{status}{took}", exchange.headers, exchange.body),
        ]
    )


def _message(line: str, headers: Mapping[str, str], body: str) -> Html:
    head = "".join(f"\n{name}: {value}" for name, value in headers.items())
    return tag("pre", tag("b", line), head, f"\n\n{body}" if body else "")


def _details(summary: str, content: Child) -> Html:
    return tag("details", tag("summary", summary), content)


def samples(messages: Sequence[str]) -> Child:
    """The first message in sight, the others one click away."""
    if not messages:
        return numbers.NONE
    first, *rest = (tag("code", message) for message in messages)
    return join([first, _details(f"{len(rest)} more", map(_line, rest))]) if rest else first


def _line(content: Html) -> Html:
    return tag("div", content)


def clip(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"

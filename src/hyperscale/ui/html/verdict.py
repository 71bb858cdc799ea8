"""The first thing a reader sees: did it pass, why, and how far can the numbers be trusted.

The exit code decides the headline, so the page and the continuous integration never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperscale.errors import ExitCode
from hyperscale.metrics.results import Results
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Html, tag
from hyperscale.ui.totals import coverage, explains_cut
from hyperscale.ui.verdict import nothing_succeeded

Tone = Literal["good", "bad", "warn"]


@dataclass(frozen=True)
class Verdict:
    tone: Tone
    title: str
    reason: str


_TITLES: dict[int, str] = {
    ExitCode.FAILED: "Failed",
    ExitCode.BAD_INPUT: "Not run",
    ExitCode.LOAD_LOST: "Incomplete",
    ExitCode.THRESHOLDS_CROSSED: "Failed",
    ExitCode.STOPPED: "Stopped",
}
_MEANINGS: dict[int, str] = {
    ExitCode.PASSED: "passed",
    ExitCode.FAILED: "the run could not be carried out, or nothing succeeded",
    ExitCode.BAD_INPUT: "the test or its options could not be used",
    ExitCode.LOAD_LOST: "part of the planned load was lost",
    ExitCode.THRESHOLDS_CROSSED: "thresholds crossed",
    ExitCode.STOPPED: "stopped by a signal, results up to then",
}


def judge(results: Results) -> Verdict:
    if results.state != "finished":
        return Verdict("warn", "Not finished", f"The run was {results.state} at this moment.")
    if results.passed and results.exit_code == ExitCode.PASSED:
        early = f"{_sentence(results.cut_reason)} " if results.cut == "test" else ""
        return Verdict("good", "Passed", f"{early}{_met(results)}")
    if results.failure:
        return Verdict("bad", "Failed", _sentence(results.failure))
    title = _TITLES.get(results.exit_code, "Failed")
    stopped = results.exit_code in (ExitCode.STOPPED, ExitCode.LOAD_LOST)
    return Verdict("warn" if stopped else "bad", title, _why(results))


def meaning(exit_code: int) -> str:
    return _MEANINGS.get(exit_code, "unknown to this version")


def banner(results: Results) -> Html:
    verdict = judge(results)
    symbol = {"good": "✓", "bad": "✕", "warn": "!"}[verdict.tone]
    return tag(
        "section",
        tag("span", symbol, class_="symbol", aria_hidden="true"),
        tag(
            "div",
            tag("h2", verdict.title),
            tag("p", verdict.reason),
        ),
        tag(
            "p",
            "exit code ",
            tag("b", str(results.exit_code)),
            tag("span", results.failure or meaning(results.exit_code)),
            class_="exit",
        )
        if results.state == "finished"
        else None,
        class_=f"verdict {verdict.tone}",
    )


def notices(results: Results) -> Html | None:
    """The generator's own bottleneck before the other warnings: it questions every number."""
    warnings = list(results.warnings)
    parts = []
    if results.saturation:
        warnings = [warning for warning in warnings if warning != results.saturation]
        parts.append(
            tag("li", tag("b", "The load generator was the bottleneck. "), results.saturation)
        )
    parts += [
        tag("li", tag("b", f"{workflow.name}: "), workflow.error)
        for workflow in results.workflows
        if workflow.error
    ]
    parts += [tag("li", warning) for warning in warnings]
    return tag("ul", parts, class_="notices", aria_label="Warnings") if parts else None


def _met(results: Results) -> str:
    failed = f"{numbers.share(results.failed, results.requests + results.unsent)} of calls failed."
    total = len(results.thresholds)
    if not total:
        return f"{failed} No thresholds were set, so nothing judged the other numbers."
    met = {1: "The threshold was met", 2: "Both thresholds were met"}.get(
        total, f"All {total} thresholds were met"
    )
    return f"{met}; {failed}"


def _why(results: Results) -> str:
    reasons = []
    covered = coverage(results)
    if covered:
        reasons.append(_sentence(covered))
    if (results.cut_reason or results.cut) and not explains_cut(results):
        reasons.append(_sentence(results.cut_reason or f"Cut short: {results.cut}"))
    crossed = [threshold for threshold in results.thresholds if not threshold.passed]
    if crossed:
        first = crossed[0]
        named = f"{first.scope}: {first.expression}"
        got = f", got {first.actual_text}" if first.actual_text else ""
        more = f", and {len(crossed) - 1} more" if len(crossed) > 1 else ""
        total = len(results.thresholds)
        reasons.append(f"{len(crossed)} of {total} thresholds crossed: {named}{got}{more}.")
    if not reasons and nothing_succeeded(results):
        reasons.append("Not one request succeeded.")
    if not reasons and not results.requests:
        reasons.append("No request was made.")
    return " ".join(reasons) or _sentence(meaning(results.exit_code))


def _sentence(words: str) -> str:
    words = words.strip()
    words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "!", "?", "…")) else f"{words}."

"""The verdict: one line that says whether the run passed and, if not, why."""

from __future__ import annotations

from hyperscale.errors import ExitCode
from hyperscale.metrics.results import Results, no_iteration_succeeded, no_run_succeeded
from hyperscale.ui import text
from hyperscale.ui.output import Paint
from hyperscale.ui.trend import Trend


def verdict(results: Results, paint: Paint) -> str:
    facts = ", ".join(_facts(results))
    if results.passed:
        stopped = " (the test stopped itself)" if results.cut == "test" else ""
        return f"{paint.good(f'✓ passed{stopped}')}: {facts}"
    reason = _reason(results)
    return f"{paint.bad(f'✗ {reason}')}: {facts} (exit {results.exit_code})"


def _reason(results: Results) -> str:
    if results.failure:
        return results.failure
    match results.exit_code:
        case ExitCode.THRESHOLDS_CROSSED:
            crossed = sum(not threshold.passed for threshold in results.thresholds)
            return f"{crossed} of {len(results.thresholds)} thresholds crossed"
        case ExitCode.STOPPED:
            return "stopped by a signal"
        case ExitCode.LOAD_LOST:
            return "part of the load was lost"
    if results.cut == "test":
        return "failed by the test itself"
    if not results.requests + results.unsent + results.runs_failed:
        return "nothing ran"
    if nothing_succeeded(results):
        return "nothing succeeded"
    if no_run_succeeded(results.workflows):
        return "no run of a step succeeded"
    if no_iteration_succeeded(results.workflows):
        return "the flow raised in every iteration"
    return "failed"


def nothing_succeeded(results: Results) -> bool:
    """Not one call; or there was none, because the test's own code raised."""
    calls = results.requests + results.unsent
    return results.failed >= calls if calls else results.runs_failed > 0


def _facts(results: Results) -> list[str]:
    requests, unsent = results.requests, results.unsent
    facts = [f"{text.count(requests)} requests in {text.seconds(results.elapsed_s)}"]
    if requests + unsent:
        facts.append(f"{text.percent(results.failed, requests + unsent)} failed")
    if unsent:
        facts.append(f"{text.count(unsent)} never sent")
    trend = Trend(step.service for workflow in results.workflows for step in workflow.steps)
    if trend.count:
        facts.append(f"p95 {text.duration(trend.stat('p(95)'))}")
    if results.passed and results.thresholds:
        kept = len(results.thresholds)
        facts.append(f"{kept} {'threshold' if kept == 1 else 'thresholds'} kept")
    return facts

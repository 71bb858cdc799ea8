"""Runs that would say nothing, or said nothing: why, in one sentence, with a way out."""

from __future__ import annotations

from hyperscale.errors import BadInput, RunFailed
from hyperscale.metrics.results import Results
from hyperscale.ui import verdict
from hyperscale.workload.plan import TestPlan
from hyperscale.workload.results import Outcome

_HINTS = {
    Outcome.REFUSED: "is the target running there? hyperscale demo --serve starts one to practise",
    Outcome.TLS: "check http:// or https://; for a certificate of your own set HTTPOptions(ca=...) "
    "or use --insecure-skip-tls-verify",
    Outcome.TIMEOUT: "hyperscale ping URL tries one request and shows where its time goes",
    Outcome.EXCEPTION: "--once runs one iteration and shows every exchange",
}


def require_measurement(plan: TestPlan) -> None:
    """Refuse a test file in which nothing would be measured.

    A workflow without measured steps may prepare the ground for another one, and may be run
    alone by naming it; a whole file of them is a mistake in an annotation.
    """
    if not any(workflow.is_test for workflow in plan.workflows):
        why = plan.warnings[0] if plan.warnings else "no step returns a response"
        raise BadInput(
            f"nothing would be measured: {why}",
            "to run such a workflow all the same, name it: hyperscale run FILE NAME",
        )


def nothing_succeeded(results: Results) -> RunFailed | None:
    """What failed most, when every call failed or no step came to one."""
    if not verdict.nothing_succeeded(results):
        return None
    steps = [step for workflow in results.workflows for step in workflow.steps]
    errors = [error for step in steps for error in step.errors]
    if not errors:
        return RunFailed("no request succeeded")
    most = max(errors, key=lambda error: error.count)
    reason = most.samples[0] if most.samples else f"{most.outcome} {most.detail}"
    hint = "--once runs one iteration and shows every exchange"
    if most.outcome in _HINTS:
        hint = _HINTS[Outcome(most.outcome)]
    return RunFailed(f"no request succeeded: {reason}", hint)

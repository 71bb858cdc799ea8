"""Why a run said nothing."""

from __future__ import annotations

from hyperscale.cli.empty_runs import nothing_succeeded
from hyperscale.metrics.results import ErrorCount, Results, StepResult, WorkflowResult


def results(count: int, failed: int, *errors: ErrorCount) -> Results:
    step = StepResult(name="get", workflow="W", count=count, failed=failed, errors=list(errors))
    return Results(workflows=[WorkflowResult(name="W", steps=[step])])


def refused(count: int) -> ErrorCount:
    return ErrorCount(outcome="refused", detail="", count=count, samples=["nobody listens"])


def test_some_success_needs_no_explanation() -> None:
    assert nothing_succeeded(results(0, 0)) is None
    assert nothing_succeeded(results(2, 1, refused(1))) is None


def test_the_most_frequent_failure_is_the_reason() -> None:
    reset = ErrorCount(outcome="reset", detail="", count=1, samples=["cut off"])
    error = nothing_succeeded(results(4, 4, reset, refused(3)))
    assert error is not None
    assert error.message == "no request succeeded: nobody listens"
    assert "hyperscale demo --serve" in error.hint


def test_calls_that_were_never_sent_are_no_success_and_no_request() -> None:
    some = results(3, 2, refused(2))
    some.workflows[0].steps[0].unsent = 2
    assert nothing_succeeded(some) is None
    none = results(0, 2, refused(2))
    none.workflows[0].steps[0].unsent = 2
    error = nothing_succeeded(none)
    assert error is not None
    assert error.message == "no request succeeded: nobody listens"


def test_failures_without_a_sample_or_a_known_kind() -> None:
    error = nothing_succeeded(results(1, 1, ErrorCount(outcome="status", detail="503", count=1)))
    assert error is not None
    assert error.message == "no request succeeded: status 503"
    assert error.hint
    bare = nothing_succeeded(results(1, 1))
    assert bare is not None
    assert bare.message == "no request succeeded"

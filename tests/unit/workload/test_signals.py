from __future__ import annotations

import contextlib

import pytest

from hyperscale import Workflow
from hyperscale.workload.signals import (
    IterationStopped,
    Signal,
    StepSkipped,
    TestStopped,
    UserStopped,
    beside_signals,
    signal_in,
)

SKIP, ITERATION, USER = StepSkipped("no"), IterationStopped(), UserStopped()
TEST = TestStopped("enough", failed=False)


def group(*errors: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup("of tasks", errors)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (ITERATION, ITERATION),
        (ValueError(), None),
        (group(ValueError()), None),
        (group(ValueError(), SKIP), SKIP),
        (group(SKIP, ITERATION), ITERATION),
        (group(ITERATION, group(USER, SKIP)), USER),
        (group(USER, group(group(TEST)), ITERATION), TEST),
    ],
)
def test_the_farthest_reaching_signal_is_found_in_groups(
    error: BaseException, found: Signal | None
) -> None:
    assert signal_in(error) is found


def test_what_came_with_a_signal() -> None:
    error = ValueError()
    beside = beside_signals(group(SKIP, group(error, ITERATION)))
    assert isinstance(beside, BaseExceptionGroup)
    (inner,) = beside.exceptions
    assert isinstance(inner, BaseExceptionGroup)
    assert inner.exceptions == (error,)
    assert beside_signals(group(SKIP, group(ITERATION))) is None
    assert beside_signals(SKIP) is None


@pytest.mark.parametrize(
    "end",
    [
        lambda workflow: workflow.skip(),
        lambda workflow: workflow.stop_iteration(),
        lambda workflow: workflow.stop_user(),
        lambda workflow: workflow.stop_test("enough"),
    ],
)
def test_signals_pass_through_the_handlers_of_authors(end) -> None:
    def careless() -> None:
        with contextlib.suppress(Exception):
            end(Workflow())

    with pytest.raises(Signal):
        careless()

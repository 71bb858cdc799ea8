"""Failures by kind: what is kept of the first, and which one was first."""

from __future__ import annotations

import pytest

from hyperscale.metrics.delta import ErrorDelta
from hyperscale.metrics.failures import FailureKinds
from hyperscale.metrics.results import FirstFailure


def told(at_s: float, user: int = 0) -> list[ErrorDelta]:
    return [ErrorDelta("status", "503", 1, ["no"], FirstFailure(at_s=at_s, user=user))]


@pytest.mark.parametrize(
    "order", [[(2.0, 1), (1.0, 2), (1.0, 1)], [(1.0, 1), (2.0, 1)], [(1.0, 2), (1.0, 1)]]
)
def test_the_earliest_is_the_first_in_whatever_order_they_are_told(
    order: list[tuple[float, int]],
) -> None:
    kinds = FailureKinds()
    for at_s, user in order:
        kinds.merge(told(at_s, user))
    kinds.merge([ErrorDelta("status", "503", 5, [])])
    (error,) = kinds.snapshot()
    assert error.first is not None
    assert (error.first.at_s, error.first.user) == min(order)
    assert error.count == len(order) + 5


def test_each_kind_has_its_own_first() -> None:
    kinds = FailureKinds()
    for number, detail in enumerate(("503", "502", "503")):
        kinds.add("status", detail, "no", lambda number=number: FirstFailure(at_s=number))
    firsts = {error.detail: error.first and error.first.at_s for error in kinds.drain()}
    assert firsts == {"503": 0, "502": 1}
    kinds.add("status", "503", "no", lambda: FirstFailure(at_s=9))
    assert [error.first for error in kinds.drain()] == [None]

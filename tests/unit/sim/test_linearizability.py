"""The search for an order, against trying every order."""

from __future__ import annotations

from itertools import permutations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.sim.linearizability import (
    LOG,
    Model,
    Operation,
    Undecided,
    explain,
    log_history,
    log_of,
)


def _register(state: int, one: Operation) -> int | None:
    if one.asked is not None:
        return int(one.asked)
    return state if one.told in (None, state) else None


REGISTER = Model(0, _register)


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Writes and reads of one number, up to six at a time."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        began = draw(st.integers(0, 8))
        ended = draw(st.sampled_from([began, began + 1, began + 4, inf]))
        asked = draw(st.sampled_from([None, None, 1, 2]))
        told = None if asked is not None or ended == inf else draw(st.integers(0, 2))
        found.append(Operation(str(number), began, ended, asked, told))
    return found


def _follows(order: tuple[Operation, ...]) -> bool:
    if any(later.ended < one.began for at, one in enumerate(order) for later in order[at + 1 :]):
        return False
    state: int | None = 0
    for one in order:
        state = _register(state, one)
        if state is None:
            return False
    return True


@given(histories())
def test_it_finds_an_order_exactly_when_there_is_one(history: list[Operation]) -> None:
    explanation = explain(history, REGISTER)
    assert explanation.found == any(map(_follows, permutations(history)))
    if explanation.found:
        assert _follows(tuple(explanation.order))


def append(name: str, began: float, ended: float, op: int | None) -> Operation:
    return Operation(name, began, ended, name, op)


def read(began: float, ended: float, *log: str) -> Operation:
    return Operation("read", began, ended, None, log_of(log))


def explained(history: list[Operation], *longest_read: str) -> bool:
    return explain(log_history(history, longest_read), LOG).found


def test_an_append_without_an_answer_may_have_happened_or_not() -> None:
    lost = append("a", 0, inf, None)
    assert explained([lost, read(1, 2)])
    assert explained([lost, read(1, 2), read(3, 4, "a")], "a")
    assert explained([lost, append("b", 1, 2, 2), read(3, 4, "a", "b")], "a", "b")
    assert explained([lost, append("b", 1, 2, 2)])
    assert not explained([append("a", 3, inf, None), append("b", 1, 2, 2)])


def test_a_read_that_misses_what_was_confirmed_has_no_place() -> None:
    stale = read(3, 4)
    explanation = explain([append("a", 0, 1, 1), stale], LOG)
    assert not explanation.found
    assert explanation.stuck is stale


def test_two_logs_that_differ_have_no_order() -> None:
    assert not explained([append("a", 0, 9, 1), append("b", 0, 9, 1)])
    assert not explained([read(0, 1, "a"), read(2, 3, "b")], "b")


def test_a_search_that_takes_too_long_says_so() -> None:
    history = [Operation(str(number), 0, inf, 1) for number in range(12)]
    with pytest.raises(Undecided):
        explain([*history, Operation("read", 0, 5, None, 9)], REGISTER, steps_max=1_000)

"""What a part says of itself when it ends."""

from __future__ import annotations

import pytest

from hyperscale.engine.messages import Stamped
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.worker.held_part import VALUES_BYTES_MAX, check_values, failed, portable
from hyperscale.nodes.worker.runner import LoadEnded


def test_an_authors_mistake_is_told_with_its_hint() -> None:
    ended = failed(BadInput("no such file", "look again"))

    assert (ended.outcome, ended.error, ended.hint) == ("failed", "no such file", "look again")
    assert ended.bad_input


def test_a_failed_run_is_no_mistake_of_the_author() -> None:
    assert not failed(RunFailed("the target is gone")).bad_input


def test_an_error_of_our_own_is_told_too() -> None:
    ended = failed(RuntimeError("oops"))

    assert "the worker could not run it" in ended.error
    assert "oops" in ended.error


def test_values_that_cannot_travel_are_refused_by_name() -> None:
    half = Stamped(1, 0, bytes(VALUES_BYTES_MAX // 2 + 1))
    check_values("Load", {"a": half})

    with pytest.raises(BadInput, match="Load hands on 4 MB of values"):
        check_values("Load", {"a": half, "b": half})
    with pytest.raises(BadInput, match="Load hands on 4 MB of values"):
        check_values("Load", {"a": half}, {"a": half})


def test_a_part_that_hands_on_too_much_fails_and_keeps_its_numbers() -> None:
    values = {"a": Stamped(1, 0, bytes(VALUES_BYTES_MAX + 1))}

    ended = portable("Load", LoadEnded(iterations=7, state=b"numbers", provided=values))

    assert (ended.outcome, ended.bad_input, ended.provided) == ("failed", True, {})
    assert (ended.iterations, ended.state) == (7, b"numbers")
    fine = LoadEnded(context={"a": Stamped(1, 0, b"small")})
    assert portable("Load", fine) is fine

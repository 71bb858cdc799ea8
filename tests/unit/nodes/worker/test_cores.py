"""Cores given out and taken back: the two maps always agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.worker.cores import Availability, Cores


def test_the_first_free_cores_in_order_are_taken() -> None:
    cores: Cores[str] = Cores(4)

    assert cores.allocate("a", 2) == (0, 1)
    assert cores.allocate("b", 1) == (2,)
    cores.release("a")

    assert cores.allocate("c", 3) == (0, 1, 3)
    assert cores.free == 0


def test_too_few_cores_take_nothing() -> None:
    cores: Cores[str] = Cores(2)
    cores.allocate("a", 1)

    assert cores.allocate("b", 2) is None
    assert (cores.free, cores.owners(), cores.held_by("b")) == (1, ["a"], ())


def test_releasing_twice_frees_once() -> None:
    cores: Cores[str] = Cores(2)
    cores.allocate("a", 2)

    assert cores.release("a") == (0, 1)
    assert cores.release("a") == ()
    assert cores.availability == Availability(assigned=2, completed=2, available=2)


def test_cores_may_come_back_one_after_the_other() -> None:
    cores: Cores[str] = Cores(4)
    cores.allocate("a", 3)

    assert cores.release("a", keep=1) == (1, 2)
    assert cores.release("a", keep=1) == ()
    assert (cores.held_by("a"), cores.free) == ((0,), 3)
    assert cores.release("a") == (0,)
    assert (cores.owners(), cores.free) == ([], 4)


def test_an_owner_holds_one_set_of_cores() -> None:
    cores: Cores[str] = Cores(4)
    cores.allocate("a", 1)

    with pytest.raises(ValueError, match="holds cores already"):
        cores.allocate("a", 1)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=60),
)
def test_any_order_of_requests_keeps_the_books_straight(
    total: int, requests: list[tuple[str, int]]
) -> None:
    cores: Cores[str] = Cores(total)
    held: dict[str, int] = {}
    for owner, count in requests:
        if count == 0:
            assert len(cores.release(owner)) == held.pop(owner, 0)
        elif owner not in held:
            taken = cores.allocate(owner, count)
            assert (taken is None) == (count > total - sum(held.values()))
            if taken is not None:
                held[owner] = count
        assigned, completed, available = cores.availability
        assert available == cores.free == total - sum(held.values())
        assert available == total - max(assigned - completed, 0)
        numbers = [number for owner in cores.owners() for number in cores.held_by(owner)]
        assert len(set(numbers)) == len(numbers) == sum(held.values())
        assert set(cores.owners()) == set(held)
    for owner in list(held):
        cores.release(owner)
    assert cores.free == total

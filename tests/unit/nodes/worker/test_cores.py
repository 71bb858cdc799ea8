"""Cores given out and taken back, shared or not: never more than there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.worker.cores import Cores


def cores(total: int) -> Cores[str]:
    return Cores(total)


def test_too_few_cores_take_nothing() -> None:
    worker = cores(2)
    assert worker.take("a", "j1", (0,))

    assert not worker.take("b", "j2", (0, 1))
    assert (worker.free, worker.owners(), worker.held_by("b")) == (1, ["a"], ())


def test_parts_of_one_job_share_what_they_name_alike() -> None:
    worker = cores(2)
    assert worker.take("a", "j1", (0, 1))
    assert worker.take("b", "j1", (1,))
    assert worker.free == 0

    worker.release("a")
    assert worker.free == 1, "the other part is still on one of them"
    worker.release("b")
    assert worker.free == 2


def test_parts_of_two_jobs_share_nothing() -> None:
    worker = cores(2)
    assert worker.take("a", "j1", (0,))
    assert worker.take("b", "j2", (0,))
    assert not worker.take("c", "j3", (0,))
    assert worker.free == 0


def test_a_part_that_names_no_slots_has_cores_of_its_own() -> None:
    worker = cores(3)
    slots = [worker.unshared(1), worker.unshared(2)]
    assert len({*slots[0], *slots[1]}) == 3
    assert worker.take("a", "j1", slots[0])
    assert worker.take("b", "j1", slots[1])
    assert worker.free == 0


def test_releasing_twice_frees_once() -> None:
    worker = cores(2)
    worker.take("a", "j1", (0, 1))

    worker.release("a")
    worker.release("a")
    assert worker.free == 2


def test_cores_may_come_back_one_after_the_other() -> None:
    worker = cores(4)
    worker.take("a", "j1", (0, 1, 2))

    worker.release("a", keep=1)
    worker.release("a", keep=2)
    assert (worker.held_by("a"), worker.free) == ((0,), 3)
    worker.release("a")
    assert (worker.owners(), worker.free) == ([], 4)


def test_a_core_that_came_back_is_not_there_for_a_late_sharer_when_it_was_given_away() -> None:
    worker = cores(2)
    worker.take("a", "j1", (0, 1))
    worker.release("a", keep=1)
    assert worker.take("b", "j2", (0,))

    assert not worker.take("c", "j1", (0,))


def test_an_owner_holds_one_set_of_cores() -> None:
    worker = cores(4)
    worker.take("a", "j1", (0,))

    with pytest.raises(ValueError, match="holds cores already"):
        worker.take("a", "j1", (1,))


REQUESTS = st.tuples(
    st.sampled_from("abcdef"),
    st.sampled_from(("j1", "j2")),
    st.sets(st.integers(0, 5)).map(lambda slots: tuple(sorted(slots))),
    st.integers(0, 3),
)


@given(st.integers(1, 8), st.lists(REQUESTS, max_size=60))
def test_any_order_of_requests_keeps_the_books_straight(
    total: int, requests: list[tuple[str, str, tuple[int, ...], int]]
) -> None:
    worker = cores(total)
    held: dict[str, set[tuple[str, int]]] = {}
    for owner, job, slots, keep in requests:
        if not slots:
            worker.release(owner, keep)
            if not keep:
                held.pop(owner, None)
        elif owner not in held:
            before = worker.free
            taken = worker.take(owner, job, slots)
            if taken:
                held[owner] = {(job, slot) for slot in slots}
            else:
                assert worker.free == before
        assert set(worker.owners()) == set(held)
        everything = set().union(*held.values()) if held else set()
        assert 0 <= total - worker.free <= len(everything)
        assert worker.free >= 0
    for owner in list(held):
        worker.release(owner)
    assert worker.free == total

"""Parts of a workflow: together they are the whole, wherever each of them runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.engine.messages import Prepare
from hyperscale.engine.part_plan import PartPlan, slices, users_by_core
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingVUs,
    SharedIterations,
    Stage,
    split,
)


def facts(load: Load) -> WorkflowFacts:
    return WorkflowFacts(name="W", is_test=True, priority="auto", load=load)


def cut_up(load: Load, cores: int, total: int, first: int = 0, **more: Any) -> list[Prepare]:
    part_plan = PartPlan(source=b"", overrides=b"", total_cores=total, first_core=first, **more)
    return slices(facts(load), part_plan, cores)


LOADS = [
    ClosedVUs(17, 10.0),
    ArrivalRate(100.0, 10.0, max_vus=50, vus=7),
    SharedIterations(9, 100),
    PerVUIterations(5, 3),
]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_two_parts_are_told_what_one_would_be(load: Load, cut: int) -> None:
    whole = cut_up(load, 4, 4)
    parts = cut_up(load, cut, 4) + cut_up(load, 4 - cut, 4, cut, run_setup=False)
    assert parts == whole
    assert [order.run_setup for order in whole] == [True, False, False, False]
    assert [order.core for order in whole] == [0, 1, 2, 3]
    ends = [order.first_vu + order.load.peak_vus for order in whole]
    assert ends[:-1] == [order.first_vu for order in whole[1:]]


def test_there_are_no_more_slices_than_users() -> None:
    assert len(cut_up(ClosedVUs(3, 10.0), 2, 8, 0)) == 2
    assert len(cut_up(ClosedVUs(3, 10.0), 2, 8, 2)) == 1
    assert cut_up(ClosedVUs(3, 10.0), 2, 8, 4) == []


def test_a_load_by_time_goes_on_as_it_was() -> None:
    load = ArrivalRate(100.0, 60.0, max_vus=50)
    before = cut_up(load, 2, 4, 2)
    after = cut_up(load, 2, 4, 2, attempt=2, resume_at_s=20.0, iterations_done=1000)
    assert [o.load for o in after] == [o.load for o in before]
    assert {o.resume_at_s for o in after} == {20.0}


@pytest.mark.parametrize("load", [SharedIterations(8, 100), PerVUIterations(8, 25)])
@pytest.mark.parametrize("done", [0, 1, 37, 47, 48, 49])
def test_what_is_left_of_the_iterations_is_done_once(load: Load, done: int) -> None:
    first = cut_up(load, 2, 4, 2)
    planned = sum(o.load.planned_iterations or 0 for o in first)
    left = cut_up(load, 2, 4, 2, attempt=2, iterations_done=done)
    assert sum(o.load.planned_iterations or 0 for o in left) == planned - done
    known = {o.core: o.first_vu for o in first}
    assert all(known[o.core] == o.first_vu for o in left)


def test_nothing_is_left() -> None:
    assert cut_up(SharedIterations(8, 100), 2, 4, 2, attempt=2, iterations_done=50) == []
    assert cut_up(SharedIterations(8, 100), 2, 4, 2, attempt=2, iterations_done=70) == []


def test_rows_that_may_have_been_used_are_passed_over() -> None:
    load = ClosedVUs(8, 60.0)
    (first,) = {o.rows_used for o in cut_up(load, 2, 4)}
    (second,) = {
        o.rows_used for o in cut_up(load, 2, 4, attempt=2, resume_at_s=20.0, iterations_done=400)
    }
    (third,) = {
        o.rows_used for o in cut_up(load, 2, 4, attempt=3, resume_at_s=30.0, iterations_done=600)
    }
    assert first == 0
    # 200 a core were reported, at 10 a second, and two users may have been at work.
    assert second >= 200 + 10 * 10 + 2
    # The second attempt began after the rows passed over; it made 100 a core, and was lost too.
    assert third >= second + 100 + 2


def test_a_part_with_nothing_left_keeps_a_core_to_tear_down() -> None:
    load = SharedIterations(4, 20)
    part_plan = PartPlan(
        source=b"", overrides=b"", total_cores=4, first_core=0, attempt=2, iterations_done=10
    )
    (order,) = slices(msgspec.structs.replace(facts(load), tears_down=True), part_plan, 2)
    assert order.idle
    assert slices(facts(load), part_plan, 2) == []


SCALED = [
    (ClosedVUs(4, 10.0), 4, [1, 1, 1, 1]),
    (ClosedVUs(4, 10.0), 2, [1, 1, 0, 0]),
    (ClosedVUs(4, 10.0), 9, [3, 2, 2, 2]),
    (ClosedVUs(5, 10.0), 6, [2, 1, 1, 2]),
    (ClosedVUs(5, 10.0), 4, [1, 1, 1, 1]),
    (SharedIterations(8, 100), 1, [1, 1, 1, 1]),
    (ArrivalRate(10.0, 10.0, max_vus=4), 2, [1, 1, 1, 1]),
    (RampingVUs(stages=(Stage(5.0, 8),)), 3, [1, 1, 1, 0]),
]


@pytest.mark.parametrize(("load", "vus", "expected"), SCALED)
def test_users_are_spread_evenly_when_their_number_changes(
    load: Load, vus: int, expected: list[int]
) -> None:
    assert users_by_core(load, 4, vus) == expected


@given(st.integers(1, 500), st.integers(1, 64), st.integers(1, 2_000))
def test_as_few_users_as_can_be_change_their_core(planned: int, cores: int, vus: int) -> None:
    load = ClosedVUs(planned, 10.0)
    before = [share.peak_vus for share in split(load, cores)]
    after = users_by_core(load, cores, vus)
    assert sum(after) == vus
    changes = [now - was for now, was in zip(after, before, strict=True)]
    assert all(change >= 0 for change in changes) or all(change <= 0 for change in changes)
    moved = [now for now, change in zip(after, changes, strict=True) if change]
    assert max(moved, default=0) - min(moved, default=0) <= 1

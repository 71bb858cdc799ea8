"""A part's idle time counts when nothing explains it and somebody was there to look."""

from __future__ import annotations

from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    RequestDelta,
    RequestKey,
    StepDelta,
    movement,
)
from hyperscale.metrics.histogram import Sparse
from hyperscale.nodes.worker.held_part import LOOK_S_MAX, IdleClock


def look(idle_clock: IdleClock, *moments: float, runs: bool = True, quiet_s: float = 0.0) -> float:
    idle_s = 0.0
    for now in moments:
        idle_s = idle_clock.idle_s(now, runs=runs, quiet_s=quiet_s)
    return idle_s


def test_it_grows_until_something_moves() -> None:
    idle_clock = IdleClock(0.0)
    assert look(idle_clock, 1.0, 2.0, 3.0) == 3.0
    idle_clock.move(0)
    assert look(idle_clock, 4.0) == 4.0
    idle_clock.move(7)
    assert look(idle_clock, 5.0) == 1.0
    assert idle_clock.moved == 7


def test_what_is_explained_is_no_silence() -> None:
    idle_clock = IdleClock(0.0)
    look(idle_clock, 1.0, 2.0)
    assert look(idle_clock, 3.0, 4.0, quiet_s=0.5) == 0.0
    assert look(idle_clock, 5.0) == 1.0


def test_who_does_not_run_need_not_move() -> None:
    idle_clock = IdleClock(0.0)
    look(idle_clock, 1.0, 2.0)
    assert look(idle_clock, 3.0, 100.0, runs=False) == 0.0
    assert look(idle_clock, 101.0) == 1.0


def test_a_worker_that_was_suspended_knows_nothing_of_that_time() -> None:
    idle_clock = IdleClock(0.0)
    assert look(idle_clock, 1.0, 500.0) == 1.0 + LOOK_S_MAX


def test_lag_and_dropped_arrivals_are_no_movement() -> None:
    lag = Sparse.of([1], [5], 0.1, 0.1, 0.5, 0.05)
    assert movement(Delta(seq=1, vus=9, lag=lag, cpu=0.5, cpu_s=1.0, dropped=3)) == 0


def test_all_that_a_workflow_does_is_movement() -> None:
    one = Sparse.of([1], [2], 0.1, 0.1, 0.2, 0.02)
    request = RequestDelta(RequestKey("get"), count=3, unsent=1)
    step = StepDelta("get", runs=4, skips={"no row": 1})
    check = CheckDelta("ok", 1, 1, [])
    delta = Delta(seq=1, iteration=one, requests=[request], steps=[step], checks=[check])
    assert movement(delta) == 2 + 4 + 5 + 2

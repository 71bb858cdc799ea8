"""Workflows that overlap, follow one another, or do both."""

from __future__ import annotations

from typing import Any

from hyperscale.metrics import totals
from hyperscale.metrics.results import (
    CoreUse,
    GeneratorCost,
    Point,
    Results,
    StepResult,
    WorkflowResult,
)


def load(started_s: float, *vus: int, **more: Any) -> WorkflowResult:
    """With so many users in each of its seconds."""
    series = [Point(at_s=float(at), width_s=1.0, vus=count) for at, count in enumerate(vus)]
    known = {"elapsed_s": float(len(vus)), "vus_max": max(vus, default=0), "series": series}
    return WorkflowResult(name="W", started_s=started_s, **{**known, **more})


def run(*workflows: WorkflowResult, **more: Any) -> Results:
    return Results(workflows=list(workflows), **more)


def test_a_second_in_which_two_ran_counts_once() -> None:
    assert totals.load_seconds(run(load(1.0, 5, 5, 5), load(2.0, 5, 5, 5))) == 4.0
    assert totals.per_second(80, run(load(1.0, 5, 5, 5), load(2.0, 5, 5, 5))) == 20.0


def test_a_second_in_which_nothing_ran_does_not_count() -> None:
    assert totals.load_seconds(run(load(0.5, 5, 5), load(10.0, 5))) == 3.0


def test_without_load_there_is_no_rate() -> None:
    assert totals.per_second(0, run()) == totals.per_second(0, run(load(0.0))) == 0.0


def test_users_at_the_same_time_add_up_and_others_do_not() -> None:
    assert totals.vus_max(run(load(0.0, 10, 10), load(0.5, 5, 5))) == 15
    assert totals.vus_max(run(load(0.0, 10, 10), load(2.0, 5, 5))) == 10
    assert totals.vus_max(run(load(0.0, 10, 1), load(1.0, 5, 5))) == 10


def test_a_timeline_of_fractions_is_not_counted_twice_at_its_borders() -> None:
    third = 1 / 3
    series = [Point(at_s=at * third, width_s=third, vus=7) for at in range(9)]
    assert totals.vus_max(run(load(0.1, elapsed_s=3.0, vus_max=7, series=series))) == 7


def test_users_that_are_on_no_timeline_count_where_their_load_was() -> None:
    assert totals.vus_max(run(load(0.0, 3, vus_max=9))) == 9
    bare = load(0.0, 4, 4, series=[])
    assert totals.vus_max(run(bare, load(1.0, 2), load(2.0, 3))) == 6


def test_users_now_are_those_there_are_and_at_the_end_those_of_the_end() -> None:
    assert totals.vus(run(load(0.0, 4, vus=3), load(0.0, 2, vus=2))) == 5
    assert totals.vus(run(load(0.0, 4, 4), load(0.2, 2, 2), load(0.0, 9))) == 6
    assert totals.vus(run()) == totals.vus_max(run()) == 0


def test_what_measures_nothing_counts_for_nothing() -> None:
    plain = load(0.0, 1, 1, 1, is_test=False, vus=1)
    assert totals.load_seconds(run(plain, load(1.0, 4))) == 1.0
    assert totals.vus_max(run(plain, load(1.0, 4))) == 4


def test_the_cost_of_the_load_is_over_all_tests_and_the_time_they_ran() -> None:
    steps = [StepResult(name="s", workflow="W", count=300)]
    plain = load(0.0, 1, is_test=False, cpu_seconds=5.0, steps=steps)
    tests = [load(at, 4, 4, cpu_seconds=1.5, steps=steps) for at in (0.0, 1.0)]
    cost = totals.generator_cost(run(plain, *tests))
    assert cost == GeneratorCost(cpu_seconds=3.0, cores=1.0, requests_per_cpu_second=200.0)
    assert totals.generator_cost(run(load(0.0, 4))) == GeneratorCost()


def test_a_core_that_was_shared_counts_once() -> None:
    uses = [CoreUse(core=core, workflow=name) for core, name in ((0, "A"), (0, "B"), (1, "A"))]
    assert totals.cores(run(core_use=uses)) == 2
    assert totals.cores(run(load(0.0, 1, cores=3))) == 3

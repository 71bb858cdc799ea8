"""Cores by priority: the ranges, the packing and the surplus rule."""

import math

import pytest

from hyperscale.cluster.placement.provision import Share, Wanted, core_range, partition


@pytest.mark.parametrize("pool", range(1, 65))
def test_ranges_come_from_the_whole_pool(pool: int) -> None:
    quarter, most = math.ceil(pool / 4), math.ceil(3 * pool / 4)
    assert core_range("low", pool) == (1, quarter)
    assert core_range("normal", pool) == (quarter, most)
    assert core_range("high", pool) == (most, pool)
    assert core_range("exclusive", pool) == (pool, pool)
    assert core_range("auto", pool) == (1, pool)


def test_lower_priorities_grow_first_and_reproduce_the_published_example() -> None:
    wanted = [Wanted("LoadTest", "high", True), Wanted("Metrics", "low", True)]
    assert partition(wanted, 24) == [[Share("LoadTest", 18), Share("Metrics", 6)]]


def test_a_lone_workflow_gets_its_maximum() -> None:
    assert partition([Wanted("A", "high", True)], 24) == [[Share("A", 24)]]
    assert partition([Wanted("A", "auto", True)], 8) == [[Share("A", 8)]]
    assert partition([Wanted("A", "normal", True)], 8) == [[Share("A", 6)]]
    assert partition([Wanted("A", "low", True)], 8) == [[Share("A", 2)]]


def test_equal_priorities_share_evenly() -> None:
    wanted = [Wanted("A", "auto", True), Wanted("B", "auto", True)]
    assert partition(wanted, 8) == [[Share("A", 4), Share("B", 4)]]


def test_what_does_not_fit_together_runs_one_after_another() -> None:
    wanted = [Wanted("A", "high", True), Wanted("B", "high", True)]
    assert partition(wanted, 24) == [[Share("A", 24)], [Share("B", 24)]]


def test_exclusive_runs_alone() -> None:
    wanted = [
        Wanted("Plain", "auto", False),
        Wanted("Small", "low", True),
        Wanted("All", "exclusive", True),
    ]
    assert partition(wanted, 4) == [
        [Share("Plain", 1)],
        [Share("All", 4)],
        [Share("Small", 1)],
    ]


def test_a_workflow_without_measured_steps_takes_one_core_beside_the_tests() -> None:
    wanted = [Wanted("Load", "auto", True), Wanted("Plain", "auto", False)]
    assert partition(wanted, 8) == [[Share("Plain", 1), Share("Load", 7)]]


def test_on_one_core_everything_is_sequential() -> None:
    wanted = [Wanted("Load", "auto", True), Wanted("Plain", "auto", False)]
    assert partition(wanted, 1) == [[Share("Plain", 1)], [Share("Load", 1)]]

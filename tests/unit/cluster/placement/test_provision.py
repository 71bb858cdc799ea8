"""Cores by priority: the ranges, cores of one's own, shared ones, and who runs alone."""

import math

import pytest

from hyperscale.cluster.placement.provision import Share, Wanted, batches, core_range, in_use

MANY = 1_000


def load(name: str, priority: str = "auto", users: int = MANY) -> Wanted:
    return Wanted(name, priority, True, users)


def plain(name: str) -> Wanted:
    return Wanted(name, "auto", False, 1)


def counts(wanted: list[Wanted], pool: int) -> list[dict[str, int]]:
    return [{share.name: len(share.cores) for share in batch} for batch in batches(wanted, pool)]


@pytest.mark.parametrize("pool", range(1, 65))
def test_ranges_come_from_the_whole_pool(pool: int) -> None:
    quarter, most = math.ceil(pool / 4), math.ceil(3 * pool / 4)
    assert core_range("low", pool) == (1, quarter)
    assert core_range("normal", pool) == (quarter, most)
    assert core_range("high", pool) == (most, pool)
    assert core_range("exclusive", pool) == (pool, pool)
    assert core_range("auto", pool) == (1, pool)


def test_lower_priorities_grow_first_and_reproduce_the_published_example() -> None:
    assert counts([load("LoadTest", "high"), load("Metrics", "low")], 24) == [
        {"LoadTest": 18, "Metrics": 6}
    ]


@pytest.mark.parametrize(
    ("priority", "pool", "cores"),
    [("high", 24, 24), ("auto", 8, 8), ("normal", 8, 6), ("low", 8, 2)],
)
def test_a_lone_workflow_gets_its_maximum(priority: str, pool: int, cores: int) -> None:
    assert counts([load("A", priority)], pool) == [{"A": cores}]


def test_equal_priorities_share_evenly_and_have_cores_of_their_own() -> None:
    assert batches([load("A"), load("B")], 4) == [[Share("A", (0, 1)), Share("B", (2, 3))]]


def test_cores_that_have_no_user_go_to_others() -> None:
    assert counts([load("Few", users=2), load("Many")], 8) == [{"Few": 2, "Many": 6}]
    assert counts([load("A", "high", 1), load("B", "high")], 8) == [{"A": 1, "B": 7}]


def test_what_does_not_fit_side_by_side_shares_cores() -> None:
    (batch,) = batches([load("A", "high"), load("B", "high")], 8)
    assert [len(share.cores) for share in batch] == [6, 6]
    assert {core for share in batch for core in share.cores} == set(range(8))


def test_on_one_core_everything_runs_at_the_same_time() -> None:
    wanted = [load("A"), load("B", "low"), plain("Plain"), load("C", "high")]
    assert batches(wanted, 1) == [
        [Share("C", (0,)), Share("A", (0,)), Share("B", (0,)), Share("Plain", (0,))]
    ]


def test_shared_cores_have_about_as_many_users_each() -> None:
    sizes = {"Browse": 80, "Search": 10, "Buy": 5, "Admin": 5}
    (batch,) = batches([load(name, users=users) for name, users in sizes.items()], 2)
    on_core = [0.0, 0.0]
    for name, cores in batch:
        for core in cores:
            on_core[core] += sizes[name] / len(cores)
    assert on_core == [50.0, 50.0]


def test_an_exclusive_test_runs_alone_after_the_others() -> None:
    wanted = [plain("Plain"), load("All", "exclusive"), load("Small", "low")]
    assert counts(wanted, 4) == [{"Small": 1, "Plain": 1}, {"All": 4}]


def test_an_exclusive_test_with_few_users_runs_alone_too() -> None:
    wanted = [load("One", "exclusive", 1), load("Two", "exclusive", 2), load("Other")]
    assert counts(wanted, 4) == [{"Other": 4}, {"One": 1}, {"Two": 2}]


def test_a_workflow_without_measured_steps_takes_no_core_from_a_test() -> None:
    assert batches([load("Load"), plain("Plain")], 4) == [
        [Share("Load", (0, 1, 2, 3)), Share("Plain", (0,))]
    ]


def test_it_takes_a_core_that_no_test_has() -> None:
    assert batches([plain("Plain"), load("Load", "low")], 8) == [
        [Share("Load", (0, 1)), Share("Plain", (2,))]
    ]


def test_parts_that_share_cores_use_each_once() -> None:
    assert in_use([((0, 1), 0), ((1, 2), 0), ((2,), 0)]) == 3


def test_cores_without_load_are_not_used_unless_they_are_shared() -> None:
    assert in_use([((0, 1, 2), 2), ((5,), 0)]) == 2
    assert in_use([((0, 1, 2), 2), ((2,), 0)]) == 3
    assert in_use([((0, 1, 2), 2), ((2,), 1)]) == 1, "the other one is over"
    assert in_use([]) == 0

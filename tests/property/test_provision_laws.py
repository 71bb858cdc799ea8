"""All run, none beyond its range, and shared cores are used evenly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.placement.provision import RANK, Share, Wanted, batches, core_range

PRIORITIES = st.sampled_from(sorted(RANK))
LAYERS = st.lists(st.tuples(PRIORITIES, st.booleans(), st.integers(1, 5_000)), min_size=1).map(
    lambda rows: [
        Wanted(f"W{number}", priority, is_test, users if is_test else 1)
        for number, (priority, is_test, users) in enumerate(rows)
    ]
)
POOLS = st.integers(1, 64)


def least(wanted: Wanted, pool: int) -> int:
    return min(core_range(wanted.priority, pool)[0], wanted.users) if wanted.is_test else 1


def most(wanted: Wanted, pool: int) -> int:
    return min(core_range(wanted.priority, pool)[1], wanted.users) if wanted.is_test else 1


def users_by_core(
    batch: list[Share], by_name: dict[str, Wanted], pool: int
) -> tuple[list[float], float]:
    """And the largest portion that one workflow has on a core."""
    users = [0.0] * pool
    portions = [by_name[name].users / len(cores) for name, cores in batch]
    for (_, cores), portion in zip(batch, portions, strict=True):
        for core in cores:
            users[core] += portion
    return users, max(portions)


@given(LAYERS, POOLS)
def test_everyone_runs_once_within_its_range(wanted: list[Wanted], pool: int) -> None:
    by_name = {each.name: each for each in wanted}
    found = [share for batch in batches(wanted, pool) for share in batch]
    assert sorted(share.name for share in found) == sorted(by_name)
    for name, cores in found:
        assert list(cores) == sorted(set(cores))
        assert set(cores) <= set(range(pool))
        assert least(by_name[name], pool) <= len(cores) <= most(by_name[name], pool)


@given(LAYERS, POOLS)
def test_only_exclusive_tests_run_alone(wanted: list[Wanted], pool: int) -> None:
    exclusive = [each.name for each in wanted if each.is_exclusive]
    found = batches(wanted, pool)
    alone = [batch[0].name for batch in found if batch[0].name in exclusive]
    assert alone == exclusive
    assert all(len(batch) == 1 for batch in found if batch[0].name in exclusive)
    assert len(found) - len(alone) == (len(wanted) > len(exclusive))


@given(LAYERS, POOLS)
def test_tests_have_cores_of_their_own_while_the_minimums_fit(
    wanted: list[Wanted], pool: int
) -> None:
    tests = {each.name: each for each in wanted if each.is_test and not each.is_exclusive}
    if not tests or sum(least(each, pool) for each in tests.values()) > pool:
        return
    first = {name: cores for name, cores in batches(wanted, pool)[0] if name in tests}
    used = [core for cores in first.values() for core in cores]
    assert len(used) == len(set(used))
    growing = [n for n, cores in first.items() if len(cores) < most(tests[n], pool)]
    assert len(used) == pool or not growing, "a core is idle that somebody could use"


@given(LAYERS, POOLS)
def test_shared_cores_differ_by_one_portion_at_most(wanted: list[Wanted], pool: int) -> None:
    together = [each for each in wanted if not each.is_exclusive]
    if sum(least(each, pool) for each in together if each.is_test) <= pool:
        return
    users, portion = users_by_core(
        batches(wanted, pool)[0], {each.name: each for each in together}, pool
    )
    assert max(users) - min(users) <= portion * (1 + 1e-9)

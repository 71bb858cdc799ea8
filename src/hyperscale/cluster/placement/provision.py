"""Which cores each workflow of a layer gets: all of them at the same time, on any number of cores.

Ranges come from the whole pool, never from what happens to be free. While the minimums fit, every
test has cores of its own: what is left raises the lower priorities to their maximum first, evenly
among equals, then the higher ones. When they do not fit, tests share cores, so that the users of
one core are about as many as those of another. Only an exclusive test runs alone, after the others.
Pure: no processes here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Highest first. AUTO stands between NORMAL and LOW: it may take everything but insists on little.
RANK = {"exclusive": 0, "high": 1, "normal": 2, "auto": 3, "low": 4}


class Wanted(NamedTuple):
    name: str
    priority: str
    is_test: bool
    users: int  # more cores than users would be of no use

    @property
    def is_exclusive(self) -> bool:
        return self.is_test and self.priority == "exclusive"


class Share(NamedTuple):
    """A workflow and its cores, by their numbers within the pool."""

    name: str
    cores: tuple[int, ...]


def core_range(priority: str, pool: int) -> tuple[int, int]:
    """Least and most cores a workflow of this priority may get from a pool of this size."""
    quarter, three_quarters = math.ceil(0.25 * pool), math.ceil(0.75 * pool)
    return {
        "low": (1, quarter),
        "normal": (quarter, three_quarters),
        "high": (three_quarters, pool),
        "exclusive": (pool, pool),
        "auto": (1, pool),
    }[priority]


def batches(wanted: Sequence[Wanted], pool: int) -> list[list[Share]]:
    """Batches to run one after another: one of all that may run together, one for each exclusive
    test."""
    if pool < 1:
        raise ValueError("a pool has at least one core")
    together = [each for each in wanted if not each.is_exclusive]
    alone = [each for each in wanted if each.is_exclusive]
    found = [_together(together, pool)] if together else []
    return found + [[Share(each.name, tuple(range(_most(each, pool))))] for each in alone]


def in_use(held: Iterable[tuple[Sequence[int], int]]) -> int:
    """How many cores the parts of one job use on a worker, given each one's cores and how many of
    them have no more load to make.

    Which ones these are is not known, so one that shares cores keeps all until it is over."""
    busy = [(cores, len(cores) - done) for cores, done in held if done < len(cores)]
    if len(busy) < 2:
        return sum(left for _, left in busy)
    parts_on = Counter(core for cores, _ in busy for core in cores)
    shared: set[int] = set()
    own = 0
    for cores, left in busy:
        if any(parts_on[core] > 1 for core in cores):
            shared.update(cores)
        else:
            own += left
    return own + len(shared)


def _least(wanted: Wanted, pool: int) -> int:
    return max(1, min(core_range(wanted.priority, pool)[0], wanted.users))


def _most(wanted: Wanted, pool: int) -> int:
    return max(1, min(core_range(wanted.priority, pool)[1], wanted.users))


def _together(wanted: Sequence[Wanted], pool: int) -> list[Share]:
    """Workflows without measured steps have one core each: one that no test has, or else the one
    with the fewest users."""
    tests = sorted((w for w in wanted if w.is_test), key=lambda w: RANK[w.priority])
    fits = sum(_least(w, pool) for w in tests) <= pool
    users = [0.0] * pool
    shares = _side_by_side(tests, pool, users) if fits else _shared(tests, pool, users)
    for each in wanted:
        if not each.is_test:
            shares.append(Share(each.name, _emptiest(users, 1, 1)))
    return shares


def _side_by_side(tests: list[Wanted], pool: int, users: list[float]) -> list[Share]:
    """Cores that no other test has."""
    cores = {w.name: _least(w, pool) for w in tests}
    left = pool - sum(cores.values())
    for rank in sorted({RANK[w.priority] for w in tests}, reverse=True):
        growing = [w for w in tests if RANK[w.priority] == rank]
        while left and growing:
            growing = [w for w in growing if cores[w.name] < _most(w, pool)]
            for w in growing[:left]:
                cores[w.name] += 1
            left -= min(left, len(growing))
    shares, first = [], 0
    for w in tests:
        mine = range(first, first + cores[w.name])
        for core in mine:
            users[core] += w.users / len(mine)
        shares.append(Share(w.name, tuple(mine)))
        first += len(mine)
    return shares


def _shared(tests: list[Wanted], pool: int, users: list[float]) -> list[Share]:
    """Each test gets as many cores as its part of all users is worth, within its range, and those
    with the fewest users so far; whoever has the most users for a core chooses first.

    Two cores then differ by no more users than the largest portion that one test has on a core."""
    everyone = max(1, sum(w.users for w in tests))
    cores = {
        w.name: min(_most(w, pool), max(_least(w, pool), math.ceil(pool * w.users / everyone)))
        for w in tests
    }
    found = {
        w.name: Share(w.name, _emptiest(users, cores[w.name], w.users))
        for w in sorted(tests, key=lambda w: -w.users / cores[w.name])
    }
    return [found[w.name] for w in tests]


def _emptiest(users: list[float], cores: int, more: int) -> tuple[int, ...]:
    """The cores with the fewest users, who become more."""
    chosen = sorted(range(len(users)), key=lambda core: (users[core], core))[:cores]
    for core in chosen:
        users[core] += more / cores
    return tuple(sorted(chosen))

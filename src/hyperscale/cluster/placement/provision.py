"""How many cores each workflow gets, and which workflows run together.

Ranges come from the whole pool, never from what happens to be free. A batch is filled by
minimums; what is left raises the lower priorities to their maximum first, evenly among equals,
then the higher ones (DECISIONS 11). Pure: no processes here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# Highest first. AUTO stands between NORMAL and LOW: it may take everything but insists on little.
RANK = {"exclusive": 0, "high": 1, "normal": 2, "auto": 3, "low": 4}


class Wanted(NamedTuple):
    name: str
    priority: str
    is_test: bool


class Share(NamedTuple):
    name: str
    cores: int


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


def partition(wanted: Sequence[Wanted], pool: int) -> list[list[Share]]:
    """Batches to run one after another; within a batch the shares never exceed the pool.

    Workflows without measured steps take exactly one core each. They run beside tests while at
    least one core is left for those, and before them otherwise. An exclusive test runs alone.
    """
    if pool < 1:
        raise ValueError("a pool has at least one core")
    tests = sorted((w for w in wanted if w.is_test), key=lambda w: RANK[w.priority])
    plain = [w for w in wanted if not w.is_test]
    exclusive = bool(tests) and tests[0].priority == "exclusive"
    beside = [] if exclusive else plain[: pool - 1] if tests else plain[:pool]
    ahead = plain[len(beside) :]
    batches = [
        [Share(w.name, 1) for w in ahead[start : start + pool]]
        for start in range(0, len(ahead), pool)
    ]
    first = [Share(w.name, 1) for w in beside]
    for batch in _pack(tests, pool, reserved=len(first)):
        batches.append(first + batch)
        first = []
    if first:
        batches.append(first)
    return batches


def _pack(tests: list[Wanted], pool: int, reserved: int) -> list[list[Share]]:
    batches: list[list[Share]] = []
    waiting = tests
    while waiting:
        room = pool - reserved
        batch: list[Wanted] = []
        rest: list[Wanted] = []
        taken = 0
        for candidate in waiting:
            least = min(core_range(candidate.priority, pool)[0], room)
            alone = candidate.priority == "exclusive"
            blocked = any(w.priority == "exclusive" for w in batch) or (alone and batch)
            if not blocked and taken + least <= room:
                batch.append(candidate)
                taken += least
            else:
                rest.append(candidate)
        batches.append(_share(batch, pool, room))
        waiting, reserved = rest, 0
    return batches


def _share(batch: list[Wanted], pool: int, room: int) -> list[Share]:
    cores = {w.name: min(core_range(w.priority, pool)[0], room) for w in batch}
    left = room - sum(cores.values())
    for rank in sorted({RANK[w.priority] for w in batch}, reverse=True):
        equals = [w for w in batch if RANK[w.priority] == rank]
        growing = equals
        while left and growing:
            growing = [w for w in growing if cores[w.name] < core_range(w.priority, pool)[1]]
            for w in growing[:left]:
                cores[w.name] += 1
            left -= min(left, len(growing))
    return [Share(w.name, cores[w.name]) for w in batch]

"""Which cores of which workers: for workflows that may have some in common.

Cores are numbered within a job (`slots`), each number for one core of one worker. Those that share
cores, directly or through others, are placed together, on as few workers as will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from hyperscale.cluster.jobs.pool import Draft, Worker

Place = tuple[Worker, int]
"""A worker and the slot of one of its cores."""

Allocation = list[tuple[Worker, tuple[int, ...]]]
"""Workers and the slots on each: a part of a workflow for each of them."""

Who = TypeVar("Who")


def groups(wanted: Mapping[Who, Sequence[int]]) -> list[dict[Who, Sequence[int]]]:
    """Who has no core in common with another is a group of its own."""
    found: list[tuple[set[int], dict[Who, Sequence[int]]]] = []
    for who, cores in wanted.items():
        joined, members = set(cores), {who: cores}
        apart = []
        for known, others in found:
            if known & joined:
                joined, members = joined | known, others | members
            else:
                apart.append((known, others))
        found = [*apart, (joined, members)]
    return [members for _, members in found]


def allocate(
    draft: Draft, group: Mapping[Who, Sequence[int]], first_slot: int
) -> dict[Who, Allocation] | None:
    """Free cores for a group, with slots from `first_slot` on; None when there are too few."""
    cores = sorted({core for wanted in group.values() for core in wanted})
    chosen = draft.take(len(cores))
    if chosen is None:
        return None
    workers = [worker for worker, count in chosen for _ in range(count)]
    places = {
        core: (worker, first_slot + number)
        for number, (core, worker) in enumerate(zip(cores, workers, strict=True))
    }
    return {who: by_worker(places[core] for core in wanted) for who, wanted in group.items()}


def by_worker(places: Iterable[Place]) -> Allocation:
    found: dict[str, tuple[Worker, tuple[int, ...]]] = {}
    for worker, slot in places:
        _, slots = found.get(worker.name, (worker, ()))
        found[worker.name] = (worker, (*slots, slot))
    return list(found.values())

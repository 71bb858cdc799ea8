"""Which cores work for whom, and how many are free.

Cores are the admission control of a worker: a part gets all it asks for or nothing. Parts of one
job may share cores, which they name by slots; a shared one is in use until the last of them is
over. What is free can be read at any moment and never waits for anybody.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Generic, NamedTuple, TypeVar

from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.placement.provision import in_use

Owner = TypeVar("Owner")


class _Holding(NamedTuple):
    job: str
    slots: tuple[int, ...]
    done: int  # cores given back


class Cores(Generic[Owner]):
    def __init__(self, total: int) -> None:
        if total < 1:
            raise ValueError("a worker has at least one core")
        self.total = total
        self.free = total
        self._held: dict[Owner, _Holding] = {}
        self._unshared = 0

    def owners(self) -> list[Owner]:
        return list(self._held)

    def held_by(self, owner: Owner) -> tuple[int, ...]:
        holding = self._held.get(owner)
        return () if holding is None else holding.slots[: len(holding.slots) - holding.done]

    def unshared(self, count: int) -> tuple[int, ...]:
        """Slots that nobody else names, for a part that came without."""
        self._unshared -= count
        return tuple(range(self._unshared, self._unshared + count))

    def take(self, owner: Owner, job: str, slots: tuple[int, ...]) -> bool:
        """False, and nothing is taken, when there are too few."""
        if owner in self._held:
            raise ValueError(f"{owner} holds cores already")
        if not slots:
            raise ValueError("a part takes at least one core")
        self._held[owner] = _Holding(job, slots, 0)
        if self._in_use() > self.total:
            del self._held[owner]
            return False
        self._count()
        return True

    def release(self, owner: Owner, keep: int = 0) -> None:
        """All but `keep` of its cores; nothing when the owner holds no more than that, so that
        every way to an end may say it."""
        holding = self._held.pop(owner, None)
        if holding is None:
            return
        if keep:
            done = max(holding.done, len(holding.slots) - keep)
            self._held[owner] = holding._replace(done=done)
        self._count()

    def _count(self) -> None:
        self.free = self.total - self._in_use()
        invariant(0 <= self.free <= self.total, "no core is given twice")

    def _in_use(self) -> int:
        by_job: dict[str, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for job, slots, done in self._held.values():
            by_job[job].append((slots, done))
        return sum(map(in_use, by_job.values()))

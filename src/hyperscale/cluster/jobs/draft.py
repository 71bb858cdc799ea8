"""Which workers give how many free cores, as few of them as will do.

Work goes to those in good health first, and to the one with more free cores of two drawn at random.
"""

from __future__ import annotations

from collections.abc import Collection

from hyperscale.cluster.jobs.pool import Pool, Worker
from hyperscale.cluster.placement.choice import power_of_two

Chosen = list[tuple[Worker, int]]


class Draft:
    """Choices that belong together: the next one sees what the last one took."""

    def __init__(self, pool: Pool, now: float, excluded: Collection[str]) -> None:
        self._dice = pool.dice
        self._free: dict[str, int] = {}
        self._tiers: dict[int, list[str]] = {}
        self._workers = pool.workers
        for name in sorted(pool.workers):
            worker = pool.workers[name]
            tier = pool.rank(now, worker, excluded)
            free = pool.free(worker)
            if tier is not None and free > 0:
                self._free[name] = free
                self._tiers.setdefault(tier, []).append(name)

    @property
    def free(self) -> int:
        return sum(self._free.values())

    def take(self, cores: int) -> Chosen | None:
        """Workers with that many cores in all, as few of them as will do."""
        candidates: list[str] = []
        for tier in sorted(self._tiers):
            candidates += [name for name in self._tiers[tier] if self._free[name] > 0]
            if sum(self._free[name] for name in candidates) >= cores:
                break
        else:
            return None
        chosen: Chosen = []
        while cores > 0:
            enough = [name for name in candidates if self._free[name] >= cores]
            name = power_of_two(enough, lambda n: -self._free[n], self._dice)
            if name is None:
                most = max(self._free[n] for n in candidates)
                name = self._dice.choice([n for n in candidates if self._free[n] == most])
            taken = min(cores, self._free[name])
            self._free[name] -= taken
            cores -= taken
            candidates.remove(name)
            chosen.append((self._workers[name], taken))
        return chosen

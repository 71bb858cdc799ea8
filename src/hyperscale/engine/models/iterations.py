"""Closed models that end after a number of iterations, shared by the VUs or for each of them."""

from __future__ import annotations

from typing import TypeVar

from hyperscale.engine.pace import Pace
from hyperscale.engine.vu import VirtualUser
from hyperscale.workload.load import PerVUIterations, SharedIterations

L = TypeVar("L", SharedIterations, PerVUIterations)


class IterationsPace(Pace[L]):
    always_asks = True
    least_vus = 1  # nobody else has this core's iterations
    _done = 0

    def under_way(self) -> list[VirtualUser]:
        """Their iterations began in the warm-up and end after it, so they count: they are of the
        plan."""
        return [user for _, user in self.population.users() if user.working and not user.in_hook]

    def offered(self, idle_s: float) -> float:
        """Those that ended: one that was under way is made again where the load goes on."""
        done = len(self.recorder.iterations)
        self._done += done
        return done

    def waived(self) -> float:
        return max(0, self.load.planned_iterations - self._done)


class SharedIterationsPace(IterationsPace[SharedIterations]):
    _left: int | None = None  # None: not counting yet, this is the warm-up

    async def turn(self, user: VirtualUser) -> float | None:
        if self._left == 0:
            return None
        lateness = await super().turn(user)
        if lateness is None or self._left is None:
            return lateness
        if self._left == 0:  # taken by another VU while this one rested
            return None
        self._left -= 1
        return lateness

    async def drive(self) -> None:
        self._left = max(0, self.load.iterations - len(self.under_way()))
        self.resize(self.load.vus)
        await self.until_gone_or(self.load.max_duration_s)


class PerVUIterationsPace(IterationsPace[PerVUIterations]):
    def __post_init__(self) -> None:
        self._left: dict[VirtualUser, int] | None = None

    async def turn(self, user: VirtualUser) -> float | None:
        lateness = await super().turn(user)
        if lateness is None or self._left is None:
            return lateness
        left = self._left.get(user, self.load.iterations)
        if left == 0:
            del self._left[user]
            return None
        self._left[user] = left - 1
        return lateness

    async def drive(self) -> None:
        self._left = dict.fromkeys(self.under_way(), self.load.iterations - 1)
        self.resize(self.load.vus)
        await self.until_gone_or(self.load.max_duration_s)

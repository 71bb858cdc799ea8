"""Closed models that end after a number of iterations, shared by the VUs or for each of them."""

from __future__ import annotations

from hyperscale.engine.pace import Pace
from hyperscale.engine.vu import VirtualUser
from hyperscale.workload.load import PerVUIterations, SharedIterations


class SharedIterationsPace(Pace[SharedIterations]):
    always_asks = True
    least_vus = 1  # nobody else has this core's iterations
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
        self._left = self.load.iterations
        self.resize(self.load.vus)
        await self.until_gone_or(self.load.max_duration_s)


class PerVUIterationsPace(Pace[PerVUIterations]):
    always_asks = True
    least_vus = 1

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
        self._left = {}
        self.resize(self.load.vus)
        await self.until_gone_or(self.load.max_duration_s)

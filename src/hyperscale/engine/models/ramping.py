"""Closed model whose number of VUs follows straight lines between the stages' targets."""

from __future__ import annotations

from hyperscale.engine.clock import GLANCE_S
from hyperscale.engine.pace import Pace
from hyperscale.workload.load import RampingVUs


class RampingPace(Pace[RampingVUs]):
    _by_hand = 0  # VUs added while it runs, on top of the plan

    def scale(self, delta: int) -> None:
        self._by_hand += delta

    async def drive(self) -> None:
        seconds = self.load.planned_seconds
        elapsed = self.clock.elapsed()
        while elapsed < seconds:
            self.resize(max(0, self.load.vus_at(elapsed) + self._by_hand))
            if not await self.clock.reach(min(elapsed + GLANCE_S, seconds)):
                return
            elapsed = self.clock.elapsed()

"""Closed model: a fixed number of VUs, each starting over as soon as it is done."""

from __future__ import annotations

from hyperscale.engine.pace import Pace
from hyperscale.workload.load import ClosedVUs


class ClosedPace(Pace[ClosedVUs]):
    async def drive(self) -> None:
        self.resize(self.load.vus)
        await self.until_gone_or(self.load.duration_s)

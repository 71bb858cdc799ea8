"""The health of a worker, in one word for its managers, and whether it takes new parts.

A load generator saturates its cores by design, so a busy machine makes a worker less preferred,
never unwanted: cores are what admits work. A worker that became degraded must fall below a second,
lower limit to be healthy again, so the word does not flicker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hyperscale.nodes.protocol.parts import DrainOrder, WorkerState

# Percent of the machine: above the first it is degraded, below the second well again.
CPU_PERCENT: Final = (95.0, 80.0)
MEMORY_PERCENT: Final = (85.0, 80.0)
# Of membership's health score, 0 well to 8 worst.
HEALTH_SCORE: Final = (4, 2)


class WorkerHealth:
    def __init__(self) -> None:
        self._degraded = False

    def judge(
        self,
        *,
        registered: bool,
        draining: bool,
        cpu_percent: float,
        memory_percent: float,
        health_score: int,
    ) -> WorkerState:
        measures = (
            (cpu_percent, CPU_PERCENT),
            (memory_percent, MEMORY_PERCENT),
            (float(health_score), HEALTH_SCORE),
        )
        if self._degraded:
            self._degraded = any(value >= well for value, (_, well) in measures)
        else:
            self._degraded = any(value >= ill for value, (ill, _) in measures)
        if draining:
            return "draining"
        if not registered:
            return "registering"
        return "degraded" if self._degraded else "healthy"


@dataclass(slots=True)
class DrainState:
    """Whether a worker takes new parts: not while it leaves, and not while it is drained.

    Leaving is for good: SIGTERM was heard. Being drained is an administrator's word, and can be
    taken back. The worker itself remembers it and tells every leader, so it outlives any manager; a
    worker that is started again takes parts.
    """

    leaving: bool = False
    drained_by: str = ""

    @property
    def off(self) -> str:
        """Why it takes nothing new; empty when it does."""
        if self.leaving:
            return "this worker is leaving"
        return f"this worker is drained by {self.drained_by}" if self.drained_by else ""

    def obey(self, order: DrainOrder) -> None:
        self.drained_by = "" if order.undo else order.by or "an administrator"

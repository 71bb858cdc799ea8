"""How a worker feels, in one word for its managers (B-31, DECISIONS 17).

A load generator saturates its cores by design, so a busy machine makes a worker less preferred,
never unwanted: cores are what admits work. It takes less to get well than to stay well, so the
word does not flicker.
"""

from __future__ import annotations

from typing import Final

from hyperscale.nodes.protocol.parts import WorkerState

# Percent of the machine: above the first it is degraded, below the second well again (B-31).
CPU_PERCENT: Final = (95.0, 80.0)
MEMORY_PERCENT: Final = (85.0, 80.0)
# Of membership's health score, 0 well to 8 worst (B-31: HEALTHY below 4).
HEALTH_SCORE: Final = (4, 2)


class Condition:
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

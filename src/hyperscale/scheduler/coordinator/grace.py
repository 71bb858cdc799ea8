"""How long a leader takes nothing away: after its takeover, after the store was away, and after its
clock was set, for leases are judged by that clock (T-15). Pure.
"""

from __future__ import annotations

from typing import Final

from hyperscale.scheduler.model.instants import SECOND, Instant

STEP_S: Final = 2.0
"""A difference between the two clocks that no drift explains between two looks."""


class Grace:
    def __init__(self, grace_s: float, now: Instant, steady_s: float) -> None:
        self._grace_s = grace_s
        self._since_s = steady_s
        self._seen = (now, steady_s)

    def begin(self, steady_s: float) -> None:
        self._since_s = steady_s

    def over(self, steady_s: float) -> bool:
        return steady_s - self._since_s >= self._grace_s

    def look(self, now: Instant, steady_s: float) -> float:
        """By how many seconds the clock was set since the last look; 0: it was not."""
        wall, steady = self._seen
        self._seen = (now, steady_s)
        step_s = (now - wall) / SECOND - (steady_s - steady)
        if abs(step_s) < STEP_S:
            return 0.0
        self.begin(steady_s)
        return step_s

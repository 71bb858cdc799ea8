"""How many jobs to claim at once. Pure.

One per free slot, so that work spreads over the workers (S-67). Only when jobs have proved to be
very short a worker takes more than it can run, because each claim costs a durable write: as much as
it finishes in `AHEAD_S`. A slot that is at one job for longer finishes nothing and does not count.
"""

from __future__ import annotations

from typing import Final

AHEAD_S: Final = 0.1
SHORT_S: Final = 0.02
CLAIM_MAX: Final = 500
WEIGHT: Final = 0.1
"""Of the newest job in the running mean: one long job ends the prefetch for some twenty."""


class Appetite:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._mean_s: float | None = None

    def ran(self, seconds: float) -> None:
        known = self._mean_s
        self._mean_s = seconds if known is None else known + WEIGHT * (seconds - known)

    def wanted(self, held: int, quick: int) -> int:
        """`held` jobs run or wait for a slot here; `quick` slots are not at a slow one."""
        target = self._slots + self._ahead(quick)
        if held >= self._slots and held > target // 2:
            return 0
        return max(0, min(CLAIM_MAX, target - held))

    def _ahead(self, quick: int) -> int:
        if self._mean_s is None or self._mean_s > SHORT_S:
            return 0
        return min(CLAIM_MAX, int(quick * AHEAD_S / max(self._mean_s, 1e-6)))

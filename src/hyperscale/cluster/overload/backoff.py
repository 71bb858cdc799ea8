"""How long to wait before trying again: doubled each time, up to a limit.

A caller waits between half of that and all of it. Callers that were refused together would
otherwise return together; one that came back at once would meet the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DOUBLINGS_MAX = 32  # beyond any cap; keeps the power finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    base_delay_s: float = 0.5
    delay_max_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.base_delay_s <= self.delay_max_s:
            raise ValueError("base_delay_s must be positive and at most delay_max_s")

    def delay_s(self, tries: int, dice: Random) -> float:
        """Before the next try, after so many that failed before the last one."""
        most_s = min(self.base_delay_s * 2.0 ** min(tries, DOUBLINGS_MAX), self.delay_max_s)
        return most_s / 2 + dice.uniform(0.0, most_s / 2)

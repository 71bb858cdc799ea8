"""How long to wait before trying again: doubled each time, up to a limit.

A caller waits between half of that and all of it. Callers that were refused together would
otherwise return together; one that came back at once would meet the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

GROWTHS_MAX = 64  # beyond any cap; keeps the power finite


def grown_s(first_s: float, times: int, longest_s: float, growth: float = 2.0) -> float:
    """A pause that has grown so many times."""
    return min(first_s * growth ** min(times, GROWTHS_MAX), longest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    base_delay_s: float = 0.5
    delay_max_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.base_delay_s <= self.delay_max_s:
            raise ValueError("base_delay_s must be positive and at most delay_max_s")

    def delay_s(self, tries: int, dice: Random) -> float:
        """Before the next try, after so many that failed before the last one."""
        most_s = grown_s(self.base_delay_s, tries, self.delay_max_s)
        return most_s / 2 + dice.uniform(0.0, most_s / 2)

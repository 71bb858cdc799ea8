"""How long to wait before trying again: doubled each time, up to a limit.

Whoever waits draws from zero up to that, or all who were refused together would return together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DOUBLINGS_MAX = 32  # beyond any cap; keeps the power finite


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    base_delay_s: float = 0.5
    delay_max_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.base_delay_s <= self.delay_max_s:
            raise ValueError("base_delay_s must be positive and at most delay_max_s")


REGISTRATION: Final = RetryPolicy(base_delay_s=0.5)

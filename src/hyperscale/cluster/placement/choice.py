"""Choosing among peers: power of two choices, and a moving mean of what is known.

Two candidates at random and the less loaded of them is nearly as even as knowing all loads, and
unlike "the least loaded" it does not send everybody to the same peer when reports are late. The
dice are the host's, not those of a cipher: nobody gains by guessing them, and the simulator replays
them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence


def power_of_two(
    candidates: Sequence[str], load: Callable[[str], float], dice: random.Random
) -> str | None:
    """None without candidates. Equal loads: the first one drawn, which is random."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    first, second = dice.sample(candidates, 2)
    return second if load(second) < load(first) else first


class Ewma:
    """Exponentially weighted mean; the first sample stands for itself."""

    __slots__ = ("_alpha", "samples", "value")

    def __init__(self, alpha: float = 0.2) -> None:
        if not 0 < alpha <= 1:
            raise ValueError("alpha must be in (0, 1]")
        self._alpha = alpha
        self.value = 0.0
        self.samples = 0

    def add(self, sample: float) -> float:
        self.samples += 1
        alpha = self._alpha if self.samples > 1 else 1.0
        self.value += alpha * (sample - self.value)
        return self.value

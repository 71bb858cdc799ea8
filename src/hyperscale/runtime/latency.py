"""How long something took, counted in fixed steps, as Prometheus wants its histograms.

A few additions for each measurement and a few dozen bytes in all: cheap enough for every record.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

# Seconds: from a write to memory up to where callers give up.
BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Latency:
    __slots__ = ("_counts", "count", "sum_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.count = 0
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.count += 1
        self.sum_s += seconds

    def up_to(self) -> list[tuple[float, int]]:
        """How many took at most so many seconds."""
        found, total = [], 0
        for bound, count in zip(BOUNDS_S, self._counts, strict=False):
            total += count
            found.append((bound, total))
        return found

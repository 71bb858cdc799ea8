"""The clock of a load: seconds of load, standing still while the run is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

# How often a waiting model looks up: bounds how late it notices pause, resume and stop.
GLANCE_S = 0.05


class LoadClock:
    def __init__(self) -> None:
        self._origin = perf_counter()
        self._paused_at: float | None = None
        self.began_s = 0.0
        self.stopped = False

    @property
    def paused(self) -> bool:
        return self._paused_at is not None

    def restart(self, at_s: float = 0.0) -> None:
        """Load time begins now, at this reading."""
        now = perf_counter()
        self._origin = now - at_s
        self.began_s = at_s
        if self._paused_at is not None:
            self._paused_at = now

    def elapsed(self) -> float:
        return (self._paused_at or perf_counter()) - self._origin

    def instant(self, elapsed_s: float) -> float:
        """The `perf_counter` reading at which this much load time has passed."""
        return self._origin + elapsed_s

    def pause(self) -> None:
        if self._paused_at is None:
            self._paused_at = perf_counter()

    def resume(self) -> None:
        if self._paused_at is not None:
            self._origin += perf_counter() - self._paused_at
            self._paused_at = None

    async def reach(
        self, elapsed_s: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> bool:
        """Wait until that much load time has passed; False when the load was stopped before."""
        while not self.stopped:
            left = elapsed_s - self.elapsed()
            if left <= 0:
                return True
            await sleep(min(left, GLANCE_S))
        return False

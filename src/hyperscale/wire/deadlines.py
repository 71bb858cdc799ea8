"""Many deadlines, one timer.

Most deadlines are forgotten long before they come. So the timer stands at the earliest one ever
asked for since it last fired, and looks at what is left only when it fires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadlines:
    def __init__(self, expired: Callable[[int], None]) -> None:
        self._expired = expired
        self._due: dict[int, float] = {}
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: int, seconds: float) -> None:
        due = self._due[key] = self._loop.time() + seconds
        if due < self._timer_at:
            self._set_timer(due)

    def remaining_s(self, key: int) -> float:
        return self._due[key] - self._loop.time()

    def forget(self, key: int) -> None:
        self._due.pop(key, None)

    def close(self) -> None:
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        now = self._loop.time()
        for key in [key for key, due in self._due.items() if due <= now]:
            if self._due.pop(key, None) is not None:
                self._expired(key)
        if self._due:
            self._set_timer(min(self._timer_at, min(self._due.values())))

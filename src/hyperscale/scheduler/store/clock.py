"""One clock for everybody on a store: that of the database, where they may be on several machines.

Who may start, when a lease ends and what is due is decided by comparing instants that different
processes wrote. So a process whose own clock is a minute off must not write what that shows. It
asks the database now and then, and counts on between on its own steady clock, which nobody sets.
"""

from __future__ import annotations

import asyncio
from typing import Final

from hyperscale.runtime.host import Clock
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.instants import SECOND, Instant, instants_of
from hyperscale.scheduler.store.store import Store

LOOK_S: Final = 15.0
"""A steady clock drifts by less than 2 ms in that time (100 ppm)."""
TRIP_S_MAX: Final = 0.5
"""An answer is wrong by half its trip at most; a slower one is not worth more than the last."""


class StoreClock:
    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._own = instants_of(clock)
        self._store = store
        self._ahead: Instant | None = None
        """Of the steady clock; None: the store has no clock of its own."""

    def __call__(self) -> Instant:
        return self._own() if self._ahead is None else self._steady() + self._ahead

    def _steady(self) -> Instant:
        return round(self._clock.now() * SECOND)

    async def look(self) -> None:
        """Raises StoreUnavailable."""
        asked = self._steady()
        told = await self._store.time()
        trip = self._steady() - asked
        if told is not None and (self._ahead is None or trip < TRIP_S_MAX * SECOND):
            self._ahead = told - asked - trip // 2

    async def follow(self) -> None:
        """For ever; while the store is away the steady clock counts on."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except StoreUnavailable:
                continue

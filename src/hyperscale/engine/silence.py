"""Why nothing moves for a while, when a test is as it should be.

Most loads move all the time. One that does not may be in a phase that lasts so long (waiting for
its start, warming up, draining), or its users wait for what has a time: an answer within the call's
timeout, the next arrival, their turn at a limited rate, the end of a sleep. Looked into only when
nothing has moved for a second: a load that moves pays nothing for it.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final

from hyperscale.metrics.delta import movement
from hyperscale.workload.load import longest_s

if TYPE_CHECKING:
    from hyperscale.clients import ClientPool
    from hyperscale.engine.pace import Pace
    from hyperscale.metrics.delta import Delta

QUIET_S: Final = 1.0
# A loop that looks every few seconds whether something has come about goes on for ever if it never
# does: only a longer sleep is taken for a wait that the author wants.
SLEEP_S_MIN: Final = 10.0
_SLEEP: Final = asyncio.sleep.__code__


class Silence:
    def __init__(self, pace: Pace[Any], pool: ClientPool) -> None:
        self._pace = pace
        self._pool = pool
        load = pace.load
        self._end_s = longest_s(load) - load.start_time_s - load.warmup_s
        self._looked_at = 0.0
        self.phase_ends_s: float | None = 0.0
        """Load time at which the present phase is over; None: the load runs as planned."""

    def told(self, now: float, delta: Delta | None) -> float | None:
        """Nothing moves, as planned, for so long; None: something did, or nobody knows why not,
        or it was said just now."""
        if delta is not None and movement(delta):
            self._looked_at = now
        elif now >= self._looked_at + QUIET_S:
            self._looked_at = now
            quiet_s = self._quiet_s(now)
            return quiet_s if 0.0 < quiet_s < math.inf else None
        return None

    def _quiet_s(self, now: float) -> float:
        """Until the phase is over, or the first of those that wait goes on."""
        pace = self._pace
        if self.phase_ends_s is not None:
            return self.phase_ends_s - pace.clock.elapsed()
        return min(self._pool.moves_by(now), pace.starts_by(now), self._wakes_at(now)) - now

    def _wakes_at(self, now: float) -> float:
        """When the first user that sleeps goes on. A sleep within an iteration that outlasts the
        load leads nowhere."""
        since = now - asyncio.get_running_loop().time()
        end = self._pace.clock.instant(self._end_s)
        first = math.inf
        for task, user in self._pace.population.users():
            timer = _sleep_of(task.get_coro())
            if timer is not None and (since + timer.when() < end or not user.working):
                first = min(first, since + timer.when())
        return first


def _sleep_of(coroutine: Any) -> asyncio.TimerHandle | None:
    """What a task waits for, followed to its innermost; another task that it waits for is not
    looked into."""
    while coroutine is not None:
        if getattr(coroutine, "cr_code", None) is _SLEEP:
            known = coroutine.cr_frame.f_locals
            timer: asyncio.TimerHandle | None = known.get("h")
            return timer if known["delay"] >= SLEEP_S_MIN else None
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return None

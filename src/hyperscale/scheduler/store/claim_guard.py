"""Who may be given a job: nobody during an emergency stop, no worker that is suspect, drains or has
left.

It stands inside `Store.claim`, for the scheduler's own workers and for the API's alike. What a
store hears from workers passes through it too, so that it rarely has to ask about one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.store.types import Value
from hyperscale.scheduler.worker.registration import Worker, may_claim

EMERGENCY_KEY: Final = "emergency-stop"
LOOK_S: Final = 0.5
"""So old may be what a process knows of the stop: a claim need not ask each time."""
WORKERS_MAX: Final = 10_000
"""Known here; the one heard longest ago makes room. It is then looked up again."""


class Emergency(msgspec.Struct, frozen=True, kw_only=True):
    """The emergency stop: while it is on, nobody gets a job and no tick fires. One value in the
    store, so it outlives every process."""

    since: Instant
    actor: str
    reason: str = ""
    cancel_running: bool = False
    """What is claimed is cancelled too, and what runs is asked to stop."""


def emergency_of(value: Value | None) -> Emergency | None:
    return None if value is None else msgspec.json.decode(value.data, type=Emergency)


class ClaimGuard:
    def __init__(
        self,
        suspect_after_s: float,
        value: Callable[[str], Awaitable[Value | None]],
        worker: Callable[[str], Awaitable[Worker | None]],
    ) -> None:
        """`value` and `worker` ask the store."""
        self._suspect_after_s = suspect_after_s
        self._value = value
        self._worker = worker
        self._emergency: Emergency | None = None
        self._looked_at: Instant | None = None
        self._workers: dict[str, Worker] = {}

    async def emergency(self, now: Instant) -> Emergency | None:
        looked_at = self._looked_at
        if looked_at is None or not 0 <= now - looked_at < LOOK_S * SECOND:
            self._emergency = emergency_of(await self._value(EMERGENCY_KEY))
            self._looked_at = now
        return self._emergency

    def changed(self, key: str) -> None:
        """A value of the store was changed here: what is known of the stop may be old."""
        if key == EMERGENCY_KEY:
            self._looked_at = None

    def heard(self, worker: Worker) -> Worker:
        self._workers.pop(worker.id, None)
        self._workers[worker.id] = worker
        if len(self._workers) > WORKERS_MAX:
            del self._workers[next(iter(self._workers))]
        return worker

    async def admits(self, worker_id: str, now: Instant) -> bool:
        if await self.emergency(now) is not None:
            return False
        known = self._workers.get(worker_id)
        if known is not None and may_claim(known, now, self._suspect_after_s):
            return True
        # Another process may have heard it, or a person may have changed it.
        stored = await self._worker(worker_id)
        # One that never registered has no heartbeat that could be late.
        return stored is None or may_claim(self.heard(stored), now, self._suspect_after_s)

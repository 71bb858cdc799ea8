"""A store that gives no job to whom it should not: nobody during an emergency stop, no worker that
is suspect, drains or has left.

It stands before the store for the scheduler's own workers and for the API's alike. Heartbeats
pass through it too, so that it rarely has to ask the store about a worker.
"""

from __future__ import annotations

from typing import Any, Final, cast

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.emergency_stop import KEY, Lookout
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.store.types import Claim, Store, Value
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, may_claim

WORKERS_MAX: Final = 10_000
"""Known here; the one heard longest ago makes room. It is then looked up again."""


def guarded(store: Store, suspect_after_s: float) -> Store:
    return cast("Store", _Guarded(store, suspect_after_s))


class _Guarded:
    def __init__(self, store: Store, suspect_after_s: float) -> None:
        self._store = store
        self._suspect_after_s = suspect_after_s
        self._lookout = Lookout(store)
        self._workers: dict[str, Worker] = {}

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._store, name)
        setattr(self, name, given)  # the next call finds it without coming here
        return given

    async def claim(self, claim: Claim, now: Instant) -> list[Job]:
        if await self._lookout.emergency(now) is not None:
            return []
        if not await self._in_good_standing(claim.worker, now):
            return []
        return await self._store.claim(claim, now)

    async def register(self, worker: Worker, now: Instant, alive_for_s: float) -> Worker:
        return self._heard(await self._store.register(worker, now, alive_for_s))

    async def beat(self, beat: WorkerBeat, now: Instant) -> Worker:
        return self._heard(await self._store.beat(beat, now))

    async def put(self, key: str, data: bytes, version: int) -> Value:
        value = await self._store.put(key, data, version)
        if key == KEY:
            self._lookout.forget()
        return value

    async def delete(self, key: str, version: int) -> None:
        await self._store.delete(key, version)
        if key == KEY:
            self._lookout.forget()

    def _heard(self, worker: Worker) -> Worker:
        self._workers.pop(worker.id, None)
        self._workers[worker.id] = worker
        if len(self._workers) > WORKERS_MAX:
            del self._workers[next(iter(self._workers))]
        return worker

    async def _in_good_standing(self, worker_id: str, now: Instant) -> bool:
        known = self._workers.get(worker_id)
        if known is None or not may_claim(known, now, self._suspect_after_s):
            # Another process may have heard it, or a person may have changed it.
            known = await self._stored(worker_id)
        return known is None or may_claim(known, now, self._suspect_after_s)

    async def _stored(self, worker_id: str) -> Worker | None:
        """None: never registered, so no heartbeat of it can be late."""
        behind = worker_id[:-1] + chr(ord(worker_id[-1]) - 1) + "~"  # no id lies between
        found = await self._store.workers(behind, 1)
        return self._heard(found[0]) if found and found[0].id == worker_id else None

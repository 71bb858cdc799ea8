"""The emergency stop: while it is on, nobody gets a job and no tick fires (S-96).

The emergency stop as one value in the store: it outlives every process, and each looks it up.

Whoever claims at the very moment of the stop may still get a job, as if it had come just before.
With `cancel_running` the leader cancels that one with its next sweep.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from hyperscale.scheduler.errors import (
    IllegalTransition,
    InvalidJob,
    NotFound,
    StoreUnavailable,
    VersionConflict,
)
from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue.job import HELD, Job
from hyperscale.scheduler.store.types import PAGE_MAX, JobFilter, Store, Value

REASON_CHARS_MAX: Final = 500


class Emergency(msgspec.Struct, frozen=True, kw_only=True):
    since: Instant
    actor: str
    reason: str = ""
    cancel_running: bool = False
    """What is claimed is cancelled too, and what runs is asked to stop."""


KEY: Final = "emergency-stop"
LOOK_S: Final = 0.5
"""So old may be what a process knows of it: a claim need not ask the store each time."""
CONFLICTS_MAX: Final = 16
PAGES_MAX: Final = 1000


async def current(store: Store) -> Emergency | None:
    return _decoded(await store.get(KEY))


async def stop(
    store: Store, actor: str, reason: str, cancel_running: bool, now: Instant
) -> Emergency:
    """Repeatable: the first one's words stay. A later one may add `cancel_running`."""
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidJob(f"the reason has {len(reason)} characters", f"at most {REASON_CHARS_MAX}")
    for _ in range(CONFLICTS_MAX):
        value = await store.get(KEY)
        known = _decoded(value)
        wanted = known or Emergency(
            since=now, actor=actor, reason=reason, cancel_running=cancel_running
        )
        wanted = replace(wanted, cancel_running=wanted.cancel_running or cancel_running)
        if wanted == known:
            return wanted
        try:
            await store.put(KEY, msgspec.json.encode(wanted), 0 if value is None else value.version)
        except VersionConflict:
            continue
        return wanted
    raise StoreUnavailable("too many change the emergency stop at once", "try again")


async def resume(store: Store) -> Emergency | None:
    """What has ended now; None when nothing was stopped."""
    for _ in range(CONFLICTS_MAX):
        value = await store.get(KEY)
        if value is None:
            return None
        try:
            await store.delete(KEY, value.version)
        except VersionConflict:
            continue
        return _decoded(value)
    raise StoreUnavailable("too many change the emergency stop at once", "try again")


async def cancel_held(store: Store, now: Instant) -> int:
    """While the stop says so. It is asked after the jobs were listed: one that was claimed after a
    resumption is not among them."""
    count = 0
    for state in sorted(HELD):
        cursor = ""
        for _ in range(PAGES_MAX):
            page = await store.jobs(JobFilter(state=state), cursor, PAGE_MAX)
            held = [job for job in page.jobs if not job.cancel_requested]
            if held:
                emergency = await current(store)
                if emergency is None or not emergency.cancel_running:
                    return count
                done = await asyncio.gather(*(_cancel(store, job, now) for job in held))
                count += sum(done)
            cursor = page.cursor
            if not cursor:
                break
    return count


async def _cancel(store: Store, job: Job, now: Instant) -> bool:
    try:
        await store.cancel(job.id, now)
    except (IllegalTransition, NotFound):
        return False  # it has ended meanwhile
    return True


def _decoded(value: Value | None) -> Emergency | None:
    return None if value is None else msgspec.json.decode(value.data, type=Emergency)


class Lookout:
    """What one process knows of the stop, at most LOOK_S old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Emergency | None = None
        self._looked_at: Instant | None = None

    async def emergency(self, now: Instant) -> Emergency | None:
        looked_at = self._looked_at
        if looked_at is None or not 0 <= now - looked_at < LOOK_S * SECOND:
            self._known = await current(self._store)
            self._looked_at = now
        return self._known

    def forget(self) -> None:
        self._looked_at = None

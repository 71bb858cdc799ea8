"""Stopping everything in an emergency, and going on: while the stop is on, nobody gets a job
(`store.claim_guard`) and no tick fires.

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
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import HELD, Job
from hyperscale.scheduler.store.claim_guard import EMERGENCY_KEY, Emergency, emergency_of
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import PAGE_MAX, JobFilter

REASON_CHARS_MAX: Final = 500
CONFLICTS_MAX: Final = 16
PAGES_MAX: Final = 1000


async def current(store: Store) -> Emergency | None:
    return emergency_of(await store.get(EMERGENCY_KEY))


async def stop(
    store: Store, actor: str, reason: str, cancel_running: bool, now: Instant
) -> Emergency:
    """Repeatable: the first one's words stay. A later one may add `cancel_running`."""
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidJob(f"the reason has {len(reason)} characters", f"at most {REASON_CHARS_MAX}")
    for _ in range(CONFLICTS_MAX):
        value = await store.get(EMERGENCY_KEY)
        known = emergency_of(value)
        wanted = known or Emergency(
            since=now, actor=actor, reason=reason, cancel_running=cancel_running
        )
        wanted = replace(wanted, cancel_running=wanted.cancel_running or cancel_running)
        if wanted == known:
            return wanted
        try:
            await store.put(
                EMERGENCY_KEY, msgspec.json.encode(wanted), 0 if value is None else value.version
            )
        except VersionConflict:
            continue
        return wanted
    raise StoreUnavailable("too many change the emergency stop at once", "try again")


async def resume(store: Store) -> Emergency | None:
    """What has ended now; None when nothing was stopped."""
    for _ in range(CONFLICTS_MAX):
        value = await store.get(EMERGENCY_KEY)
        if value is None:
            return None
        try:
            await store.delete(EMERGENCY_KEY, value.version)
        except VersionConflict:
            continue
        return emergency_of(value)
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

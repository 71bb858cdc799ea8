"""Changes to schedules that need their ticks: where the next one is, and which ones a pause or an
edit let go. Any coordinator may do them, for the store's version check decides between two; its
check of the cursor decides between them and whoever fires ticks meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.errors import NotFound, SchedulerError, VersionConflict
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.schedules.firing import aside
from hyperscale.scheduler.schedules.schedule import (
    Fired,
    Firing,
    Overlap,
    Schedule,
    ScheduleDefinition,
    check_definition,
    check_schedule_id,
)
from hyperscale.scheduler.schedules.ticks import (
    Ticks,
    check_zone,
    count_between,
    first_cursor,
    next_tick,
    ticks_of,
)
from hyperscale.scheduler.schedules.ticks import backfill as backfill_ticks
from hyperscale.scheduler.store.store import Store

CONFLICTS_MAX: Final = 16


async def add(
    store: Store, schedule_id: str, definition: ScheduleDefinition, now: Instant
) -> Schedule:
    check_schedule_id(schedule_id)
    ticks = _checked(definition)
    cursor = first_cursor(definition, now)
    next_at = None if definition.paused else next_tick(definition, ticks, cursor)
    schedule = Schedule(
        id=schedule_id,
        definition=definition,
        created_at=now,
        updated_at=now,
        cursor=cursor,
        next_at=next_at,
    )
    return await store.create_schedule(schedule)


async def change(
    store: Store, schedule_id: str, version: int, definition: ScheduleDefinition, now: Instant
) -> Schedule:
    """The new definition counts from now on. Ticks of the old one up to now that were not decided
    are counted as skipped; into a pause they are kept until it ends."""
    for _ in range(CONFLICTS_MAX):
        known = await _existing(store, schedule_id)
        ticks = _checked(definition)
        if known.version != version:
            break
        try:
            return await _change(store, known, definition, ticks, now)
        except VersionConflict:
            continue  # a tick was fired meanwhile, or it was edited: the next look tells
    raise VersionConflict("schedule", schedule_id)


def _checked(definition: ScheduleDefinition) -> Ticks:
    ticks = ticks_of(check_definition(definition))
    check_zone(definition)
    return ticks


async def _let_go(known: Schedule, now: Instant) -> int:
    """Counted beside the loop: of a long pause there are thousands."""
    was = known.definition
    try:
        return await asyncio.to_thread(count_between, was, ticks_of(was), known.cursor, now)
    except HyperscaleError:  # its zone is gone: nobody can tell, and this edit may bring it back
        return 0


async def _change(
    store: Store, known: Schedule, definition: ScheduleDefinition, ticks: Ticks, now: Instant
) -> Schedule:
    if definition.paused:
        return await store.update_schedule(known.id, known.version, definition, now, next_at=None)
    was = known.definition
    cursor = max(known.cursor, first_cursor(definition, now))
    next_at = next_tick(definition, ticks, cursor)
    skipped = 0
    if next_at is None or next_at != was.run_at:  # else that one is still to come, though gone by
        skipped = await _let_go(known, now)
    return await store.update_schedule(
        known.id, known.version, definition, now, next_at, cursor, skipped, before=known.cursor
    )


async def set_paused(store: Store, schedule_id: str, paused: bool, now: Instant) -> Schedule:
    known = await _existing(store, schedule_id)
    if known.definition.paused == paused:
        return known
    definition = replace(known.definition, paused=paused)
    return await change(store, schedule_id, known.version, definition, now)


async def trigger(store: Store, schedule_id: str, now: Instant) -> Fired:
    known = await _existing(store, schedule_id)
    return await _fire(store, aside(known, [now], now, Overlap.ALLOW), now)


async def backfill(
    store: Store, schedule_id: str, start: Instant, end: Instant, now: Instant
) -> Fired:
    """Under the schedule's own overlap policy; a tick that exists already is not made again."""
    known = await _existing(store, schedule_id)
    ticks = backfill_ticks(known.definition, ticks_of(known.definition), start, end)
    return await _fire(store, aside(known, ticks, now), now)


async def _fire(store: Store, firing: Firing, now: Instant) -> Fired:
    (outcome,) = await store.fire([firing], now)
    if isinstance(outcome, SchedulerError):
        raise outcome
    return outcome


async def _existing(store: Store, schedule_id: str) -> Schedule:
    known = await store.schedule(schedule_id)
    if known is None:
        raise NotFound("schedule", schedule_id)
    return known

"""Changes to schedules that need their ticks: where the next one is, and which ones a pause or an
edit let go. Any coordinator may do them, for the store's version check decides between two.
"""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.scheduler.coordinator.timetable import ticks_of
from hyperscale.scheduler.model.errors import NotFound, SchedulerError
from hyperscale.scheduler.model.firing import Fired, Firing
from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.schedule import (
    Overlap,
    Schedule,
    ScheduleDefinition,
    check_definition,
    check_schedule_id,
)
from hyperscale.scheduler.policies.firings import aside
from hyperscale.scheduler.policies.ticks import (
    backfill as backfill_ticks,
)
from hyperscale.scheduler.policies.ticks import count_between, first_cursor, next_tick
from hyperscale.scheduler.stores.contract import Store


async def add(
    store: Store, schedule_id: str, definition: ScheduleDefinition, now: Instant
) -> Schedule:
    check_schedule_id(schedule_id)
    ticks = ticks_of(check_definition(definition))
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
    known = await _existing(store, schedule_id)
    ticks = ticks_of(check_definition(definition))
    was = known.definition
    if definition.paused:
        return await store.update_schedule(schedule_id, version, definition, now, next_at=None)
    cursor = max(known.cursor, first_cursor(definition, now))
    return await store.update_schedule(
        schedule_id,
        version,
        definition,
        now,
        next_tick(definition, ticks, cursor),
        cursor,
        count_between(was, ticks_of(was), known.cursor, now),
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

"""Operations on schedules: edited under a version, fired under cursor and epoch.

What a tick does when earlier instances have not ended is judged here, inside the store's atomic
step, so two coordinators cannot both see "nothing runs".
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from hyperscale.scheduler.errors import AlreadyExists, NotFound, StoreFull, VersionConflict
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.lifecycle import cancelled
from hyperscale.scheduler.queue.operations import (
    count_waiting,
    fence,
    put_waiting,
    require_room,
    write_step,
)
from hyperscale.scheduler.schedules.schedule import (
    Fired,
    Firing,
    Overlap,
    Schedule,
    ScheduleDefinition,
)
from hyperscale.scheduler.store.tables import SCHEDULES, Records
from hyperscale.scheduler.store.types import StoreLimits


class Entry(NamedTuple):
    insert: bool
    waiting: bool = False
    cancel_others: bool = False


def decide_entry(policy: Overlap, live: int, waiting: int, line_max: int) -> Entry:
    """`live` instances have not ended, `waiting` of them wait for the others."""
    if policy is Overlap.ALLOW or live == 0:
        return Entry(insert=True)
    if policy is Overlap.SKIP:
        return Entry(insert=False)
    if policy is Overlap.CANCEL_PREVIOUS:
        # Those who wait are cancelled at once, so the line never grows beyond one.
        return Entry(insert=True, waiting=True, cancel_others=True)
    if waiting >= line_max:
        return Entry(insert=False)
    return Entry(insert=True, waiting=True)


def create(records: Records, schedule: Schedule, limits: StoreLimits) -> Schedule:
    known = records.get(SCHEDULES, schedule.id)
    if known is not None:
        if (known.definition, known.created_at) == (schedule.definition, schedule.created_at):
            return known
        raise AlreadyExists("schedule", schedule.id)
    if records.count(SCHEDULES) >= limits.schedules_max:
        raise StoreFull("schedules", limits.schedules_max)
    records.put(SCHEDULES, schedule.id, schedule)
    return schedule


def update(
    records: Records,
    schedule_id: str,
    version: int,
    definition: ScheduleDefinition,
    now: Instant,
    next_at: Instant | None,
    cursor: Instant | None,
    skipped: int,
    before: Instant | None,
) -> Schedule:
    known = _existing(records, schedule_id, version)
    if before is not None and before != known.cursor:
        raise VersionConflict("schedule", schedule_id)
    schedule = replace(
        known,
        definition=definition,
        version=version + 1,
        updated_at=now,
        next_at=next_at,
        cursor=known.cursor if cursor is None else max(known.cursor, cursor),
        skipped=known.skipped + skipped,
    )
    records.put(SCHEDULES, schedule_id, schedule)
    return schedule


def delete(records: Records, schedule_id: str, version: int | None) -> Schedule:
    known = _existing(records, schedule_id, version)
    records.drop(SCHEDULES, schedule_id)
    return known


def fire(records: Records, firing: Firing, now: Instant, epoch: int, limits: StoreLimits) -> Fired:
    fence(records, epoch)
    schedule = _existing(records, firing.schedule_id, firing.version)
    if firing.advance is not None and firing.advance.before != schedule.cursor:
        raise VersionConflict("schedule", schedule.id)
    records.expect([job.id for job in firing.jobs])
    require_room(records, len(firing.jobs), limits)
    entries = _Entries(records, schedule, firing.overlap, now, limits)
    for job in firing.jobs:
        entries.enter(job)
    entries.close()
    fired = _counted(schedule, firing, entries)
    records.put(SCHEDULES, schedule.id, fired)
    return Fired(
        schedule=fired,
        jobs=tuple(entries.inserted),
        existing=entries.existing,
        skipped=entries.skipped,
        cancelled=tuple(entries.cancelled),
    )


def _existing(records: Records, schedule_id: str, version: int | None) -> Schedule:
    known = records.get(SCHEDULES, schedule_id)
    if known is None:
        raise NotFound("schedule", schedule_id)
    if version is not None and version != known.version:
        raise VersionConflict("schedule", schedule_id)
    return known


def _counted(schedule: Schedule, firing: Firing, entries: _Entries) -> Schedule:
    last = entries.inserted[-1] if entries.inserted else None
    advance = firing.advance
    return replace(
        schedule,
        fired=schedule.fired + len(entries.inserted),
        missed=schedule.missed + firing.missed,
        skipped=schedule.skipped + entries.skipped,
        last_tick=schedule.last_tick if last is None else last.tick,
        last_job_id=schedule.last_job_id if last is None else last.id,
        cursor=schedule.cursor if advance is None else advance.cursor,
        next_at=schedule.next_at if advance is None else advance.next_at,
    )


class _Entries:
    """Instances entering the line of their schedule, one after another, in one step."""

    def __init__(
        self,
        records: Records,
        schedule: Schedule,
        overlap: Overlap | None,
        now: Instant,
        limits: StoreLimits,
    ) -> None:
        self._records = records
        self._schedule_id = schedule.id
        self._overlap = schedule.definition.overlap if overlap is None else overlap
        self._now = now
        self._limits = limits
        self._waiting_before = 0
        self._live: list[Job] = []
        if self._overlap is not Overlap.ALLOW:  # which nobody waits for, and which waits for nobody
            self._waiting_before = count_waiting(records, schedule.id)
            self._live = records.live(schedule.id)
        self._waiting = self._waiting_before
        self.inserted: list[Job] = []
        self.cancelled: list[str] = []
        self.existing = 0
        self.skipped = 0

    def enter(self, job: Job) -> None:
        if self._records.job(job.id) is not None:
            self.existing += 1
            return
        live, waiting = len(self._live), self._waiting
        entry = decide_entry(self._overlap, live, waiting, self._limits.line_max)
        if not entry.insert:
            self.skipped += 1
            return
        if entry.cancel_others:
            self._cancel_live()
        if entry.waiting and self._live:
            job = replace(job, waiting=True)
            self._waiting += 1
        self._records.put_job(None, job, self._now)
        self._live.append(job)
        self.inserted.append(job)

    def close(self) -> None:
        put_waiting(self._records, self._schedule_id, self._waiting_before, self._waiting)

    def _cancel_live(self) -> None:
        left: list[Job] = []
        for job in self._live:
            if job.cancel_requested:
                left.append(job)
                continue
            step = cancelled(job, self._now)
            write_step(self._records, job, step, self._now)
            self._waiting -= job.waiting
            self.cancelled.append(job.id)
            if not step.job.ended:
                left.append(step.job)
        self._live = left

"""A schedule: when to make jobs, and which. It outlives every job it makes.

The definition is what a person edits, under a version. The rest is the scheduler's own
bookkeeping: the cursor says up to which instant every tick has been decided, and only moves
forward, so that no leader change, restart or clock step decides a tick twice. A `Firing` is a
decision about ticks on its way into the store, `Fired` what came of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.spec import NAME_LENGTH_MAX, JobSpec, check_label, check_spec

RUN_ALL_CAP_MAX: Final = 1000
JITTER_S_MAX: Final = 86_400.0


class Misfire(StrEnum):
    """What happens to ticks found more than `grace_s` late (nobody was there to see them)."""

    SKIP = "skip"
    RUN_ONCE = "run_once"
    RUN_ALL = "run_all"


class Overlap(StrEnum):
    """What happens when a tick comes while an instance of the schedule has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_PREVIOUS = "cancel_previous"


class MisfirePolicy(msgspec.Struct, frozen=True, kw_only=True):
    kind: Misfire = Misfire.RUN_ONCE
    cap: int = 10
    """Of `run_all`: the newest so many late ticks."""
    grace_s: float = 60.0
    """Several times the election TTL: an ordinary change of leader misses nothing."""


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    job: JobSpec
    cron: str = ""
    run_at: Instant | None = None
    """Instead of `cron`: one tick only."""
    zone: str = "UTC"
    dst: str = "debian"
    misfire: MisfirePolicy = MisfirePolicy()
    overlap: Overlap = Overlap.ALLOW
    jitter_s: float = 0.0
    start_at: Instant | None = None
    end_at: Instant | None = None
    """Ticks in [start_at, end_at) count."""
    paused: bool = False


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    definition: ScheduleDefinition
    version: int = 1
    """Of the definition; grows by one with every edit."""
    created_at: Instant
    updated_at: Instant
    cursor: Instant
    next_at: Instant | None = None
    """The next tick to decide; None when paused or over."""
    fired: int = 0
    missed: int = 0
    """Ticks nobody was there for and the misfire policy let go."""
    skipped: int = 0
    """Ticks not run because of overlap, pause or a full line."""
    last_tick: Instant | None = None
    last_job_id: str = ""


def check_definition(definition: ScheduleDefinition) -> ScheduleDefinition:
    """The same definition, or InvalidJob naming the field. The cron text is its parser's matter."""
    if not definition.name.strip() or len(definition.name) > NAME_LENGTH_MAX:
        raise InvalidJob(f"a schedule's name must have 1 to {NAME_LENGTH_MAX} characters")
    check_spec(definition.job)
    if bool(definition.cron) == (definition.run_at is not None):
        raise InvalidJob("a schedule needs either cron or run_at")
    if not 0 <= definition.jitter_s <= JITTER_S_MAX:
        raise InvalidJob(f"jitter {definition.jitter_s} is not in 0..{JITTER_S_MAX:.0f} s")
    if not 1 <= definition.misfire.cap <= RUN_ALL_CAP_MAX:
        raise InvalidJob(f"misfire cap {definition.misfire.cap} is not in 1..{RUN_ALL_CAP_MAX}")
    if definition.misfire.grace_s < 0:
        raise InvalidJob("misfire grace must not be negative")
    start, end = definition.start_at, definition.end_at
    if start is not None and end is not None and end <= start:
        raise InvalidJob("a schedule must end after it starts")
    return definition


def check_schedule_id(schedule_id: str) -> str:
    check_label("schedule id", schedule_id)
    return schedule_id


class Advance(msgspec.Struct, frozen=True):
    """Every tick up to `cursor` is decided. Refused with VersionConflict when the schedule's cursor
    is no longer `before`: somebody else decided these ticks."""

    before: Instant
    cursor: Instant
    next_at: Instant | None


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    schedule_id: str
    version: int
    """Of the definition the decision was made from; another one is a VersionConflict."""
    advance: Advance | None
    """None: aside from the order of ticks (a backfill, a run by hand)."""
    jobs: tuple[Job, ...] = ()
    """Oldest tick first. A job whose id exists already is left as it is."""
    missed: int = 0
    overlap: Overlap | None = None
    """Instead of the schedule's own, for backfills and runs by hand."""


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    schedule: Schedule
    jobs: tuple[Job, ...]
    """Inserted now."""
    existing: int
    skipped: int
    """By the overlap policy."""
    cancelled: tuple[str, ...]
    """Earlier instances that were cancelled, or asked to stop."""

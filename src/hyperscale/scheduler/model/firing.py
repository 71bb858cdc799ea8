"""A decision about ticks on its way into the store, and what came of it."""

from __future__ import annotations

import msgspec

from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.job import Job
from hyperscale.scheduler.model.schedule import Overlap, Schedule


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

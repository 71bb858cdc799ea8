"""Where a job stands in the queue: one rule for every store.

A store keeps, for each place, an index by the instant somebody must look at the job again, and for
READY also the order of claims within a lane. A lane holds the jobs of one kind that need the same
capabilities, so a job nobody can run blocks nobody. And nobody waits for ever: the rank of a ready
job gets better the longer it waits, while its priority stays as it was submitted.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue.job import ENDS, HELD, Job
from hyperscale.scheduler.queue.spec import PRIORITY_BEST

BOOST_AGE: Final[Instant] = 30 * 60 * SECOND
BOOST_POINTS: Final = 50


def waits_since(job: Job) -> Instant:
    """A job may be due in the past when it is made, as a backfill is: it waits since then."""
    return max(job.due_at, job.created_at)


def rank_at(job: Job, now: Instant) -> int:
    steps = max(0, now - waits_since(job)) // BOOST_AGE
    return max(PRIORITY_BEST, job.spec.priority - BOOST_POINTS * steps)


def next_boost_at(job: Job) -> Instant | None:
    """When the rank a job has now is no longer its due; None when it cannot get better."""
    if job.rank <= PRIORITY_BEST:
        return None
    points = job.spec.priority - job.rank
    return waits_since(job) + BOOST_AGE * (points // BOOST_POINTS + 1)


class Place(IntEnum):
    """Frozen numbers: they are on disk."""

    WAITING = 0
    DELAYED = 1
    READY = 2
    HELD = 3
    DONE = 4


# An enum's member costs more to find by its name than to compare with.
_DELAYED, _READY, _HELD, _DONE = Place.DELAYED, Place.READY, Place.HELD, Place.DONE

_BY_STATE: Final = {
    **dict.fromkeys(ENDS, Place.DONE),
    **dict.fromkeys(HELD, Place.HELD),
}


def place_of(job: Job, now: Instant) -> Place:
    place = _BY_STATE.get(job.state)
    if place is not None:
        return place
    if job.waiting:
        return Place.WAITING
    return _DELAYED if job.due_at > now else _READY


def watch_at(job: Job, place: Place) -> Instant | None:
    """When due, when to better its rank, when its lease ends, from when its keeping counts."""
    if place is _DELAYED:
        return job.due_at
    if place is _READY:
        return next_boost_at(job)
    if place is _HELD:
        return job.lease_until
    if place is _DONE:
        return max(job.finished_at or 0, job.dedup_until)
    return None


def lane_of(job: Job) -> str:
    return ",".join((job.spec.kind, *job.spec.capabilities))


def lane_fits(lane: str, kinds: frozenset[str], capabilities: frozenset[str]) -> bool:
    kind, *needed = lane.split(",")
    return (not kinds or kind in kinds) and capabilities.issuperset(needed)


def claim_order(job: Job) -> tuple[int, Instant, Instant, str]:
    return job.rank, job.due_at, job.created_at, job.id

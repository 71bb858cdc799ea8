"""Nobody waits for ever: a ready job gets better the longer it waits (S-36).

Only the rank moves; the submitted priority stays as it was.
"""

from __future__ import annotations

from typing import Final

from hyperscale.scheduler.model.instants import SECOND, Instant
from hyperscale.scheduler.model.job import Job
from hyperscale.scheduler.model.spec import PRIORITY_BEST

BOOST_AGE: Final[Instant] = 30 * 60 * SECOND
BOOST_POINTS: Final = 50


def rank_at(job: Job, now: Instant) -> int:
    steps = max(0, now - job.due_at) // BOOST_AGE
    return max(PRIORITY_BEST, job.spec.priority - BOOST_POINTS * steps)


def next_boost_at(job: Job) -> Instant | None:
    """When the rank a job has now is no longer its due; None when it cannot get better."""
    if job.rank <= PRIORITY_BEST:
        return None
    points = job.spec.priority - job.rank
    return job.due_at + BOOST_AGE * (points // BOOST_POINTS + 1)

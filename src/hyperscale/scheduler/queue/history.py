"""What is kept of jobs beside themselves: their attempts, and dead letters.

Every fencing token ever given ends in exactly one attempt: the history of a job is the list of its
attempts, and it stays when the job itself has been removed.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Failure, Job


class Outcome(StrEnum):
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    LOST = "LOST"
    RELEASED = "RELEASED"
    CANCELLED = "CANCELLED"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    job_id: str
    token: int
    schedule_id: str = ""
    worker: str
    due_at: Instant
    claimed_at: Instant
    started_at: Instant | None
    ended_at: Instant
    outcome: Outcome
    failure: Failure | None = None
    error: str = ""
    exit_code: int | None = None
    log: str = ""
    """The end of the output; removed before the rest of the row."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A job that failed for good, until somebody replays or drops it. Its attempts are in the
    history under the job's id."""

    job: Job
    reason: str
    at: Instant

    @property
    def id(self) -> str:
        return self.job.id

"""What is kept of jobs beside themselves: their attempts, and dead letters.

Every fencing token ever given ends in exactly one attempt: the history of a job is the list of its
attempts, and it stays when the job itself has been removed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Failure, Job, JobState


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
    figures: dict[str, float] = {}
    """What it measured, as its executor names it."""
    results: bytes = b""
    """Of a load test; removed before the rest of the row."""
    measured: bool = False
    """Its results were kept."""


ERROR_CHARS_KEPT: Final = 200


class Run(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What became of an instance of a schedule, in some hundred bytes, so that it can stay for a
    year: the job and its attempts go before."""

    job_id: str
    schedule_id: str
    tick: Instant | None
    state: JobState
    started_at: Instant | None
    ended_at: Instant
    failure: Failure | None = None
    error: str = ""
    exit_code: int | None = None
    retries: int = 0
    worker: str = ""
    figures: dict[str, float] = {}
    token: int = 0
    measured: bool = False
    """The results of its last attempt were kept."""

    @property
    def key(self) -> str:
        """Newest first within a schedule."""
        return f"{self.schedule_id}/{10**17 - self.ended_at:017d}/{self.job_id}"


def run_of(job: Job, attempt: Attempt | None, now: Instant) -> Run:
    """Of an instance that has just ended."""
    return Run(
        job_id=job.id,
        schedule_id=job.schedule_id,
        tick=job.tick,
        state=job.state,
        started_at=None if attempt is None else attempt.started_at,
        ended_at=job.finished_at or now,
        failure=job.failure,
        error=job.error[:ERROR_CHARS_KEPT],
        exit_code=None if attempt is None else attempt.exit_code,
        retries=job.retries,
        worker="" if attempt is None else attempt.worker,
        figures={} if attempt is None else attempt.figures,
        token=0 if attempt is None else attempt.token,
        measured=attempt is not None and bool(attempt.results),
    )


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A job that failed for good, until somebody replays or drops it. Its attempts are in the
    history under the job's id."""

    job: Job
    reason: str
    at: Instant

    @property
    def id(self) -> str:
        return self.job.id

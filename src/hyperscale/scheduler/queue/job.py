"""A job: one thing to run once, whoever asked for it (a client, or a tick of a schedule).

# Theory of operation

The table below is the whole life of a job. PENDING hides three places in the queue: delayed (due
later), ready, and waiting (its schedule runs one instance at a time and another is before it).
COMPLETED, FAILED and CANCELLED are ends; a retry by hand is a new job.

A claim gives a fencing token, an integer that only grows. Every report carries it, and only the
current one is accepted. Recovery gives the job a fresh token, so that the former holder, however
late, can change nothing. A report that repeats the last accepted one is answered as before: its
sender missed the answer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.spec import JobSpec


class Failure(StrEnum):
    TRANSIENT = "TRANSIENT"
    """The network hiccuped: again at once, spread over a second."""
    ERROR = "ERROR"
    """The job raised or returned failure: backoff."""
    EXHAUSTED = "EXHAUSTED"
    """The machine had no room: backoff, rather on another worker."""
    TIMEOUT = "TIMEOUT"
    """Killed at its timeout, or its progress stalled: backoff, rather on another worker."""
    WORKER_LOST = "WORKER_LOST"
    """The lease ended without a word: backoff, rather on another worker."""
    NEVER_STARTED = "NEVER_STARTED"
    """Claimed too often without one start: it kills its workers."""
    PERMANENT = "PERMANENT"
    """Bad payload, unknown kind, logic error: no retry."""
    CANCELLED = "CANCELLED"
    """Somebody asked for it."""


class JobState(StrEnum):
    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    EXECUTING = "EXECUTING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Event(StrEnum):
    CLAIM = "claim"
    START = "start"
    BEAT = "heartbeat"
    COMPLETE = "complete"
    RETRY = "fail with a retry left"
    FAIL = "fail for good"
    RELEASE = "release"
    CANCEL = "cancel"
    STOPPED = "stop as asked"


TRANSITIONS: Final[dict[JobState, dict[Event, JobState]]] = {
    JobState.PENDING: {
        Event.CLAIM: JobState.CLAIMED,
        Event.FAIL: JobState.FAILED,
        Event.CANCEL: JobState.CANCELLED,
    },
    # A claim that never started goes back free of charge, up to a cap.
    JobState.CLAIMED: {
        Event.START: JobState.EXECUTING,
        Event.BEAT: JobState.CLAIMED,
        Event.RETRY: JobState.PENDING,
        Event.FAIL: JobState.FAILED,
        Event.RELEASE: JobState.PENDING,
        Event.CANCEL: JobState.CANCELLED,
    },
    # Cancelling what runs is a wish: the worker's word, or the end of its lease, fulfils it.
    JobState.EXECUTING: {
        Event.BEAT: JobState.EXECUTING,
        Event.COMPLETE: JobState.COMPLETED,
        Event.RETRY: JobState.PENDING,
        Event.FAIL: JobState.FAILED,
        Event.RELEASE: JobState.PENDING,
        Event.CANCEL: JobState.EXECUTING,
        Event.STOPPED: JobState.CANCELLED,
    },
    JobState.COMPLETED: {},
    JobState.FAILED: {},
    JobState.CANCELLED: {},
}

ENDS: Final = frozenset(state for state, row in TRANSITIONS.items() if not row)
HELD: Final = frozenset({JobState.CLAIMED, JobState.EXECUTING})


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Kept from the garbage collector, as is all that jobs come in by the thousand with: frozen
    records of texts and numbers cannot refer to themselves."""

    id: str
    spec: JobSpec
    created_at: Instant
    schedule_id: str = ""
    tick: Instant | None = None
    """The instant its schedule meant; `due_at` is that plus jitter, then plus backoff."""
    dedup_key: str = ""
    dedup_until: Instant = 0
    correlation_id: str = ""
    retry_of: str = ""

    # From here on what changes; HEAD_FIELDS and RUN_FIELDS below name the two halves.
    state: JobState = JobState.PENDING
    waiting: bool = False
    rank: int
    """Effective priority: the submitted one, bettered by waiting."""
    due_at: Instant
    worker: str = ""
    token: int = 0
    claimed_at: Instant | None = None
    started_at: Instant | None = None
    lease_until: Instant | None = None
    progress: float = 0.0
    progress_at: Instant | None = None
    retries: int = 0
    claims_lost: int = 0
    avoid_worker: str = ""
    cancel_requested: bool = False
    failure: Failure | None = None
    error: str = ""
    last_report: str = ""
    finished_at: Instant | None = None
    updated_at: Instant

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def held(self) -> bool:
        return self.state in HELD


HEAD_FIELDS: Final = (
    "id",
    "spec",
    "created_at",
    "schedule_id",
    "tick",
    "dedup_key",
    "dedup_until",
    "correlation_id",
    "retry_of",
)
RUN_FIELDS: Final = tuple(
    field for field in Job.__struct_fields__ if field not in frozenset(HEAD_FIELDS)
)


def new_job(
    job_id: str,
    spec: JobSpec,
    now: Instant,
    *,
    due_at: Instant | None = None,
    schedule_id: str = "",
    tick: Instant | None = None,
    correlation_id: str = "",
    retry_of: str = "",
) -> Job:
    return Job(
        id=job_id,
        spec=spec,
        created_at=now,
        schedule_id=schedule_id,
        tick=tick,
        correlation_id=correlation_id,
        retry_of=retry_of,
        rank=spec.priority,
        due_at=now if due_at is None else due_at,
        updated_at=now,
    )

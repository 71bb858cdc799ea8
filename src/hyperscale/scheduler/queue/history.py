"""What is kept beside jobs and schedules: attempts, dead letters, the audit chain.

Every fencing token ever given ends in exactly one attempt: the history of a job is the list of its
attempts, and it stays when the job itself has been removed.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Failure, Job

AUDIT_TEXT_MAX: Final = 4096


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


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what. `digest` covers the row and the digest before it: an edited row breaks the
    chain from there on (S-96)."""

    sequence: int = 0
    at: Instant
    actor: str
    role: str = ""
    action: str
    target: str
    outcome: str
    source: str = ""
    detail: str = ""
    digest: str = ""


def chained(row: Audit, before: Audit | None) -> Audit:
    sequence = 1 if before is None else before.sequence + 1
    bare = msgspec.structs.replace(row, sequence=sequence, digest="")
    previous = "" if before is None else before.digest
    digest = hashlib.sha256(previous.encode() + msgspec.json.encode(bare)).hexdigest()
    return msgspec.structs.replace(bare, digest=digest)


def broken_at(rows: list[Audit], before: Audit | None = None) -> int | None:
    """Sequence number of the first row that does not follow from the one before it."""
    for row in rows:
        if chained(row, before) != row:
            return row.sequence
        before = row
    return None

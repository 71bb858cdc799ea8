"""What can happen to a job, as immutable facts.

Every event carries the job, the moment (hybrid logical clock) and the fencing token of the leader
that wrote it; spec and metrics stay opaque bytes here. A struct is an array on disk: fields are
never removed, reordered or given another meaning; new ones go to the end and have a default, so
that an old log opens for ever.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import msgspec

from hyperscale.cluster.clocks import Stamp
from hyperscale.cluster.fencing import Fence


class Code(IntEnum):
    """On disk for ever: a number is never changed and never used again.

    Numbers below `SKIPPABLE_FROM` change what a job is; a reader that does not know one must not
    open the log. Numbers from there on only add information; an unknown one is skipped and counted.
    """

    JOB_CREATED = 1
    JOB_ACCEPTED = 2
    JOB_PROGRESS_REPORTED = 3
    JOB_CANCELLATION_REQUESTED = 4
    JOB_CANCELLATION_ACKED = 5
    JOB_COMPLETED = 6
    JOB_FAILED = 7
    JOB_TIMED_OUT = 8


SKIPPABLE_FROM = 128


class JobEvent(msgspec.Struct, frozen=True, array_like=True):
    code: ClassVar[Code]
    job_id: str
    hlc: Stamp
    fence: Fence


class JobCreated(JobEvent, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.JOB_CREATED
    spec: bytes
    assigned_dcs: tuple[str, ...]
    idempotency_key: str = ""
    """The key this job was submitted under: leads from the job back to its reservation."""


class JobAccepted(JobEvent, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.JOB_ACCEPTED
    dc_id: str
    worker_count: int


class JobProgressReported(JobEvent, frozen=True, array_like=True):
    """Running totals of one datacenter, aggregated and at a low rate (at most every 500 ms)."""

    code: ClassVar[Code] = Code.JOB_PROGRESS_REPORTED
    dc_id: str
    completed: int
    failed: int


class JobCancellationRequested(JobEvent, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.JOB_CANCELLATION_REQUESTED
    reason: str
    requestor: str


class JobCancellationAcked(JobEvent, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.JOB_CANCELLATION_ACKED
    dc_id: str
    workflows_cancelled: int


class JobCompleted(JobEvent, frozen=True, array_like=True):
    """The single end of every job; `final_status` tells how it ended."""

    code: ClassVar[Code] = Code.JOB_COMPLETED
    final_status: str
    aggregate_metrics: bytes = b""


class JobFailed(JobEvent, frozen=True, array_like=True):
    """A datacenter could not carry out its part; an empty `failed_dc` means the whole job."""

    code: ClassVar[Code] = Code.JOB_FAILED
    error: str
    failed_dc: str = ""


class JobTimedOut(JobEvent, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.JOB_TIMED_OUT
    timeout_type: str
    last_progress_hlc: Stamp | None = None


EVENTS: dict[Code, type[JobEvent]] = {
    kind.code: kind
    for kind in (
        JobCreated,
        JobAccepted,
        JobProgressReported,
        JobCancellationRequested,
        JobCancellationAcked,
        JobCompleted,
        JobFailed,
        JobTimedOut,
    )
}

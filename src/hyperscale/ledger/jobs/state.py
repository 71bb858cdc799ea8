"""What a job is: the fold of its events.

# Theory of operation

Nothing about a job is ever changed in place; its state is computed from its events, the same on
every node and after every restart. An event is first judged, then applied. A refused event leaves
the state as it was and must not be written.

Order (F-10): a job is created once, then accepted once by each assigned datacenter; then progress,
a cancellation with one acknowledgement per datacenter, failures of datacenters and a timeout may
come; `JobCompleted` is the single end, after which nothing is accepted. Cancelling is sticky: only
the end leads out of it. The table below is the whole of it: an event missing in a state's row is
refused there. Beyond the table an event is refused when a newer leader has written (fence), when it
is not later than the last event (a query "as of" would have two answers), when it speaks for a
datacenter that has no such part in the job, or when a total goes backwards.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from hyperscale.cluster.clocks import Stamp
from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.jobs.events import (
    Code,
    JobAccepted,
    JobCancellationAcked,
    JobCancellationRequested,
    JobCompleted,
    JobCreated,
    JobEvent,
    JobFailed,
    JobProgressReported,
    JobTimedOut,
)


class Status(IntEnum):
    """In checkpoints for ever, like the codes of events."""

    ABSENT = 0
    CREATED = 1
    RUNNING = 2
    FAILING = 3
    CANCELLING = 4
    ENDED = 5


TRANSITIONS: Final[dict[Status, dict[Code, Status]]] = {
    Status.ABSENT: {
        Code.JOB_CREATED: Status.CREATED,
    },
    Status.CREATED: {
        Code.JOB_ACCEPTED: Status.RUNNING,
        Code.JOB_CANCELLATION_REQUESTED: Status.CANCELLING,
        Code.JOB_FAILED: Status.FAILING,
        Code.JOB_TIMED_OUT: Status.FAILING,
    },
    Status.RUNNING: {
        Code.JOB_ACCEPTED: Status.RUNNING,
        Code.JOB_PROGRESS_REPORTED: Status.RUNNING,
        Code.JOB_CANCELLATION_REQUESTED: Status.CANCELLING,
        Code.JOB_FAILED: Status.FAILING,
        Code.JOB_TIMED_OUT: Status.FAILING,
        Code.JOB_COMPLETED: Status.ENDED,
    },
    # One datacenter failed or time is up; the others may still speak until the end is written.
    Status.FAILING: {
        Code.JOB_ACCEPTED: Status.FAILING,
        Code.JOB_PROGRESS_REPORTED: Status.FAILING,
        Code.JOB_CANCELLATION_REQUESTED: Status.CANCELLING,
        Code.JOB_FAILED: Status.FAILING,
        Code.JOB_TIMED_OUT: Status.FAILING,
        Code.JOB_COMPLETED: Status.ENDED,
    },
    # Acceptance and progress may have been under way when the cancellation was written.
    Status.CANCELLING: {
        Code.JOB_ACCEPTED: Status.CANCELLING,
        Code.JOB_PROGRESS_REPORTED: Status.CANCELLING,
        Code.JOB_CANCELLATION_REQUESTED: Status.CANCELLING,
        Code.JOB_CANCELLATION_ACKED: Status.CANCELLING,
        Code.JOB_FAILED: Status.CANCELLING,
        Code.JOB_TIMED_OUT: Status.CANCELLING,
        Code.JOB_COMPLETED: Status.ENDED,
    },
    Status.ENDED: {},
}


class Part(msgspec.Struct, frozen=True, array_like=True):
    """What one assigned datacenter has said."""

    dc_id: str
    accepted: bool = False
    worker_count: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: bool = False
    workflows_cancelled: int = 0
    error: str = ""


class JobState(msgspec.Struct, frozen=True, array_like=True):
    job_id: str
    status: Status
    fence: Fence
    created_hlc: Stamp
    last_hlc: Stamp
    spec: bytes
    parts: tuple[Part, ...]
    idempotency_key: str = ""
    events: int = 1
    cancel_reason: str = ""
    cancel_requestor: str = ""
    error: str = ""
    timeout_type: str = ""
    final_status: str = ""
    aggregate_metrics: bytes = b""

    def part(self, dc_id: str) -> Part | None:
        return next((part for part in self.parts if part.dc_id == dc_id), None)


class Refusal(Enum):
    NOT_NOW = "cannot happen in this state"
    STALE_FENCE = "was written by a leader that has been replaced"
    NOT_LATER = "is not later than the last event of the job"
    NOT_ASSIGNED = "speaks for a datacenter that has no part in the job"
    NOT_ACCEPTED = "speaks for a datacenter that has not accepted the job"
    REPEATED = "was said before by this datacenter"
    BACKWARDS = "makes a total smaller"


class EventRefused(Exception):
    def __init__(self, state: JobState | None, event: JobEvent, refusal: Refusal) -> None:
        status = Status.ABSENT if state is None else state.status
        super().__init__(f"{event.code.name} of job {event.job_id} ({status.name}) {refusal.value}")
        self.refusal = refusal


def judge(state: JobState | None, event: JobEvent) -> Refusal | None:
    """Why the event cannot follow; None: it can."""
    status = Status.ABSENT if state is None else state.status
    if event.code not in TRANSITIONS[status]:
        return Refusal.NOT_NOW
    if state is None:
        return None
    if event.fence < state.fence:
        return Refusal.STALE_FENCE
    if event.hlc <= state.last_hlc:
        return Refusal.NOT_LATER
    return _judge_part(state, event)


def _judge_part(state: JobState, event: JobEvent) -> Refusal | None:
    match event:
        case JobAccepted() | JobProgressReported() | JobCancellationAcked():
            part = state.part(event.dc_id)
        case JobFailed(failed_dc=dc_id) if dc_id:
            return Refusal.NOT_ASSIGNED if state.part(dc_id) is None else None
        case _:
            return None
    if part is None:
        return Refusal.NOT_ASSIGNED
    match event:
        case JobAccepted() if part.accepted:
            return Refusal.REPEATED
        case JobCancellationAcked() if part.cancelled:
            return Refusal.REPEATED
        case JobProgressReported() if not part.accepted:
            return Refusal.NOT_ACCEPTED
        case JobProgressReported() if event.completed < part.completed:
            return Refusal.BACKWARDS
        case JobProgressReported() if event.failed < part.failed:
            return Refusal.BACKWARDS
    return None


def fold(state: JobState | None, event: JobEvent) -> JobState:
    """The state after the event; raises `EventRefused` where `judge` objects."""
    refusal = judge(state, event)
    if refusal is not None:
        raise EventRefused(state, event, refusal)
    if state is None:
        assert isinstance(event, JobCreated)
        return JobState(
            job_id=event.job_id,
            status=Status.CREATED,
            fence=event.fence,
            created_hlc=event.hlc,
            last_hlc=event.hlc,
            spec=event.spec,
            parts=tuple(Part(dc_id) for dc_id in event.assigned_dcs),
            idempotency_key=event.idempotency_key,
        )
    return replace(
        _learn(state, event),
        status=TRANSITIONS[state.status][event.code],
        fence=event.fence,
        last_hlc=event.hlc,
        events=state.events + 1,
    )


def _learn(state: JobState, event: JobEvent) -> JobState:
    match event:
        case JobAccepted(dc_id=dc_id, worker_count=count):
            return _with_part(state, dc_id, accepted=True, worker_count=count)
        case JobProgressReported(dc_id=dc_id, completed=completed, failed=failed):
            return _with_part(state, dc_id, completed=completed, failed=failed)
        case JobCancellationAcked(dc_id=dc_id, workflows_cancelled=count):
            return _with_part(state, dc_id, cancelled=True, workflows_cancelled=count)
        case JobCancellationRequested() if state.status is not Status.CANCELLING:
            return replace(state, cancel_reason=event.reason, cancel_requestor=event.requestor)
        case JobFailed(error=error, failed_dc=""):
            return replace(state, error=error)
        case JobFailed(error=error, failed_dc=dc_id):
            return replace(_with_part(state, dc_id, error=error), error=state.error or error)
        case JobTimedOut(timeout_type=timeout_type):
            return replace(state, timeout_type=state.timeout_type or timeout_type)
        case JobCompleted(final_status=status, aggregate_metrics=metrics):
            return replace(state, final_status=status, aggregate_metrics=metrics)
    return state


def _with_part(state: JobState, dc_id: str, **facts: object) -> JobState:
    parts = tuple(replace(part, **facts) if part.dc_id == dc_id else part for part in state.parts)
    return replace(state, parts=parts)

"""One committed record changes the replicated state, the same way on every manager.

`apply` is total. A record that does not fit what is known (a duplicate, one that lost a race, one
about a job that is over) changes nothing and yields False; what follows from a record is done only
on True. That, and not the caution of a leader, is what makes each decision happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hyperscale.cluster.jobs import apply_ending, apply_placing, apply_steering
from hyperscale.cluster.jobs.records import (
    Aged,
    Dispatched,
    Extended,
    Failed,
    Finished,
    GivenUp,
    JobRecord,
    Judged,
    PartEnded,
    PartLost,
    Returned,
    Started,
    Steered,
    Submitted,
    TimedOut,
    ToldLate,
    TornDown,
)
from hyperscale.cluster.jobs.state import JobState, ReplicatedState, new_job


def apply(replicated: ReplicatedState, record: JobRecord) -> bool:
    """True when the record took effect."""
    if isinstance(record, Submitted):
        return _submitted(replicated, record)
    job = replicated.jobs.get(record.job_id)
    if job is None or job.is_over:
        return False
    handler = _HANDLERS.get(type(record))
    if handler is None or not handler(replicated, job, record):
        return False
    job.age_s = max(job.age_s, record.age_s)
    return True


def _submitted(replicated: ReplicatedState, record: Submitted) -> bool:
    key = record.idempotency_key
    if record.job_id in replicated.jobs or (key and key in replicated.keys):
        return False
    try:
        job = new_job(record)
    except ValueError:
        return False
    replicated.jobs[record.job_id] = job
    if key:
        replicated.keys[key] = record.job_id
    return True


_HANDLERS: Final[dict[type, Callable[[ReplicatedState, JobState, Any], bool]]] = {
    Dispatched: apply_placing.dispatched,
    Returned: apply_placing.returned,
    Started: apply_placing.started,
    PartEnded: apply_ending.ended,
    PartLost: apply_ending.lost,
    ToldLate: apply_ending.told_late,
    GivenUp: apply_ending.given_up,
    Failed: apply_ending.failed,
    TornDown: apply_ending.torn_down,
    Steered: apply_steering.steered,
    Extended: apply_steering.extended,
    Judged: apply_steering.judged,
    Aged: apply_steering.aged,
    TimedOut: apply_steering.timed_out,
    Finished: apply_ending.finished,
}

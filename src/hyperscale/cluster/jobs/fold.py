"""The fold: one committed record changes what is known, the same way on every manager.

`apply` is total. A record that does not fit what is known (a duplicate, one that lost a race, one
about a job that is over) changes nothing and yields False; what follows from a record is done only
on True. That, and not the caution of a leader, is what makes each decision happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hyperscale.cluster.jobs import fold_ending, fold_placing, fold_steering
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
from hyperscale.cluster.jobs.state import Book, JobState, new_job


def apply(book: Book, record: JobRecord) -> bool:
    """True when the record took effect."""
    if isinstance(record, Submitted):
        return _submitted(book, record)
    job = book.jobs.get(record.job_id)
    if job is None or job.is_over:
        return False
    handler = _HANDLERS.get(type(record))
    if handler is None or not handler(book, job, record):
        return False
    job.age_s = max(job.age_s, record.age_s)
    return True


def _submitted(book: Book, record: Submitted) -> bool:
    key = record.idempotency_key
    if record.job_id in book.jobs or (key and key in book.keys):
        return False
    try:
        job = new_job(record)
    except ValueError:
        return False
    book.jobs[record.job_id] = job
    if key:
        book.keys[key] = record.job_id
    return True


_HANDLERS: Final[dict[type, Callable[[Book, JobState, Any], bool]]] = {
    Dispatched: fold_placing.dispatched,
    Returned: fold_placing.returned,
    Started: fold_placing.started,
    PartEnded: fold_ending.ended,
    PartLost: fold_ending.lost,
    ToldLate: fold_ending.told_late,
    GivenUp: fold_ending.given_up,
    Failed: fold_ending.failed,
    TornDown: fold_ending.torn_down,
    Steered: fold_steering.steered,
    Extended: fold_steering.extended,
    Judged: fold_steering.judged,
    Aged: fold_steering.aged,
    TimedOut: fold_steering.timed_out,
    Finished: fold_ending.finished,
}

"""Writing a step of a job's life with everything that follows from it.

The job, its attempt and log, its dead letter, and the next instance in its schedule's line change
together or not at all.
"""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.scheduler.model.errors import StaleLeader
from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.job import Job, JobState
from hyperscale.scheduler.model.records import Attempt, DeadLetter
from hyperscale.scheduler.policies.lifecycle import Step
from hyperscale.scheduler.stores.records import (
    ATTEMPTS,
    EPOCHS,
    LETTERS,
    LINES,
    LOGS,
    Log,
    Records,
    attempt_key,
)

EPOCH_KEY = "leader"


def fence(records: Records, epoch: int) -> None:
    """Refuse a coordinator that has been replaced; 0 is none."""
    current = records.get(EPOCHS, EPOCH_KEY) or 0 if epoch else 0
    if epoch < current:
        raise StaleLeader(epoch, current)


def settle(records: Records, before: Job, step: Step, now: Instant) -> Job:
    write_step(records, before, step, now)
    if step.job.ended and step.job.schedule_id:
        _move_line(records, step.job, before.waiting)
    return step.job


def write_step(records: Records, before: Job, step: Step, now: Instant) -> None:
    """Without moving the line: the caller does."""
    job = step.job
    records.put_job(before, job, now)
    if step.attempt is not None:
        _keep_attempt(records, step.attempt)
    if job.state is JobState.FAILED:
        records.put(LETTERS, job.id, DeadLetter(job=job, reason=job.error, at=now))


def _keep_attempt(records: Records, attempt: Attempt) -> None:
    key = attempt_key(attempt.job_id, attempt.token)
    if attempt.log:
        records.put(LOGS, key, Log(attempt.log, attempt.ended_at))
        attempt = replace(attempt, log="")
    records.put(ATTEMPTS, key, attempt)


def _move_line(records: Records, ended: Job, was_waiting: bool) -> None:
    waiting = count_waiting(records, ended.schedule_id)
    left = waiting - was_waiting
    if left > 0:
        live = [job for job in records.live(ended.schedule_id) if job.id != ended.id]
        if all(job.waiting for job in live):
            head = live[0]
            freed = replace(head, waiting=False, updated_at=ended.updated_at)
            records.put_job(head, freed, ended.updated_at)
            left -= 1
    put_waiting(records, ended.schedule_id, waiting, left)


def count_waiting(records: Records, schedule_id: str) -> int:
    """Asked before the instances themselves: who joins or leaves meanwhile changes this."""
    return records.get(LINES, schedule_id) or 0


def put_waiting(records: Records, schedule_id: str, before: int, waiting: int) -> None:
    if waiting > 0 and waiting != before:
        records.put(LINES, schedule_id, waiting)
    elif waiting == 0 and before > 0:
        records.drop(LINES, schedule_id)

"""Jobs in, judged, cancelled and tried again."""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.scheduler.model.errors import (
    AlreadyExists,
    DedupConflict,
    IllegalTransition,
    NotFound,
    StoreFull,
)
from hyperscale.scheduler.model.instants import Instant, after
from hyperscale.scheduler.model.job import HEAD_FIELDS, Job, JobState, new_job
from hyperscale.scheduler.model.records import DeadLetter
from hyperscale.scheduler.model.reports import Answer, Report
from hyperscale.scheduler.policies.judgement import judge
from hyperscale.scheduler.policies.lifecycle import cancelled
from hyperscale.scheduler.stores.contract import StoreLimits, Submission, Submitted
from hyperscale.scheduler.stores.operations.settle import settle
from hyperscale.scheduler.stores.records import DEDUPS, LETTERS, DedupEntry, Records


def submit(
    records: Records, submission: Submission, now: Instant, limits: StoreLimits
) -> Submitted:
    job, dedup = submission.job, submission.dedup
    if dedup is not None:
        entry = records.get(DEDUPS, dedup.key)
        if entry is not None and entry.until > now:
            original = records.job(entry.job_id)
            assert original is not None, "a job outlives its dedup window"
            if entry.digest != dedup.digest:
                raise DedupConflict(dedup.key, original.id)
            return Submitted(original, created=False)
        until = after(now, dedup.window_s)
        job = replace(job, dedup_key=dedup.key, dedup_until=until)
    known = records.job(job.id)
    if known is not None:
        if _same_head(known, job):
            return Submitted(known, created=False)
        raise AlreadyExists("job", job.id)
    require_room(records, 1, limits)
    records.put_job(None, job, now)
    if dedup is not None:
        records.put(DEDUPS, dedup.key, DedupEntry(job.id, dedup.digest, job.dedup_until))
    return Submitted(job, created=True)


def require_room(records: Records, more: int, limits: StoreLimits) -> None:
    if records.job_count() + more > limits.jobs_max:
        raise StoreFull("jobs", limits.jobs_max)


def report(records: Records, said: Report, now: Instant) -> Answer:
    before = records.job(said.job_id)
    answer, step = judge(before, said, now)
    if step is not None:
        assert before is not None
        settle(records, before, step, now)
    return answer


def cancel(records: Records, job_id: str, now: Instant) -> Job:
    job = _existing(records, job_id)
    if job.state is JobState.CANCELLED or (job.held and job.cancel_requested):
        return job
    return settle(records, job, cancelled(job, now), now)


def retry(records: Records, job_id: str, new_id: str, now: Instant, limits: StoreLimits) -> Job:
    known = records.job(new_id)
    if known is not None:
        if known.retry_of == job_id:
            return known
        raise AlreadyExists("job", new_id)
    job = _existing(records, job_id)
    if not job.ended:
        raise IllegalTransition(job.id, job.state, "retry by hand")
    return _again(records, job, new_id, now, limits)


def replay(records: Records, job_id: str, new_id: str, now: Instant, limits: StoreLimits) -> Job:
    known = records.job(new_id)
    if known is not None:
        if known.retry_of == job_id:
            return known
        raise AlreadyExists("job", new_id)
    letter = records.get(LETTERS, job_id)
    if letter is None:
        raise NotFound("dead letter", job_id)
    return _again(records, letter.job, new_id, now, limits)


def drop_letter(records: Records, job_id: str) -> DeadLetter:
    letter = records.get(LETTERS, job_id)
    if letter is None:
        raise NotFound("dead letter", job_id)
    records.drop(LETTERS, job_id)
    return letter


def _again(records: Records, job: Job, new_id: str, now: Instant, limits: StoreLimits) -> Job:
    require_room(records, 1, limits)
    # Not an instance of the schedule: its ticks and its line go on without it.
    again = new_job(
        new_id, job.spec, now, correlation_id=job.correlation_id or job.id, retry_of=job.id
    )
    records.put_job(None, again, now)
    if records.get(LETTERS, job.id) is not None:
        records.drop(LETTERS, job.id)
    return again


def _existing(records: Records, job_id: str) -> Job:
    job = records.job(job_id)
    if job is None:
        raise NotFound("job", job_id)
    return job


def _same_head(one: Job, other: Job) -> bool:
    """The dedup window aside: a repetition computes it anew."""
    fields = (name for name in HEAD_FIELDS if name != "dedup_until")
    return all(getattr(one, name) == getattr(other, name) for name in fields)

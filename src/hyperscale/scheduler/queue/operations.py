"""Operations on jobs: submitted, claimed, reported on, cancelled and tried again.

A step of a job's life is written with everything that follows from it: the job, its attempt and
log, its dead letter, and the next instance in its schedule's line change together or not at all.
Of a report only the token decides, never the lease: work that came late but that nobody took over
is good work. `take` is for stores whose steps exclude each other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from hyperscale.scheduler.errors import (
    AlreadyExists,
    DedupConflict,
    IllegalTransition,
    NotFound,
    StaleLeader,
    StoreFull,
)
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue import lifecycle
from hyperscale.scheduler.queue.history import Attempt, DeadLetter, run_of
from hyperscale.scheduler.queue.job import HEAD_FIELDS, Job, JobState, new_job
from hyperscale.scheduler.queue.lifecycle import AVOID_S, Step, cancelled, claimed, started
from hyperscale.scheduler.queue.placement import lane_fits
from hyperscale.scheduler.queue.reports import (
    LOG_CHARS_MAX,
    Accepted,
    Answer,
    Beat,
    Completed,
    Failed,
    Refusal,
    Refused,
    Released,
    Report,
    Started,
)
from hyperscale.scheduler.store.tables import (
    ATTEMPTS,
    DEDUPS,
    EPOCHS,
    HISTORY,
    LETTERS,
    LINES,
    LOGS,
    RESULTS,
    WORKERS,
    DedupEntry,
    Log,
    Measured,
    Queue,
    Records,
    attempt_key,
)
from hyperscale.scheduler.store.types import (
    BATCH_MAX,
    Claim,
    StoreLimits,
    Submission,
    Submitted,
    Taken,
)
from hyperscale.scheduler.worker.registration import CLOSED

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
    assert job.id == before.id, "a step moves one job"
    assert not before.ended, "an end is final"
    assert step.attempt is None or step.attempt.token == before.token, "an attempt ends its token"
    records.put_job(before, job, now)
    if step.attempt is not None:
        _keep_attempt(records, step.attempt)
    if job.ended and job.schedule_id:
        run = run_of(job, step.attempt, now)
        records.put(HISTORY, run.key, run)
    if job.state is JobState.FAILED:
        records.put(LETTERS, job.id, DeadLetter(job=job, reason=job.error, at=now))


def _keep_attempt(records: Records, attempt: Attempt) -> None:
    key = attempt_key(attempt.job_id, attempt.token)
    if attempt.log:
        records.put(LOGS, key, Log(attempt.log, attempt.ended_at))
        attempt = replace(attempt, log="")
    if attempt.results:
        records.put(RESULTS, key, Measured(attempt.results, attempt.ended_at))
        attempt = replace(attempt, results=b"", measured=True)
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


class Judgement(NamedTuple):
    answer: Answer
    step: Step | None = None
    """To be written; None when nothing changes."""


_LAST: Final[dict[type[Report], str]] = {
    Completed: lifecycle.COMPLETED,
    Failed: lifecycle.FAILED,
    Released: lifecycle.RELEASED,
}


def judge(job: Job | None, report: Report, now: int) -> Judgement:
    if job is None:
        return _refuse(report, Refusal.UNKNOWN_JOB)
    if not job.held:
        if report.token == job.token and job.last_report == _LAST.get(type(report), "none"):
            return Judgement(Accepted(job, repeated=True))
        return _refuse(report, Refusal.NOT_HELD)
    if report.worker != job.worker:
        return _refuse(report, Refusal.OTHER_WORKER)
    if report.token != job.token:
        return _refuse(report, Refusal.STALE_TOKEN)
    if isinstance(report, Started) and job.state is JobState.EXECUTING:
        return Judgement(Accepted(job, repeated=True))
    if isinstance(report, Completed) and job.state is JobState.CLAIMED:
        return _refuse(report, Refusal.NOT_STARTED)
    step = _step(job, report, now)
    return Judgement(Accepted(step.job), step)


def _step(job: Job, report: Report, now: int) -> Step:
    if isinstance(report, Started):
        return Step(lifecycle.started(job, now, report.lease_s))
    if isinstance(report, Beat):
        return Step(lifecycle.beaten(job, now, report))
    if isinstance(report, Released):
        return lifecycle.released(job, now, report.delay_s, report.reason)
    exit_code, log = report.exit_code, report.log[-LOG_CHARS_MAX:]
    if isinstance(report, Completed):
        step = lifecycle.completed(job, now, exit_code, log)
    else:
        step = lifecycle.failed(job, report.failure, report.error, now, exit_code, log)
    if not (report.figures or report.results) or step.attempt is None:
        return step
    return step._replace(
        attempt=replace(step.attempt, figures=report.figures, results=report.results)
    )


def _refuse(report: Report, reason: Refusal) -> Judgement:
    return Judgement(Refused(report.job_id, reason))


PROMOTE_PER_CLAIM: Final = 100
"""A claim promotes on its way, but a burst of due jobs is the sweep's to move."""

AVOID_SCAN: Final = 32
"""So many candidates more are looked at, in case the first ones avoid this worker."""


def take(queue: Queue, wanted: Claim, now: Instant, promote_max: int) -> Taken:
    """Promotes what is due, then claims; a claim of no job only promotes."""
    fence(queue, wanted.epoch)
    promoted = queue.promote(now, promote_max)
    known = queue.get(WORKERS, wanted.worker) if wanted.limit else None
    if known is not None and known.state in CLOSED:
        return Taken(promoted, [])  # seen in this step: what a process remembers may be old
    limit = min(wanted.limit, BATCH_MAX)
    taken: list[Job] = []
    kinds, capabilities = frozenset(wanted.kinds), frozenset(wanted.capabilities)
    scan = limit + AVOID_SCAN if limit else 0
    for job in queue.ready(lambda lane: lane_fits(lane, kinds, capabilities), scan):
        if len(taken) == limit:
            break
        if job.avoid_worker == wanted.worker and after(job.due_at, AVOID_S) > now:
            continue
        assert not job.held, "a ready job is nobody's"
        mine = claimed(job, wanted.worker, queue.token(), now, wanted.lease_s)
        if wanted.start:
            mine = started(mine, now, wanted.lease_s)
        queue.put_job(job, mine, now)
        taken.append(mine)
    return Taken(promoted, taken)


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

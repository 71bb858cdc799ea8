"""How a job moves: every event of `job.TRANSITIONS` as a function of (job, event, now), and
whether, when and where a failed attempt is repeated.

A step is the job as it becomes, and the attempt that ended with it, if one did. Nothing here
changes anything; stores write a step whole. The delay of a retry becomes the job's durable due
time: no leader keeps it in its memory.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from hyperscale.cluster.overload.backoff import grown_s
from hyperscale.scheduler.errors import IllegalTransition
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.history import Attempt, Outcome
from hyperscale.scheduler.queue.identity import jitter
from hyperscale.scheduler.queue.job import TRANSITIONS, Event, Failure, Job, JobState
from hyperscale.scheduler.queue.reports import ERROR_CHARS_MAX, Beat
from hyperscale.scheduler.queue.spec import RetryPolicy

TRANSIENT_SPREAD_S: Final = 1.0
"""At once for everybody would be a storm."""

CLAIMS_LOST_MAX: Final = 10
"""So many claims without one start, and the job is taken for what kills its workers."""

FINAL: Final = frozenset({Failure.PERMANENT, Failure.CANCELLED, Failure.NEVER_STARTED})
ELSEWHERE: Final = frozenset({Failure.EXHAUSTED, Failure.TIMEOUT, Failure.WORKER_LOST})


class Retry(NamedTuple):
    delay_s: float
    elsewhere: bool


def decide_retry(policy: RetryPolicy, failure: Failure, retries: int, job_id: str) -> Retry | None:
    """What follows the failure of a job that was retried `retries` times; None: it is over."""
    if failure in FINAL or retries >= policy.max_retries:
        return None
    number = retries + 1
    roll = jitter("retry", job_id, number)
    if failure is Failure.TRANSIENT:
        return Retry(roll * TRANSIENT_SPREAD_S, elsewhere=False)
    delay = grown_s(policy.initial_s, retries, policy.max_s, policy.factor)
    return Retry(delay * (1 + policy.jitter * (2 * roll - 1)), failure in ELSEWHERE)


KILL_GRACE_S: Final = 15.0
"""A worker gets one heartbeat interval to kill a job past its timeout and to say so."""

AVOID_S: Final = 10.0
"""So long a retry is kept from the worker where it failed; then any worker is better than none."""


COMPLETED: Final = "completed"
FAILED: Final = "failed"
RELEASED: Final = "released"
"""What a worker gave its job away with: `last_report`. A holder's other reports leave none."""


class Step(NamedTuple):
    job: Job
    attempt: Attempt | None = None


def to(job: Job, event: Event) -> JobState:
    state = TRANSITIONS[job.state].get(event)
    if state is None:
        raise IllegalTransition(job.id, job.state, event)
    return state


def claimed(job: Job, worker: str, token: int, now: Instant, lease_s: float) -> Job:
    assert token > job.token, "a token only grows"
    return replace(
        job,
        state=to(job, Event.CLAIM),
        worker=worker,
        token=token,
        claimed_at=now,
        lease_until=after(now, lease_s),
        updated_at=now,
    )


def started(job: Job, now: Instant, lease_s: float) -> Job:
    return replace(
        job,
        state=to(job, Event.START),
        started_at=now,
        lease_until=_lease_end(job, now, lease_s, now, job.progress_at),
        progress=0.0,
        last_report="",
        updated_at=now,
    )


def beaten(job: Job, now: Instant, beat: Beat) -> Job:
    to(job, Event.BEAT)
    progress = job.progress if beat.progress is None else beat.progress
    if beat.moved or progress != job.progress:
        job = replace(job, progress=min(1.0, max(0.0, progress)), progress_at=now)
    until = _lease_end(job, now, beat.lease_s, job.started_at, job.progress_at)
    return replace(job, lease_until=until, last_report="", updated_at=now)


def _lease_end(
    job: Job, now: Instant, lease_s: float, started_at: Instant | None, progress_at: Instant | None
) -> Instant:
    """A heartbeat proves that the worker lives, not that the job moves: no lease reaches beyond the
    job's timeout or its patience for progress."""
    until = after(now, lease_s)
    if started_at is None:
        return until
    spec = job.spec
    if spec.timeout_s is not None:
        until = min(until, after(started_at, spec.timeout_s + KILL_GRACE_S))
    if spec.stall_timeout_s is not None:
        moved_at = started_at if progress_at is None else progress_at
        until = min(until, after(moved_at, spec.stall_timeout_s))
    return until


def completed(job: Job, now: Instant, exit_code: int | None, log: str) -> Step:
    done = replace(
        job,
        state=to(job, Event.COMPLETE),
        worker="",
        lease_until=None,
        progress=1.0,
        failure=None,
        error="",
        last_report=COMPLETED,
        finished_at=now,
        updated_at=now,
    )
    return Step(done, _attempt(job, now, Outcome.COMPLETED, exit_code=exit_code, log=log))


def released(job: Job, now: Instant, delay_s: float, reason: str) -> Step:
    """What shall wait was not begun, so it leaves no attempt: a target that is down for a day
    would leave thousands."""
    attempt: Attempt | None = None
    if job.cancel_requested:
        over, attempt = _stopped(job, "", now)
    elif delay_s > 0:
        over = _put_off(_queued(job, to(job, Event.RELEASE), now), delay_s, reason)
    else:
        over = _queued(job, to(job, Event.RELEASE), now)
        attempt = _attempt(job, now, Outcome.RELEASED)
    return Step(replace(over, last_report=RELEASED), attempt)


def failed(
    job: Job, failure: Failure, error: str, now: Instant, exit_code: int | None, log: str
) -> Step:
    """A failure the worker reports."""
    over, attempt = _failed(job, failure, error, now, Outcome.FAILED)
    return Step(replace(over, last_report=FAILED), replace(attempt, exit_code=exit_code, log=log))


def taken_away(job: Job, token: int, now: Instant) -> Step:
    """Its lease ended or its worker is lost; `token` is fresh, the former holder's is void."""
    assert job.held, "only what somebody holds can be taken away"
    assert token > job.token, "a token only grows"
    if job.state is JobState.EXECUTING:
        over, attempt = _failed(job, *_why_lost(job, now), now, Outcome.LOST)
        return Step(replace(over, token=token), attempt)
    lost = job.claims_lost + 1
    error = f"claimed {lost} times and never started"
    if lost >= CLAIMS_LOST_MAX:
        over, attempt = _failed(job, Failure.NEVER_STARTED, error, now, Outcome.LOST)
        return Step(replace(over, token=token, claims_lost=lost), attempt)
    back = _queued(job, to(job, Event.RELEASE), now)
    back = replace(back, token=token, claims_lost=lost, avoid_worker=job.worker)
    return Step(back, _attempt(job, now, Outcome.LOST))


def cancelled(job: Job, now: Instant) -> Step:
    state = to(job, Event.CANCEL)
    if state is JobState.EXECUTING:
        return Step(replace(job, cancel_requested=True, updated_at=now))
    attempt = _attempt(job, now, Outcome.CANCELLED) if job.held else None
    over = _ended(job, state, now, Failure.CANCELLED, job.error)
    return Step(replace(over, cancel_requested=True, waiting=False), attempt)


def _why_lost(job: Job, now: Instant) -> tuple[Failure, str]:
    assert job.started_at is not None
    spec = job.spec
    if spec.timeout_s is not None and after(job.started_at, spec.timeout_s) <= now:
        return Failure.TIMEOUT, f"not ended within its timeout of {spec.timeout_s:g} s"
    moved_at = job.started_at if job.progress_at is None else job.progress_at
    if spec.stall_timeout_s is not None and after(moved_at, spec.stall_timeout_s) <= now:
        return Failure.TIMEOUT, f"no progress for {spec.stall_timeout_s:g} s"
    return Failure.WORKER_LOST, f"worker {job.worker} was lost"


def _failed(
    job: Job, failure: Failure, error: str, now: Instant, outcome: Outcome
) -> tuple[Job, Attempt]:
    error = error[:ERROR_CHARS_MAX]
    if job.cancel_requested:
        return _stopped(job, error, now)
    if failure is Failure.CANCELLED:
        failure = Failure.ERROR  # nobody asked for it: a stop of the worker's own making
    attempt = _attempt(job, now, outcome, failure, error)
    retry = decide_retry(job.spec.retry, failure, job.retries, job.id)
    if retry is None:
        return _ended(job, to(job, Event.FAIL), now, failure, error), attempt
    back = _queued(job, to(job, Event.RETRY), now)
    back = replace(
        _put_off(back, retry.delay_s, error),
        retries=job.retries + 1,
        avoid_worker=job.worker if retry.elsewhere else "",
        failure=failure,
    )
    return back, attempt


def _put_off(job: Job, delay_s: float, why: str) -> Job:
    return replace(
        job,
        due_at=after(job.updated_at, delay_s),
        rank=job.spec.priority,
        error=why[:ERROR_CHARS_MAX],
    )


def _stopped(job: Job, error: str, now: Instant) -> tuple[Job, Attempt]:
    over = _ended(job, to(job, Event.STOPPED), now, Failure.CANCELLED, error)
    return over, _attempt(job, now, Outcome.CANCELLED, Failure.CANCELLED, error)


def _queued(job: Job, state: JobState, now: Instant) -> Job:
    return replace(
        job,
        state=state,
        worker="",
        claimed_at=None,
        started_at=None,
        lease_until=None,
        progress=0.0,
        progress_at=None,
        avoid_worker="",
        updated_at=now,
    )


def _ended(job: Job, state: JobState, now: Instant, failure: Failure | None, error: str) -> Job:
    return replace(
        job,
        state=state,
        worker="",
        lease_until=None,
        failure=failure,
        error=error,
        finished_at=now,
        updated_at=now,
    )


def _attempt(
    job: Job,
    now: Instant,
    outcome: Outcome,
    failure: Failure | None = None,
    error: str = "",
    exit_code: int | None = None,
    log: str = "",
) -> Attempt:
    assert job.claimed_at is not None
    return Attempt(
        job_id=job.id,
        token=job.token,
        schedule_id=job.schedule_id,
        worker=job.worker,
        due_at=job.due_at,
        claimed_at=job.claimed_at,
        started_at=job.started_at,
        ended_at=now,
        outcome=outcome,
        failure=failure,
        error=error,
        exit_code=exit_code,
        log=log,
    )

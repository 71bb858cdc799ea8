"""What is wrong, by name: stuck, drifting, starving, skewed and their kin.

Pure: facts in, findings out, worst first. Gathering the facts is the caller's business. What cannot
be seen now, only in how things came to be, `analysis` finds in the logs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.instants import SECOND, Instant, after
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.schedules.schedule import Schedule
from hyperscale.scheduler.schedules.ticks import next_tick, ticks_of
from hyperscale.scheduler.store.claim_guard import Emergency
from hyperscale.scheduler.store.types import Counts
from hyperscale.scheduler.worker.registration import Worker, WorkerState, nobody_can_run

CLAIM_NOT_STARTED_S: Final = 60.0
LEASE_OVERDUE_S: Final = 30.0
DRIFT_S: Final = 5.0
STARVING_S: Final = 30 * 60.0
"""When ageing begins to better a job's priority: now somebody should know."""
SKEW_S: Final = 1.0
SILENT_S: Final = 30.0
LOST_CLAIMS: Final = 3
EXHAUSTED_S: Final = 60.0
TAKING: Final = frozenset({WorkerState.AVAILABLE, WorkerState.BUSY})
RETRIES_MANY: Final = 20
"""Below so many, retries are no storm whatever their share."""
NAMED_MAX: Final = 5


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    severity: Severity
    sentence: str
    advice: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    now: Instant
    leader: str
    """"" when nobody leads."""
    degraded: str
    emergency: Emergency | None = None
    counts: Counts
    next_due: Instant | None = None
    """Of the delayed job that comes first."""
    pending: tuple[Job, ...]
    held: tuple[Job, ...]
    all_seen: bool = True
    """Of the jobs that wait or run."""
    schedules: tuple[Schedule, ...]
    workers: tuple[Worker, ...]


def diagnose(facts: Facts) -> list[Finding]:
    found = [
        *_coordination(facts),
        *_unseen(facts),
        *_workers(facts),
        *_held(facts),
        *_waiting(facts),
        *_retrying(facts),
        *_schedules(facts),
    ]
    return sorted(found, key=lambda one: (one.severity, one.name))


def store_away(why: str) -> Finding:
    """All that can be said then."""
    return Finding(
        "store away",
        Severity.CRITICAL,
        f"the store does not answer: {why}",
        "what was acknowledged is safe in it; look at the store, and the way to it",
    )


def _unseen(facts: Facts) -> list[Finding]:
    if facts.all_seen:
        return []
    seen = len(facts.pending) + len(facts.held)
    return [
        Finding(
            "not all seen",
            Severity.WARNING,
            f"only the newest {seen:,} jobs that wait or run were looked at",
            "what is wrong with an older one is not named here: list jobs by state",
        )
    ]


def _coordination(facts: Facts) -> list[Finding]:
    found = []
    if facts.emergency is not None:
        why = f": {facts.emergency.reason}" if facts.emergency.reason else ""
        found.append(
            Finding(
                "stopped",
                Severity.CRITICAL,
                f"{facts.emergency.actor} stopped everything{why}",
                "hyperscale scheduler go ends it",
            )
        )
    if facts.degraded:
        found.append(
            Finding(
                "degraded",
                Severity.CRITICAL,
                f"the scheduler says: {facts.degraded}",
                "look at its store and its election service; it goes on by itself when they answer",
            )
        )
    if not facts.leader:
        found.append(
            Finding(
                "no leader",
                Severity.CRITICAL,
                "nobody leads: no schedule ticks and no lost job comes back",
                "after a crash the next leader takes over when the lease ends; "
                "then look at the election service",
            )
        )
    return found


def _workers(facts: Facts) -> list[Finding]:
    found = []
    alive = [w for w in facts.workers if w.state is not WorkerState.UNAVAILABLE]
    if not alive:
        found.append(
            Finding(
                "no workers",
                Severity.CRITICAL,
                "no worker is there to run anything",
                "start one: hyperscale scheduler worker",
            )
        )
    ahead = [w.id for w in alive if w.seen_at > after(facts.now, SKEW_S)]
    if ahead:
        found.append(
            finding(
                "skewed",
                Severity.WARNING,
                "heard of in the future, so clocks differ by more than a second",
                "synchronise the clocks (NTP) of workers and coordinators",
                ahead,
            )
        )
    silent = [w.id for w in alive if w.seen_at < after(facts.now, -SILENT_S)]
    if len(silent) > 1 and len(silent) > len(alive) / 2:
        found.append(
            finding(
                "mass silence",
                Severity.CRITICAL,
                f"most workers have sent no heartbeat for {SILENT_S:.0f} s",
                "a partition or a stopped store rather than dead workers: look there first",
                silent,
            )
        )
    elif silent:
        found.append(
            finding(
                "silent",
                Severity.WARNING,
                f"no heartbeat for {SILENT_S:.0f} s",
                "its jobs come back by themselves after 45 s; look at the machine",
                silent,
            )
        )
    return found


def _held(facts: Facts) -> list[Finding]:
    unstarted = [
        job.id
        for job in facts.held
        if job.state is JobState.CLAIMED
        and job.claimed_at is not None
        and after(job.claimed_at, CLAIM_NOT_STARTED_S) < facts.now
    ]
    overdue = [
        job.id
        for job in facts.held
        if job.lease_until is not None and after(job.lease_until, LEASE_OVERDUE_S) < facts.now
    ]
    stalled = [
        job.id
        for job in facts.held
        if job.spec.stall_timeout_s is not None
        and after(job.progress_at or job.started_at or facts.now, job.spec.stall_timeout_s)
        < facts.now
    ]
    stuck = list(dict.fromkeys([*unstarted, *overdue, *stalled]))
    found = []
    if stuck:
        found.append(
            finding(
                "stuck",
                Severity.CRITICAL,
                "should have started, moved or come back by now",
                "the leader's sweep takes them back; if it does not, it is not running",
                stuck,
            )
        )
    bouncing = [job.id for job in facts.held + facts.pending if job.claims_lost >= LOST_CLAIMS]
    if bouncing:
        found.append(
            finding(
                "bouncing",
                Severity.WARNING,
                f"claimed {LOST_CLAIMS} times or more without a start",
                "it may kill its workers: look at their logs",
                bouncing,
            )
        )
    return found


def _waiting(facts: Facts) -> list[Finding]:
    ready = [job for job in facts.pending if job.due_at <= facts.now and not job.waiting]
    unrunnable = [job.id for job in ready if nobody_can_run(job.spec, facts.workers)]
    old = [
        job.id
        for job in ready
        if after(job.due_at, STARVING_S) < facts.now and job.id not in set(unrunnable)
    ]
    found = []
    late_s = 0.0 if facts.next_due is None else (facts.now - facts.next_due) / SECOND
    if late_s > DRIFT_S:
        found.append(
            Finding(
                "unpromoted",
                Severity.CRITICAL,
                f"the first delayed job was due {late_s:.0f} s ago and is not in the queue yet",
                "the leader does that: it is overloaded, hangs, or nobody leads",
            )
        )
    overdue = [job for job in ready if after(job.due_at, EXHAUSTED_S) < facts.now]
    crowded = [job.id for job in overdue if _all_full(job, facts.workers)]
    if crowded:
        found.append(
            finding(
                "exhausted",
                Severity.WARNING,
                f"due for more than {EXHAUSTED_S:.0f} s while every worker for it is full",
                "add workers or slots",
                crowded,
            )
        )
    if unrunnable:
        found.append(
            finding(
                "unrunnable",
                Severity.WARNING,
                "no worker runs this kind of job or offers the capabilities it needs",
                "start a worker that does, or cancel the job",
                unrunnable,
            )
        )
    if old:
        found.append(
            finding(
                "starving",
                Severity.WARNING,
                f"due for more than {STARVING_S / 60:.0f} minutes",
                "add workers or slots, or lower what runs before it",
                old,
            )
        )
    return found


def _all_full(job: Job, workers: tuple[Worker, ...]) -> bool:
    """Somebody could run it, and none of those has room."""
    able = [w for w in workers if w.state in TAKING and not nobody_can_run(job.spec, (w,))]
    return bool(able) and all(worker.state is WorkerState.BUSY for worker in able)


def _retrying(facts: Facts) -> list[Finding]:
    again = [job for job in facts.pending if job.retries]
    if len(again) < RETRIES_MANY or 2 * len(again) <= len(facts.pending):
        return []
    why, number = Counter(job.error for job in again).most_common(1)[0]
    return [
        Finding(
            "retry storm",
            Severity.WARNING,
            f"{len(again)} of {len(facts.pending)} waiting jobs failed before; {number}: {why}",
            "mend what they call, or give the jobs fewer retries",
        )
    ]


def _schedules(facts: Facts) -> list[Finding]:
    broken = [f"{s.id} ({why})" for s in facts.schedules if (why := _incomputable(s))]
    late = [
        f"{s.id} ({(facts.now - s.next_at) / SECOND:.0f} s)"
        for s in facts.schedules
        if s.next_at is not None and after(s.next_at, DRIFT_S) < facts.now
    ]
    found = []
    if broken:
        found.append(
            finding(
                "set aside",
                Severity.CRITICAL,
                "no tick can be computed",
                "its zone or expression is not known to this version: change the schedule",
                broken,
            )
        )
    if late:
        found.append(
            finding(
                "drifting",
                Severity.CRITICAL,
                f"should have ticked more than {DRIFT_S:.0f} s ago",
                "the leader is overloaded, or nobody leads",
                late,
            )
        )
    return found


def _incomputable(schedule: Schedule) -> str:
    """Why; empty: it has a next tick, needs none, or has had its last."""
    if schedule.next_at is not None or schedule.definition.paused:
        return ""
    try:
        next_tick(schedule.definition, ticks_of(schedule.definition), schedule.cursor)
    except HyperscaleError as error:
        return error.message
    return ""


def finding(
    name: str, severity: Severity, sentence: str, advice: str, subjects: list[str]
) -> Finding:
    """About one subject or many: they follow the sentence."""
    named = ", ".join(subjects[:NAMED_MAX])
    if len(subjects) > NAMED_MAX:
        named += f" and {len(subjects) - NAMED_MAX} more"
    return Finding(name, severity, f"{sentence}: {named}", advice, tuple(subjects))

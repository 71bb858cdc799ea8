"""What clients are told: the scheduler's records in the words of the API, instants as UTC text.

A payload is shown without the secrets its job works with: whoever may look at jobs need not be who
may use their tokens. The worker gets it as it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from pydantic import BaseModel

from hyperscale.scheduler.addresses import without_user
from hyperscale.scheduler.instants import Instant, moment_of
from hyperscale.scheduler.queue.history import DeadLetter
from hyperscale.scheduler.queue.job import Failure, Job, JobState
from hyperscale.scheduler.schedules.schedule import Misfire, Overlap, Schedule
from hyperscale.scheduler.schedules.ticks import zone_of
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.worker.registration import Worker, WorkerState
from hyperscale.workload.secrets import MASK, is_sensitive, mask_args, mask_body, mask_header


def moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else moment_of(instant)


class Submission(BaseModel):
    job_id: str
    """Of a schedule: that of its first run, which exists from `next_run` on."""
    schedule_id: str | None = None
    status: str
    created: bool
    next_run: datetime | None = None
    message: str | None = None


class JobView(BaseModel):
    id: str
    name: str
    kind: str
    state: JobState
    waiting: bool
    priority: int
    effective_priority: int
    payload: dict[str, str]
    tags: dict[str, str]
    capabilities: list[str]
    schedule_id: str
    tick: datetime | None
    scheduled_at: datetime
    created_at: datetime
    updated_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    lease_expiration: datetime | None
    worker_id: str
    fencing_token: int
    retry_count: int
    max_retries: int
    claims_lost: int
    timeout_s: float | None
    stall_timeout_s: float | None
    idempotency_key: str
    correlation_id: str
    retry_of: str
    progress: float
    progress_at: datetime | None
    cancel_requested: bool
    failure: Failure | None
    failure_reason: str

    @classmethod
    def of(cls, job: Job) -> JobView:
        spec = job.spec
        return cls(
            id=job.id,
            name=spec.name,
            kind=spec.kind,
            state=job.state,
            waiting=job.waiting,
            priority=spec.priority,
            effective_priority=job.rank,
            payload=shown(spec.payload),
            tags=spec.tags,
            capabilities=list(spec.capabilities),
            schedule_id=job.schedule_id,
            tick=moment(job.tick),
            scheduled_at=moment_of(job.due_at),
            created_at=moment_of(job.created_at),
            updated_at=moment_of(job.updated_at),
            claimed_at=moment(job.claimed_at),
            started_at=moment(job.started_at),
            completed_at=moment(job.finished_at),
            lease_expiration=moment(job.lease_until),
            worker_id=job.worker,
            fencing_token=job.token,
            retry_count=job.retries,
            max_retries=spec.retry.max_retries,
            claims_lost=job.claims_lost,
            timeout_s=spec.timeout_s,
            stall_timeout_s=spec.stall_timeout_s,
            idempotency_key=job.dedup_key,
            correlation_id=job.correlation_id,
            retry_of=job.retry_of,
            progress=job.progress,
            progress_at=moment(job.progress_at),
            cancel_requested=job.cancel_requested,
            failure=job.failure,
            failure_reason=job.error,
        )


class JobList(BaseModel):
    jobs: list[JobView]
    cursor: str
    """For the next page; empty at the end."""


class MisfireView(BaseModel):
    policy: Misfire
    cap: int
    grace_s: float


class ScheduledWork(BaseModel):
    kind: str
    payload: dict[str, str]
    priority: int
    max_retries: int
    capabilities: list[str]
    tags: dict[str, str]
    timeout_s: float | None
    stall_timeout_s: float | None


class ScheduleView(BaseModel):
    id: str
    name: str
    version: int
    cron: str | None
    run_at: datetime | None
    timezone: str
    dst: str
    misfire: MisfireView
    overlap: Overlap
    jitter_s: float
    start_at: datetime | None
    end_at: datetime | None
    paused: bool
    job: ScheduledWork
    created_at: datetime
    updated_at: datetime
    next_run: datetime | None
    last_tick: datetime | None
    last_job_id: str
    fired: int
    missed: int
    skipped: int
    message: str | None = None

    @classmethod
    def of(cls, schedule: Schedule, message: str | None = None) -> ScheduleView:
        definition, spec = schedule.definition, schedule.definition.job
        misfire = definition.misfire
        return cls(
            id=schedule.id,
            name=definition.name,
            version=schedule.version,
            cron=definition.cron or None,
            run_at=moment(definition.run_at),
            timezone=zone_of(definition),
            dst=definition.dst,
            misfire=MisfireView(policy=misfire.kind, cap=misfire.cap, grace_s=misfire.grace_s),
            overlap=definition.overlap,
            jitter_s=definition.jitter_s,
            start_at=moment(definition.start_at),
            end_at=moment(definition.end_at),
            paused=definition.paused,
            job=ScheduledWork(
                kind=spec.kind,
                payload=shown(spec.payload),
                priority=spec.priority,
                max_retries=spec.retry.max_retries,
                capabilities=list(spec.capabilities),
                tags=spec.tags,
                timeout_s=spec.timeout_s,
                stall_timeout_s=spec.stall_timeout_s,
            ),
            created_at=moment_of(schedule.created_at),
            updated_at=moment_of(schedule.updated_at),
            next_run=moment(schedule.next_at),
            last_tick=moment(schedule.last_tick),
            last_job_id=schedule.last_job_id,
            fired=schedule.fired,
            missed=schedule.missed,
            skipped=schedule.skipped,
            message=message,
        )


class ScheduleList(BaseModel):
    schedules: list[ScheduleView]
    cursor: str


class FiredView(BaseModel):
    jobs: list[str]
    existing: int
    skipped: int


class Preview(BaseModel):
    runs: list[datetime]
    words: str | None = None
    warnings: list[str] = []


class WorkerView(BaseModel):
    id: str
    address: str
    state: WorkerState
    capacity: int
    current_jobs: int
    capabilities: list[str]
    metadata: dict[str, str]
    session: int
    started_at: datetime
    last_heartbeat: datetime

    @classmethod
    def of(cls, worker: Worker) -> WorkerView:
        return cls(
            id=worker.id,
            address=worker.address,
            state=worker.state,
            capacity=worker.capacity,
            current_jobs=worker.running,
            capabilities=list(worker.capabilities),
            metadata=worker.metadata,
            session=worker.session,
            started_at=moment_of(worker.started_at),
            last_heartbeat=moment_of(worker.seen_at),
        )


class WorkerList(BaseModel):
    workers: list[WorkerView]
    cursor: str


class LetterView(BaseModel):
    id: str
    reason: str
    at: datetime
    job: JobView

    @classmethod
    def of(cls, letter: DeadLetter) -> LetterView:
        return cls(
            id=letter.id,
            reason=letter.reason,
            at=moment_of(letter.at),
            job=JobView.of(letter.job),
        )


class LetterList(BaseModel):
    letters: list[LetterView]
    cursor: str


class AuditView(BaseModel):
    sequence: int
    at: datetime
    actor: str
    role: str
    action: str
    target: str
    outcome: str
    source: str
    detail: str
    digest: str

    @classmethod
    def of(cls, row: Audit) -> AuditView:
        return cls(
            sequence=row.sequence,
            at=moment_of(row.at),
            actor=row.actor,
            role=row.role,
            action=row.action,
            target=row.target,
            outcome=row.outcome,
            source=row.source,
            detail=row.detail,
            digest=row.digest,
        )


class AuditList(BaseModel):
    rows: list[AuditView]


class AuditVerdict(BaseModel):
    good: bool
    rows: int
    first: int
    """Older rows were removed by retention; the chain is followed from here."""
    broken_at: int | None


def shown(payload: Mapping[str, str]) -> dict[str, str]:
    return {key: _shown(key, value) for key, value in payload.items()}


def _shown(key: str, value: str) -> str:
    if is_sensitive(key):
        return MASK
    if key not in ("args", "argv", "env", "headers"):
        return without_user(mask_body(value))
    try:
        nested = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return MASK
    without = _without_secrets(key, nested)
    return value if without == nested else msgspec.json.encode(without).decode()


def _without_secrets(key: str, nested: Any) -> Any:
    if isinstance(nested, dict) and key == "env":
        return dict.fromkeys(nested, MASK)
    if isinstance(nested, dict) and key == "headers":
        return {name: without_user(mask_header(name, str(text))) for name, text in nested.items()}
    if isinstance(nested, list) and all(isinstance(word, str) for word in nested):
        return [without_user(word) for word in mask_args(nested)]
    return msgspec.json.decode(mask_body(msgspec.json.encode(nested).decode()))

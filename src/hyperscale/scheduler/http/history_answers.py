"""What was: attempts of jobs, their logs, runs of schedules."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from hyperscale.scheduler.http.answers import moment
from hyperscale.scheduler.instants import moment_of
from hyperscale.scheduler.queue.history import Attempt, Outcome, Run
from hyperscale.scheduler.queue.job import Failure, JobState


class AttemptView(BaseModel):
    job_id: str
    fencing_token: int
    schedule_id: str
    worker_id: str
    scheduled_at: datetime
    claimed_at: datetime
    started_at: datetime | None
    ended_at: datetime
    duration_s: float | None
    queue_wait_s: float
    outcome: Outcome
    failure: Failure | None
    error: str
    exit_code: int | None
    has_results: bool
    """Of a load test: `GET /api/v1/jobs/{id}/results`."""

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptView:
        started = attempt.started_at
        return cls(
            job_id=attempt.job_id,
            fencing_token=attempt.token,
            schedule_id=attempt.schedule_id,
            worker_id=attempt.worker,
            scheduled_at=moment_of(attempt.due_at),
            claimed_at=moment_of(attempt.claimed_at),
            started_at=moment(started),
            ended_at=moment_of(attempt.ended_at),
            duration_s=None if started is None else (attempt.ended_at - started) / 1e6,
            queue_wait_s=(attempt.claimed_at - attempt.due_at) / 1e6,
            outcome=attempt.outcome,
            failure=attempt.failure,
            error=attempt.error,
            exit_code=attempt.exit_code,
            has_results=attempt.measured,
        )


class AttemptList(BaseModel):
    attempts: list[AttemptView]


class RunView(BaseModel):
    """What became of an instance of a schedule; it outlives the job."""

    job_id: str
    tick: datetime | None
    status: JobState
    started_at: datetime | None
    ended_at: datetime
    duration_s: float | None
    failure: Failure | None
    error: str
    exit_code: int | None
    retries: int
    worker_id: str
    figures: dict[str, float]
    """What it measured: of a load test `requests`, `rate`, `p50_s`, `p95_s`, `p99_s`,
    `failed_share`, `passed`, and `worse` when it was worse than the last good run."""
    has_results: bool

    @classmethod
    def of(cls, run: Run) -> RunView:
        started = run.started_at
        return cls(
            job_id=run.job_id,
            tick=moment(run.tick),
            status=run.state,
            started_at=moment(started),
            ended_at=moment_of(run.ended_at),
            duration_s=None if started is None else (run.ended_at - started) / 1e6,
            failure=run.failure,
            error=run.error,
            exit_code=run.exit_code,
            retries=run.retries,
            worker_id=run.worker,
            figures=run.figures,
            has_results=run.measured,
        )


class RunList(BaseModel):
    runs: list[RunView]
    cursor: str


class LogView(BaseModel):
    job_id: str
    fencing_token: int
    log: str
    """The end of the output."""

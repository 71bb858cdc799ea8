"""Telemetry in numbers and log lines, and in spans when an endpoint for them is given."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from hyperscale.runtime.logs import logger
from hyperscale.scheduler.errors import (
    DedupConflict,
    SchedulerError,
    StaleSession,
    StoreUnavailable,
)
from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue.job import Failure, Job, JobState
from hyperscale.scheduler.queue.reports import Accepted, Answer, Completed, Failed, Refused, Report
from hyperscale.scheduler.schedules.schedule import Fired
from hyperscale.scheduler.store.calls import BEAT, REGISTER
from hyperscale.scheduler.store.types import Submission, Submitted
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.telemetry.hook import Call, Telemetry
from hyperscale.scheduler.telemetry.metrics import Metrics, band
from hyperscale.scheduler.telemetry.traces import Traces, opened

COMPONENT: Final = "store"


class Recording(Telemetry):
    def __init__(self, traces: Traces | None = None) -> None:
        self.metrics = Metrics()
        self._traces = traces
        # Bound once, and asked once whether it is listened to: three lines a job are told here.
        self._log = logger("scheduler.jobs").bind()
        self._talks = self._log.is_enabled_for(logging.INFO)

    def called(
        self, call: Call, took_s: float, trouble: BaseException | None, service: str = COMPONENT
    ) -> None:
        metrics = self.metrics
        if call.coordinates:
            metrics.coordination.labels(call.component, service, call.name).observe(took_s)
        else:
            metrics.operations.labels(call.component, call.name).observe(took_s)
        if call is BEAT and (trouble is None or isinstance(trouble, StoreUnavailable)):
            success = "true" if trouble is None else "false"
            metrics.heartbeats.labels(COMPONENT, success).observe(took_s)
        if trouble is not None:
            self._trouble(call, trouble)
        if self._traces is not None:
            self._traces.called(call, took_s, trouble)

    def _trouble(self, call: Call, error: BaseException) -> None:
        if isinstance(error, StoreUnavailable):
            self.metrics.partitions.inc()
        elif isinstance(error, DedupConflict):
            self.metrics.dedups.labels(COMPONENT, "conflict").inc()
            self._log.warning(events.KEY_REUSED, job_id=error.job_id, warning_reason=error.message)
        elif isinstance(error, StaleSession) and call is REGISTER:
            self._log.warning(
                events.UNREGISTERED, worker_id=error.worker_id, warning_reason=error.message
            )

    def submitted(
        self, submission: Submission, now: Instant, result: Submitted, took_s: float
    ) -> None:
        if submission.dedup is not None:
            outcome = "new" if result.created else "duplicate"
            self.metrics.dedups.labels(COMPONENT, outcome).inc()
        if result.created:
            self._new(result.job, now, took_s)

    def fired(self, now: Instant, results: Sequence[Fired | SchedulerError], took_s: float) -> None:
        for result in results:
            for job in result.jobs if isinstance(result, Fired) else ():
                self._new(job, now, took_s)

    def _new(self, job: Job, now: Instant, took_s: float) -> None:
        kind = self.metrics.kind(job.spec.kind)
        self.metrics.submissions.labels(COMPONENT, band(job), kind).inc()
        self._tell(events.SUBMITTED, job)
        if self._traces is not None:
            self._traces.submitted(job, now, took_s)

    def claimed(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            late_s = max(0, (job.claimed_at or job.updated_at) - job.due_at) / SECOND
            self.metrics.assignments.observe(late_s)
            if job.due_at > job.created_at:
                self.metrics.promotion_lag.observe(late_s)
            self._tell(events.CLAIMED, job, waited_s=round(late_s, 6))
            if self._traces is not None:
                self._traces.claimed(job)

    def reported(
        self, reports: Sequence[Report], now: Instant, answers: Sequence[Answer], took_s: float
    ) -> None:
        for report, answer in zip(reports, answers, strict=True):
            refused = isinstance(answer, Refused)
            self.metrics.tokens.labels(COMPONENT, "refused" if refused else "accepted").inc()
            if isinstance(answer, Refused):
                self._log.warning(
                    events.REFUSED,
                    job_id=answer.job_id,
                    worker_id=report.worker,
                    fencing_token=report.token,
                    warning_reason=str(answer.reason),
                )
            elif not answer.repeated:
                self._accepted(answer, report, now, took_s)

    def _accepted(self, answer: Accepted, report: Report, now: Instant, took_s: float) -> None:
        if isinstance(report, Completed | Failed):
            self._ended(answer.job, report)
        if self._traces is not None:
            self._traces.accepted(answer, report, now, took_s)

    def _ended(self, job: Job, report: Completed | Failed) -> None:
        if isinstance(report, Failed):
            again = "true" if job.state is JobState.PENDING else "false"
            self.metrics.failures.labels(COMPONENT, str(report.failure), again).inc()
        ran_s = None
        if job.ended and job.finished_at is not None and job.started_at is not None:
            success = "true" if job.state is JobState.COMPLETED else "false"
            ran_s = (job.finished_at - job.started_at) / SECOND
            self.metrics.completions.labels(COMPONENT, band(job), success).observe(ran_s)
        self._tell(
            events.ENDED if job.ended else events.BACK,
            job,
            worker_id=report.worker,
            fencing_token=report.token,
            error=job.error,
            took_s=None if ran_s is None else round(ran_s, 6),
        )

    def lost(self, jobs: Sequence[Job]) -> None:
        """Also failures, and nobody is left to report them."""
        for job in jobs:
            if job.state is not JobState.CANCELLED:
                why = str(job.failure or Failure.WORKER_LOST)
                again = "true" if job.state is JobState.PENDING else "false"
                self.metrics.failures.labels(COMPONENT, why, again).inc()
            self._tell(events.LOST, job, error=job.error)
            if self._traces is not None:
                self._traces.lost(job)

    def took_lead(self, epoch: int) -> None:
        self.metrics.elections.inc()
        self._log.info("leadership taken", operation_result="leader", epoch=epoch)

    def traceparent(self, job_id: str, token: int, tags: Mapping[str, str]) -> str:
        return "" if self._traces is None else self._traces.traceparent(job_id, token, tags)

    def _tell(self, event: str, job: Job, **more: object) -> None:
        """What is known of the job, and `more` in its place where a report knows better."""
        if not self._talks:
            return
        known = {
            "correlation_id": job.correlation_id or job.id,
            "job_id": job.id,
            "job_type": job.spec.kind,
            "schedule_id": job.schedule_id,
            "worker_id": job.worker,
            "fencing_token": job.token,
        }
        said = {name: value for name, value in {**known, **more}.items() if value not in ("", None)}
        self._log.info(event, operation_result=str(job.state), **said)


@asynccontextmanager
async def recording(endpoint: str, share: float, node: str) -> AsyncIterator[Recording]:
    """Without an endpoint nothing is traced."""
    async with opened(endpoint, share, node) as traces:
        yield Recording(traces)

"""A store that counts: every call is timed, and what it means for the numbers is noted.

It stands between the scheduler and its store, so that coordinator, worker and API are measured in
one place and none of them knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, cast

from hyperscale.runtime.logs import logger
from hyperscale.scheduler.model.errors import DedupConflict, SchedulerError, StoreUnavailable
from hyperscale.scheduler.model.firing import Fired
from hyperscale.scheduler.model.instants import SECOND, Instant
from hyperscale.scheduler.model.job import Job, JobState
from hyperscale.scheduler.model.reports import Accepted, Answer, Completed, Failed, Report
from hyperscale.scheduler.observability.metrics import Metrics, band
from hyperscale.scheduler.stores.contract import Store, Submission, Submitted

COMPONENT: Final = "store"
_UNTIMED: Final = frozenset({"changed", "close"})
"""They wait on purpose."""
_COORDINATION: Final = frozenset({"epoch", "raise_epoch", "get", "put", "delete"})

_log = logger("scheduler.jobs")


def measured(store: Store, metrics: Metrics) -> Store:
    return cast("Store", _Measured(store, metrics))


class _Measured:
    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._noted = _Noted(metrics)
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._store, name)
        if name in _UNTIMED or not inspect.iscoroutinefunction(given):
            return given
        timed = partial(self._timed, name, given)
        setattr(self, name, timed)  # the next call finds it without coming here
        return timed

    async def _timed(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        begun = perf_counter()
        try:
            result = await call(*args, **kwargs)
        except StoreUnavailable:
            self._metrics.partitions.inc()
            raise
        except DedupConflict:
            self._metrics.dedups.labels(COMPONENT, "conflict").inc()
            raise
        finally:
            took_s = perf_counter() - begun
            if name in _COORDINATION:
                self._metrics.coordination.labels(COMPONENT, COMPONENT, name).observe(took_s)
            else:
                self._metrics.operations.labels(COMPONENT, name).observe(took_s)
        if name == "beat":
            self._metrics.heartbeats.labels(COMPONENT, "true").observe(took_s)
        note = getattr(self._noted, name, None)
        if note is not None:
            note(result, *args)
        return result


class _Noted:
    """By the name of the call: its result and its arguments, told in numbers and log lines."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def submit(self, result: Submitted, submission: Submission, now: Instant) -> None:
        job = result.job
        if submission.dedup is not None:
            outcome = "new" if result.created else "duplicate"
            self._metrics.dedups.labels(COMPONENT, outcome).inc()
        if result.created:
            self._submitted(job)

    def _submitted(self, job: Job) -> None:
        kind = self._metrics.kind(job.spec.kind)
        self._metrics.submissions.labels(COMPONENT, band(job), kind).inc()
        _tell("job submitted", job)

    def submit_batch(
        self,
        results: list[Submitted | SchedulerError],
        submissions: list[Submission],
        now: Instant,
    ) -> None:
        for result, submission in zip(results, submissions, strict=True):
            if isinstance(result, Submitted):
                self.submit(result, submission, now)

    def fire(self, results: list[Fired | SchedulerError], *_: Any) -> None:
        for result in results:
            for job in result.jobs if isinstance(result, Fired) else ():
                self._submitted(job)

    def claim(self, jobs: list[Job], *_: Any) -> None:
        for job in jobs:
            if job.claimed_at is not None:
                late_s = max(0, job.claimed_at - job.due_at) / SECOND
                self._metrics.assignments.observe(late_s)
                if job.due_at > job.created_at:
                    self._metrics.promotion_lag.observe(late_s)
            _tell("job claimed", job)

    def report(self, answer: Answer, report: Report, now: Instant) -> None:
        accepted = isinstance(answer, Accepted)
        self._metrics.tokens.labels(COMPONENT, "accepted" if accepted else "refused").inc()
        if not isinstance(answer, Accepted):
            _log.warning(
                "report refused",
                job_id=answer.job_id,
                worker_id=report.worker,
                fencing_token=report.token,
                warning_reason=str(answer.reason),
            )
            return
        if answer.repeated or not isinstance(report, Completed | Failed):
            return
        job = answer.job
        if isinstance(report, Failed):
            again = "true" if job.state is JobState.PENDING else "false"
            self._metrics.failures.labels(COMPONENT, str(report.failure), again).inc()
        if job.ended and job.finished_at is not None and job.started_at is not None:
            success = "true" if job.state is JobState.COMPLETED else "false"
            took_s = (job.finished_at - job.started_at) / SECOND
            self._metrics.completions.labels(COMPONENT, band(job), success).observe(took_s)
        _tell("job ended" if job.ended else "job goes back", job)

    def report_batch(self, answers: list[Answer], reports: list[Report], now: Instant) -> None:
        for answer, report in zip(answers, reports, strict=True):
            self.report(answer, report, now)

    def raise_epoch(self, _: None, epoch: int) -> None:
        self._metrics.elections.inc()
        _log.info("leadership taken", operation_result="leader", epoch=epoch)


def _tell(event: str, job: Job) -> None:
    _log.info(
        event,
        operation_result=str(job.state),
        correlation_id=job.correlation_id or job.id,
        job_id=job.id,
        job_type=job.spec.kind,
        worker_id=job.worker,
        fencing_token=job.token,
    )

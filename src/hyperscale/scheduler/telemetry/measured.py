"""A store that counts: every call is timed, and what it means for the numbers is noted.

It stands between the scheduler and its store, so that coordinator, worker and API are measured in
one place and none of them knows.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from hyperscale.runtime.logs import logger
from hyperscale.scheduler.errors import DedupConflict, StaleSession, StoreUnavailable
from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.leader.election import Leader, Lease
from hyperscale.scheduler.queue.job import Failure, Job, JobState
from hyperscale.scheduler.queue.reports import Accepted, Answer, Completed, Failed, Refused, Report
from hyperscale.scheduler.store.types import Store, Submission, Submitted
from hyperscale.scheduler.telemetry.listening import Listener
from hyperscale.scheduler.telemetry.metrics import Metrics, band
from hyperscale.scheduler.worker.registration import Worker

T = TypeVar("T")

COMPONENT: Final = "store"
_UNTIMED: Final = frozenset({"changed", "close"})
"""They wait on purpose."""
_COORDINATION: Final = frozenset({"epoch", "raise_epoch", "get", "put", "delete"})


def measured(store: Store, metrics: Metrics, *listeners: Listener) -> Store:
    return cast("Store", _Measured(store, metrics, (_Noted(metrics), *listeners)))


class _Measured:
    def __init__(self, store: Store, metrics: Metrics, listeners: tuple[Listener, ...]) -> None:
        self._store = store
        self._listeners = listeners
        self._of_calls = _of_calls(listeners)
        self._metrics = metrics
        self._log = logger("scheduler.jobs")

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._store, name)
        if name in _UNTIMED or not inspect.iscoroutinefunction(given):
            return given
        notes = [getattr(one, name) for one in self._listeners if hasattr(one, name)]
        timed = partial(self._timed, name, given, notes)
        setattr(self, name, timed)  # the next call finds it without coming here
        return timed

    async def _timed(
        self,
        name: str,
        call: Callable[..., Awaitable[Any]],
        notes: list[Callable[..., None]],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        begun = perf_counter()
        trouble: BaseException | None = None
        try:
            result = await call(*args, **kwargs)
        except BaseException as error:
            trouble = error
            self._trouble(name, error, perf_counter() - begun)
            raise
        finally:
            took_s = perf_counter() - begun
            if name in _COORDINATION:
                self._metrics.coordination.labels(COMPONENT, COMPONENT, name).observe(took_s)
            else:
                self._metrics.operations.labels(COMPONENT, name).observe(took_s)
            for one in self._of_calls:
                one.called(name, took_s, trouble)
        for note in notes:
            note(result, took_s, *args)
        return result

    def _trouble(self, name: str, error: BaseException, took_s: float) -> None:
        if isinstance(error, StoreUnavailable):
            self._metrics.partitions.inc()
            if name == "beat":
                self._metrics.heartbeats.labels(COMPONENT, "false").observe(took_s)
        elif isinstance(error, DedupConflict):
            self._metrics.dedups.labels(COMPONENT, "conflict").inc()
            self._log.warning(
                "key used for other content", job_id=error.job_id, warning_reason=error.message
            )
        elif isinstance(error, StaleSession) and name == "register":
            self._log.warning(
                "registration refused", worker_id=error.worker_id, warning_reason=error.message
            )


def measured_lease(lease: Lease, service: str, metrics: Metrics, *listeners: Listener) -> Lease:
    return _MeasuredLease(lease, service, metrics, listeners)


class _MeasuredLease:
    """What takes, keeps or gives up the lead is timed; what waits or looks is not."""

    def __init__(
        self, lease: Lease, service: str, metrics: Metrics, listeners: tuple[Listener, ...]
    ) -> None:
        self._metrics = metrics
        self._service = service
        self._of_calls = _of_calls(listeners)
        self._lease = lease

    async def acquire(self, floor: int) -> int | None:
        return await self._timed("acquire", self._lease.acquire(floor))

    async def renew(self, token: int) -> bool:
        return await self._timed("renew", self._lease.renew(token))

    async def release(self, token: int) -> None:
        await self._timed("release", self._lease.release(token))

    async def vacant(self, timeout_s: float) -> None:
        await self._lease.vacant(timeout_s)

    async def holder(self) -> Leader | None:
        return await self._lease.holder()

    async def close(self) -> None:
        await self._lease.close()

    async def _timed(self, name: str, call: Awaitable[T]) -> T:
        begun = perf_counter()
        trouble: BaseException | None = None
        try:
            return await call
        except BaseException as error:
            trouble = error
            raise
        finally:
            took_s = perf_counter() - begun
            self._metrics.coordination.labels("election", self._service, name).observe(took_s)
            for one in self._of_calls:
                one.called(name, took_s, trouble)


def _of_calls(listeners: tuple[Listener, ...]) -> list[Listener]:
    """Those who want each call, so that it costs nothing when nobody does."""
    return [one for one in listeners if type(one).called is not Listener.called]


class _Noted(Listener):
    """Told in numbers and log lines."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # Bound once, and asked once whether it is listened to: three lines a job are told here.
        self._log = logger("scheduler.jobs").bind()
        self._talks = self._log.is_enabled_for(logging.INFO)

    def beat(self, _: Worker, took_s: float, *__: Any) -> None:
        self._metrics.heartbeats.labels(COMPONENT, "true").observe(took_s)

    def submit(
        self, result: Submitted, took_s: float, submission: Submission, now: Instant
    ) -> None:
        if submission.dedup is not None:
            outcome = "new" if result.created else "duplicate"
            self._metrics.dedups.labels(COMPONENT, outcome).inc()
        super().submit(result, took_s, submission, now)

    def submitted(self, job: Job, now: Instant, took_s: float) -> None:
        kind = self._metrics.kind(job.spec.kind)
        self._metrics.submissions.labels(COMPONENT, band(job), kind).inc()
        self._tell("job submitted", job)

    def claimed(self, job: Job) -> None:
        late_s = max(0, (job.claimed_at or job.updated_at) - job.due_at) / SECOND
        self._metrics.assignments.observe(late_s)
        if job.due_at > job.created_at:
            self._metrics.promotion_lag.observe(late_s)
        self._tell("job claimed", job, waited_s=round(late_s, 6))

    def report(self, answer: Answer, took_s: float, report: Report, now: Instant) -> None:
        refused = isinstance(answer, Refused)
        self._metrics.tokens.labels(COMPONENT, "refused" if refused else "accepted").inc()
        if isinstance(answer, Refused):
            self._log.warning(
                "report refused",
                job_id=answer.job_id,
                worker_id=report.worker,
                fencing_token=report.token,
                warning_reason=str(answer.reason),
            )
        super().report(answer, took_s, report, now)

    def accepted(self, answer: Accepted, report: Report, now: Instant, took_s: float) -> None:
        if not isinstance(report, Completed | Failed):
            return
        job = answer.job
        if isinstance(report, Failed):
            again = "true" if job.state is JobState.PENDING else "false"
            self._metrics.failures.labels(COMPONENT, str(report.failure), again).inc()
        ran_s = None
        if job.ended and job.finished_at is not None and job.started_at is not None:
            success = "true" if job.state is JobState.COMPLETED else "false"
            ran_s = (job.finished_at - job.started_at) / SECOND
            self._metrics.completions.labels(COMPONENT, band(job), success).observe(ran_s)
        self._tell(
            "job ended" if job.ended else "job goes back",
            job,
            worker_id=report.worker,
            fencing_token=report.token,
            error=job.error,
            took_s=None if ran_s is None else round(ran_s, 6),
        )

    def lost(self, job: Job) -> None:
        """Also a failure, and nobody is left to report it."""
        if job.state is not JobState.CANCELLED:
            why = str(job.failure or Failure.WORKER_LOST)
            again = "true" if job.state is JobState.PENDING else "false"
            self._metrics.failures.labels(COMPONENT, why, again).inc()
        self._tell("job lost", job, error=job.error)

    def raise_epoch(self, _: None, took_s: float, epoch: int) -> None:
        self._metrics.elections.inc()
        self._log.info("leadership taken", operation_result="leader", epoch=epoch)

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

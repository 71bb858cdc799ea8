"""One job on this worker, from start to its last report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from hyperscale.runtime.logs import correlated, logger
from hyperscale.scheduler.queue.job import Failure, Job
from hyperscale.scheduler.queue.reports import ERROR_CHARS_MAX, LOG_CHARS_MAX, Completed, Failed
from hyperscale.scheduler.worker.executors.breaker import Breakers, counts, target_of
from hyperscale.scheduler.worker.executors.executor import (
    Broken,
    Done,
    Pipeline,
    Result,
    Task,
    TurnedAway,
    nothing,
    permanent,
)
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.executors.tail import plain
from hyperscale.workload.secrets import mask

_log: Any = logger("scheduler.worker")
CANCELLED_BY_ASKING: Final = "stopped as asked"


class Running:
    """`progress` is the newest the executor told; `task` runs it now."""

    __slots__ = (
        "_as_task",
        "_last_good",
        "admitted",
        "disowned",
        "given_back",
        "job",
        "moved",
        "progress",
        "stopped",
        "target",
        "task",
    )

    def __init__(
        self, job: Job, last_good: Callable[[], Awaitable[bytes | None]] = nothing
    ) -> None:
        self.job = job
        self._last_good = last_good
        self.target = target_of(job.spec.kind, job.spec.payload)
        """What its circuit breaker is for."""
        self._as_task: Task | None = None
        self.progress: float | None = None
        self.moved = False
        """Since its last heartbeat."""
        self.task: asyncio.Task[None] | None = None
        self.admitted = False
        """Past its circuit breaker already: a pipeline was told of it."""
        self.stopped = False
        self.disowned = False
        """The store refused it: somebody else's now, or nobody's. No report any more."""
        self.given_back = False
        """Released as soon as nothing of it runs here."""

    def told(self, progress: float) -> None:
        self.progress = progress

    def has_moved(self) -> None:
        self.moved = True

    def as_task(self) -> Task:
        """The same each time: a pipeline is told of it first, and then to run it."""
        if self._as_task is None:
            job = self.job
            self._as_task = Task(
                job_id=job.id,
                token=job.token,
                payload=job.spec.payload,
                progress=self.told,
                moved=self.has_moved,
                tags=job.spec.tags,
                correlation_id=job.correlation_id or job.id,
                last_good=self._last_good,
            )
        return self._as_task

    def stop(self) -> None:
        self.stopped = True
        if self.task is not None:
            self.task.cancel()


async def execute(
    running: Running,
    executors: Executors,
    breakers: Breakers,
    clock: Callable[[], float],
    pipeline: Pipeline | None = None,
    upcoming: Sequence[Running] = (),
) -> Result | TurnedAway:
    """Whatever happens, a result; only cancellation passes through."""
    kind, target = running.job.spec.kind, running.target
    executor = executors.get(kind) if pipeline is None else None
    if pipeline is None and executor is None:
        return permanent(f"this worker has no executor {kind!r}")
    if not running.admitted and not breakers.admits(target, now_s := clock()):
        error = f"{mask(target)} keeps failing and rests"
        return TurnedAway(error=error, delay_s=breakers.rest_s(target, now_s))
    task = running.as_task()
    if pipeline is not None:
        # It works for the upcoming ones too: what it logs is not of one job.
        work = pipeline.run(task, [each.as_task() for each in upcoming])
        result = await _result(running.job, work)
    else:
        assert executor is not None
        with correlated(correlation_id=task.correlation_id, job_id=task.job_id):
            result = await _result(running.job, executor.run(task))
    tell(breakers, running, result, clock())
    return result


def tell(breakers: Breakers, running: Running, result: Result, now_s: float) -> None:
    if isinstance(result, Done):
        breakers.ended(running.target, True, now_s)
    elif counts(running.job.spec.kind, result.failure):
        breakers.ended(running.target, False, now_s)


async def _result(job: Job, work: Coroutine[Any, Any, Result]) -> Result:
    try:
        if job.spec.timeout_s is None:
            return await work
        async with asyncio.timeout(job.spec.timeout_s):
            return await work
    except TimeoutError:
        return Broken(
            failure=Failure.TIMEOUT,
            error=f"killed at its timeout of {job.spec.timeout_s or 0:g} s",
        )
    except Exception as error:  # noqa: BLE001 - a plugin's mistake must not end the worker
        with correlated(correlation_id=job.correlation_id or job.id, job_id=job.id):
            _log.error("executor failed", kind=job.spec.kind, error=repr(error), exc_info=error)
        return Broken(failure=Failure.ERROR, error=f"{type(error).__name__}: {error}")


def report_of(job: Job, worker: str, result: Result) -> Completed | Failed:
    log = plain(result.log)[-LOG_CHARS_MAX:]
    if isinstance(result, Done):
        return Completed(
            job_id=job.id,
            worker=worker,
            token=job.token,
            exit_code=result.exit_code,
            log=log,
            figures=dict(result.figures),
            results=result.results,
        )
    return Failed(
        job_id=job.id,
        worker=worker,
        token=job.token,
        failure=result.failure,
        error=plain(result.error)[:ERROR_CHARS_MAX],
        exit_code=result.exit_code,
        log=log,
        figures=dict(result.figures),
        results=result.results,
    )

"""The contract in terms of atomic steps: what all stores share.

A store brings the ground: how a step becomes atomic (`_write`), how records are looked up, and its
indexes. Everything a method means is in `operations`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue import operations as jobs
from hyperscale.scheduler.queue import sweeps
from hyperscale.scheduler.queue.history import Attempt, Audit, DeadLetter
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.operations import EPOCH_KEY
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.queue.reports import Answer, Report
from hyperscale.scheduler.schedules import operations as schedules
from hyperscale.scheduler.schedules.schedule import Fired, Firing, Schedule, ScheduleDefinition
from hyperscale.scheduler.store import values
from hyperscale.scheduler.store.tables import (
    ATTEMPTS,
    AUDITS,
    DEDUPS,
    EPOCHS,
    LETTERS,
    LOGS,
    SCHEDULES,
    VALUES,
    WORKERS,
    Kind,
    Operation,
    attempt_key,
    audit_key,
)
from hyperscale.scheduler.store.types import (
    BATCH_MAX,
    PAGE_MAX,
    Claim,
    Counts,
    JobFilter,
    JobPage,
    Keep,
    Purged,
    StoreLimits,
    Submission,
    Submitted,
    Value,
    cursor_of,
    position_of,
)
from hyperscale.scheduler.store.wakeups import Wakeups
from hyperscale.scheduler.worker import operations as workers
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerEvent

T = TypeVar("T")


class RecordStore(ABC):
    def __init__(self, limits: StoreLimits, wakeups: Wakeups) -> None:
        self._limits = limits
        self._wakeups = wakeups

    # The ground.

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def claim(self, claim: Claim, now: Instant) -> list[Job]: ...

    @abstractmethod
    async def promote(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int: ...

    @abstractmethod
    async def counts(self) -> Counts: ...

    @abstractmethod
    async def _write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> list[T | SchedulerError]:
        """Each step atomic, in order, each outcome in its place. `job_ids` may tell beforehand of
        jobs that the steps will ask for."""

    @abstractmethod
    async def _get_many(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]: ...

    @abstractmethod
    async def _page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        """By key: those that start with `prefix` and come after `behind`."""

    @abstractmethod
    async def _due(self, kind: Kind[Any], until: Instant | None, limit: int) -> list[str]:
        """Keys by their index instant, up to and including `until`; None: all."""

    @abstractmethod
    async def _earliest(self, kind: Kind[Any]) -> Instant | None: ...

    @abstractmethod
    async def _count(self, kind: Kind[Any]) -> int: ...

    @abstractmethod
    async def _jobs_by_id(self, job_ids: Sequence[str]) -> list[Job | None]: ...

    @abstractmethod
    async def _due_jobs(self, place: Place, until: Instant, limit: int) -> list[str]: ...

    @abstractmethod
    async def _earliest_job(self, place: Place) -> Instant | None: ...

    @abstractmethod
    async def _held_by(self, worker_id: str, limit: int) -> list[str]: ...

    @abstractmethod
    async def _find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        """Newest first: those that match and come after (created_at, id) `behind`."""

    async def _get(self, kind: Kind[T], key: str) -> T | None:
        (value,) = await self._get_many(kind, [key])
        return value

    async def _step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> T:
        (outcome,) = await self._write([step], job_ids)
        if isinstance(outcome, SchedulerError):
            raise outcome
        return outcome

    # Jobs.

    async def submit(self, submission: Submission, now: Instant) -> Submitted:
        step = partial(jobs.submit, submission=submission, now=now, limits=self._limits)
        return await self._step(step, (submission.job.id,))

    async def submit_batch(
        self, submissions: Sequence[Submission], now: Instant
    ) -> list[Submitted | SchedulerError]:
        return await self._write(
            [partial(jobs.submit, submission=s, now=now, limits=self._limits) for s in submissions],
            [submission.job.id for submission in submissions],
        )

    async def report(self, report: Report, now: Instant) -> Answer:
        return await self._step(partial(jobs.report, said=report, now=now))

    async def report_batch(self, reports: Sequence[Report], now: Instant) -> list[Answer]:
        steps: list[Operation[Answer]] = [partial(jobs.report, said=r, now=now) for r in reports]
        return _all(await self._write(steps, [report.job_id for report in reports]))

    async def cancel(self, job_id: str, now: Instant) -> Job:
        return await self._step(partial(jobs.cancel, job_id=job_id, now=now))

    async def retry(self, job_id: str, new_id: str, now: Instant) -> Job:
        return await self._step(
            partial(jobs.retry, job_id=job_id, new_id=new_id, now=now, limits=self._limits)
        )

    async def job(self, job_id: str) -> Job | None:
        (job,) = await self._jobs_by_id([job_id])
        return job

    async def jobs(self, job_filter: JobFilter, cursor: str = "", limit: int = 100) -> JobPage:
        limit = min(limit, PAGE_MAX)
        found = await self._find(job_filter, position_of(cursor), limit + 1)
        page = found[:limit]
        return JobPage(tuple(page), cursor_of(page[-1]) if len(found) > limit else "")

    async def attempts(self, job_id: str, limit: int = PAGE_MAX) -> list[Attempt]:
        return await self._page(ATTEMPTS, f"{job_id}/", "", min(limit, PAGE_MAX))

    async def log(self, job_id: str, token: int) -> str | None:
        log = await self._get(LOGS, attempt_key(job_id, token))
        return None if log is None else log.text

    # Wake-ups.

    def mark(self) -> int:
        return self._wakeups.mark

    async def changed(self, mark: int, timeout_s: float) -> bool:
        return await self._wakeups.changed(mark, timeout_s)

    async def next_due(self, now: Instant) -> Instant | None:
        return await self._earliest_job(Place.DELAYED)

    # Sweeps.

    async def expire(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> list[Job]:
        ids = await self._due_jobs(Place.HELD, now, min(limit, BATCH_MAX))
        return await self._sweep(
            [partial(sweeps.expire, job_id=i, now=now, epoch=epoch) for i in ids]
        )

    async def recover_worker(
        self, worker_id: str, now: Instant, limit: int = BATCH_MAX, epoch: int = 0
    ) -> list[Job]:
        ids = await self._held_by(worker_id, min(limit, BATCH_MAX))
        return await self._sweep(
            [
                partial(sweeps.recover, job_id=i, worker_id=worker_id, now=now, epoch=epoch)
                for i in ids
            ]
        )

    async def age(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int:
        ids = await self._due_jobs(Place.READY, now, min(limit, BATCH_MAX))
        return len(
            await self._sweep([partial(sweeps.age, job_id=i, now=now, epoch=epoch) for i in ids])
        )

    async def purge(
        self, now: Instant, keep: Keep, limit: int = BATCH_MAX, epoch: int = 0
    ) -> Purged:
        limit = min(limit, BATCH_MAX)
        before = after(now, -keep.job_s)
        ids = await self._due_jobs(Place.DONE, before, limit)
        gone = await self._sweep(
            [partial(sweeps.purge_job, job_id=i, before=before, epoch=epoch) for i in ids]
        )
        crowded = await self._count(LETTERS) - self._limits.letters_max
        return Purged(
            jobs=len(gone),
            dedups=await self._purge(DEDUPS, now, limit, epoch),
            logs=await self._purge(LOGS, after(now, -keep.log_s), limit, epoch),
            attempts=await self._purge(ATTEMPTS, after(now, -keep.attempt_s), limit, epoch),
            letters=await self._purge(LETTERS, after(now, -keep.letter_s), limit, epoch)
            + await self._purge(LETTERS, now, min(limit, max(0, crowded)), epoch),
            workers=await self._purge(WORKERS, after(now, -keep.worker_s), limit, epoch),
            audits=await self._purge_audits(after(now, -keep.audit_s), limit, epoch),
        )

    async def _purge(self, kind: Kind[Any], before: Instant, limit: int, epoch: int) -> int:
        keys = await self._due(kind, before, limit) if limit > 0 else []
        return await self._purge_keys(kind, keys, before, epoch)

    async def _purge_audits(self, before: Instant, limit: int, epoch: int) -> int:
        """None behind one that stays, as one does that was written under a clock that stood ahead:
        a hole in the chain looks like tampering."""
        due = await self._due(AUDITS, before, limit)
        oldest = await self._page(AUDITS, "", "", len(due)) if due else []
        gone = takewhile(lambda row: row.at <= before, oldest)
        keys = [audit_key(row.sequence) for row in gone]
        return await self._purge_keys(AUDITS, keys, before, epoch)

    async def _purge_keys(
        self, kind: Kind[Any], keys: Sequence[str], before: Instant, epoch: int
    ) -> int:
        steps = [
            partial(sweeps.purge, kind=kind, key=key, before=before, epoch=epoch) for key in keys
        ]
        return len(await self._sweep(steps))

    async def _sweep(self, steps: Sequence[Operation[T | None]]) -> list[T]:
        """What was done; a refusal (a newer leader) ends the sweep."""
        return [outcome for outcome in _all(await self._write(steps)) if outcome]

    # Schedules.

    async def create_schedule(self, schedule: Schedule) -> Schedule:
        return await self._step(partial(schedules.create, schedule=schedule, limits=self._limits))

    async def update_schedule(
        self,
        schedule_id: str,
        version: int,
        definition: ScheduleDefinition,
        now: Instant,
        next_at: Instant | None,
        cursor: Instant | None = None,
        skipped: int = 0,
        before: Instant | None = None,
    ) -> Schedule:
        return await self._step(
            partial(
                schedules.update,
                schedule_id=schedule_id,
                version=version,
                definition=definition,
                now=now,
                next_at=next_at,
                cursor=cursor,
                skipped=skipped,
                before=before,
            )
        )

    async def delete_schedule(self, schedule_id: str, version: int | None = None) -> Schedule:
        return await self._step(partial(schedules.delete, schedule_id=schedule_id, version=version))

    async def schedule(self, schedule_id: str) -> Schedule | None:
        return await self._get(SCHEDULES, schedule_id)

    async def schedules(self, after: str = "", limit: int = PAGE_MAX) -> list[Schedule]:
        return await self._page(SCHEDULES, "", after, min(limit, PAGE_MAX))

    async def due_schedules(self, now: Instant, limit: int = BATCH_MAX) -> list[Schedule]:
        keys = await self._due(SCHEDULES, now, min(limit, BATCH_MAX))
        found = await self._get_many(SCHEDULES, keys)
        return [schedule for schedule in found if schedule is not None]

    async def next_schedule_at(self) -> Instant | None:
        return await self._earliest(SCHEDULES)

    async def fire(
        self, firings: Sequence[Firing], now: Instant, epoch: int = 0
    ) -> list[Fired | SchedulerError]:
        return await self._write(
            [
                partial(schedules.fire, firing=f, now=now, epoch=epoch, limits=self._limits)
                for f in firings
            ]
        )

    # Dead letters.

    async def letters(self, after: str = "", limit: int = PAGE_MAX) -> list[DeadLetter]:
        return await self._page(LETTERS, "", after, min(limit, PAGE_MAX))

    async def letter(self, job_id: str) -> DeadLetter | None:
        return await self._get(LETTERS, job_id)

    async def replay(self, job_id: str, new_id: str, now: Instant) -> Job:
        return await self._step(
            partial(jobs.replay, job_id=job_id, new_id=new_id, now=now, limits=self._limits)
        )

    async def drop(self, job_id: str) -> DeadLetter:
        return await self._step(partial(jobs.drop_letter, job_id=job_id))

    # Workers.

    async def register(self, worker: Worker, now: Instant, alive_for_s: float) -> Worker:
        return await self._step(
            partial(
                workers.register,
                worker=worker,
                now=now,
                alive_for_s=alive_for_s,
                limits=self._limits,
            )
        )

    async def beat(self, beat: WorkerBeat, now: Instant) -> Worker:
        return await self._step(partial(workers.beat, said=beat, now=now))

    async def move_worker(self, worker_id: str, event: WorkerEvent) -> Worker:
        return await self._step(partial(workers.move, worker_id=worker_id, event=event))

    async def remove_worker(self, worker_id: str) -> None:
        await self._step(partial(workers.remove, worker_id=worker_id))

    async def workers(self, after: str = "", limit: int = PAGE_MAX) -> list[Worker]:
        return await self._page(WORKERS, "", after, min(limit, PAGE_MAX))

    # The rest.

    async def audit(self, row: Audit) -> Audit:
        return await self._step(partial(values.audit, row=row))

    async def audits(self, after: int = 0, limit: int = PAGE_MAX) -> list[Audit]:
        return await self._page(AUDITS, "", audit_key(after), min(limit, PAGE_MAX))

    async def get(self, key: str) -> Value | None:
        return await self._get(VALUES, key)

    async def put(self, key: str, data: bytes, version: int) -> Value:
        return await self._step(partial(values.put, key=key, data=data, version=version))

    async def delete(self, key: str, version: int) -> None:
        await self._step(partial(values.delete, key=key, version=version))

    async def epoch(self) -> int:
        return await self._get(EPOCHS, EPOCH_KEY) or 0

    async def raise_epoch(self, epoch: int) -> None:
        await self._step(partial(values.raise_epoch, epoch=epoch))


def _all(outcomes: list[T | SchedulerError]) -> list[T]:
    done: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, SchedulerError):
            raise outcome
        done.append(outcome)
    return done

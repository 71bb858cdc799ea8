"""The scheduler's store: what coordinator, API and workers know of where everything is kept.

An operation is a function of `Records`, written once for all databases (`queue.operations`,
`schedules.operations`, `worker.operations`, `store.values`); a `Ground` makes it atomic. Why:
docs/decisions/0031-operations-are-functions-of-records.md.

# Rules that hold for each method

- Atomic: it happens whole or not at all, also when the process dies inside it. A method that takes
  many things (`report_batch`, `fire`, sweeps) is atomic per thing.
- Durable before it returns, as far as the ground promises durability at all.
- Repeatable: after StoreUnavailable, or a lost answer, call it again.
- Time is an argument. Instants are microseconds since 1970 UTC. Leases are judged by the clock of
  whoever sweeps, so they are right up to the skew between coordinators.
- `epoch` is the coordinator's fencing token. A call with an older one than the store has seen
  raises StaleLeader and changes nothing; 0 means "no coordinator is involved".
- Refusals are the types of `scheduler.errors`; batches give them as values, in place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue import operations as queue
from hyperscale.scheduler.queue import sweeps
from hyperscale.scheduler.queue.history import Attempt, DeadLetter, Run
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.queue.reports import Answer, Report
from hyperscale.scheduler.schedules import operations as schedules
from hyperscale.scheduler.schedules.schedule import Fired, Firing, Schedule, ScheduleDefinition
from hyperscale.scheduler.store import calls, values
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.store.claim_guard import ClaimGuard, Emergency
from hyperscale.scheduler.store.ground import Ground, accepted
from hyperscale.scheduler.store.tables import (
    ATTEMPTS,
    AUDITS,
    EPOCHS,
    HISTORY,
    LETTERS,
    LOGS,
    RESULTS,
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
    DEFAULT_LIMITS,
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
    Taken,
    Value,
    cursor_of,
    position_of,
)
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Call, Telemetry
from hyperscale.scheduler.worker import operations as workers
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerEvent

T = TypeVar("T")

LOOK_BACK: Final = 100
"""Runs, for the last good one."""


class Store:
    def __init__(
        self,
        ground: Ground,
        limits: StoreLimits = DEFAULT_LIMITS,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        """The ground is closed with the store."""
        self._ground = ground
        self._limits = limits
        self._telemetry = telemetry
        self._guard = ClaimGuard(limits.suspect_after_s, self.get, self.worker)

    async def close(self) -> None:
        await self._ground.close()

    def _run(
        self, call: Call, work: Awaitable[T], note: Callable[[T, float], None] | None = None
    ) -> Awaitable[T]:
        """Every call passes here. `note` gets the result and the seconds, if anybody listens."""
        return work if self._telemetry is NO_TELEMETRY else self._timed(call, work, note)

    async def _timed(
        self, call: Call, work: Awaitable[T], note: Callable[[T, float], None] | None
    ) -> T:
        begun = perf_counter()
        trouble: BaseException | None = None
        try:
            result = await work
        except BaseException as error:
            trouble = error
            raise
        finally:
            took_s = perf_counter() - begun
            self._telemetry.called(call, took_s, trouble)
        if note is not None:
            note(result, took_s)
        return result

    async def _step(self, call: Call, step: Operation[T]) -> T:
        return await self._run(call, self._ground.step(step))

    async def _get(self, call: Call, kind: Kind[T], key: str) -> T | None:
        (value,) = await self._run(call, self._ground.get(kind, (key,)))
        return value

    async def _page(
        self, call: Call, kind: Kind[T], behind: str, limit: int, prefix: str = ""
    ) -> list[T]:
        return await self._run(call, self._ground.page(kind, prefix, behind, min(limit, PAGE_MAX)))

    # Jobs in.

    async def submit(self, submission: Submission, now: Instant) -> Submitted:
        """Raises AlreadyExists, DedupConflict, StoreFull."""
        step = partial(queue.submit, submission=submission, now=now, limits=self._limits)
        work = self._ground.step(step, (submission.job.id,))
        note = partial(self._telemetry.submitted, submission, now)
        return await self._run(calls.SUBMIT, work, note)

    # Jobs out. Best rank first, then due, then created, then id; among jobs the worker can do.

    async def claim(self, claim: Claim, now: Instant) -> list[Job]:
        """Up to `limit` jobs, each with a fresh token; none for a worker that should get none. Some
        due delayed jobs are promoted first; a leader who knows of many calls `promote` until it
        answers 0."""
        if not await self._guard.admits(claim.worker, now):
            return []
        work = self._ground.take(claim, now, queue.PROMOTE_PER_CLAIM)
        taken = await self._run(calls.CLAIM, work, self._claimed)
        for job in taken.jobs:
            assert job.held, "a claimed job is held"
            assert job.worker == claim.worker, "by whoever claimed it"
        return taken.jobs

    def _claimed(self, taken: Taken, took_s: float) -> None:
        self._telemetry.claimed(taken.jobs)

    async def report(self, report: Report, now: Instant) -> Answer:
        work = self._ground.step(partial(queue.report, said=report, now=now))
        return await self._run(calls.REPORT, work, partial(self._reported, report, now))

    def _reported(self, report: Report, now: Instant, answer: Answer, took_s: float) -> None:
        self._telemetry.reported((report,), now, (answer,), took_s)

    async def report_batch(self, reports: Sequence[Report], now: Instant) -> list[Answer]:
        """In the given order; one job may occur more than once."""
        note = partial(self._telemetry.reported, reports, now)
        answers = await self._run(calls.REPORT_BATCH, self._report_batch(reports, now), note)
        assert len(answers) == len(reports), "each report has its answer"
        return answers

    async def _report_batch(self, reports: Sequence[Report], now: Instant) -> list[Answer]:
        steps: list[Operation[Answer]] = [partial(queue.report, said=r, now=now) for r in reports]
        return accepted(await self._ground.write(steps, [report.job_id for report in reports]))

    async def cancel(self, job_id: str, now: Instant) -> Job:
        """Ends it, or asks its worker to (`cancel_requested`). Raises IllegalTransition at an end,
        except that cancelling a cancelled job answers as before."""
        return await self._step(calls.CANCEL, partial(queue.cancel, job_id=job_id, now=now))

    async def retry(self, job_id: str, new_id: str, now: Instant) -> Job:
        """A new job like an ended one. The same `new_id` again answers as before."""
        step = partial(queue.retry, job_id=job_id, new_id=new_id, now=now, limits=self._limits)
        return await self._step(calls.RETRY, step)

    async def time(self) -> Instant | None:
        """What its own clock shows; None: it has none but this machine's."""
        return await self._run(calls.TIME, self._ground.time())

    # Wake-ups: mark, then claim; if nothing came, wait until the mark is old.

    def mark(self) -> int:
        return self._ground.wakeups.mark

    async def changed(self, mark: int, timeout_s: float) -> bool:
        """True as soon as something may have become claimable or due since `mark` was taken, also
        by another process; False after the timeout."""
        return await self._ground.wakeups.changed(mark, timeout_s)

    async def next_due(self) -> Instant | None:
        """When the earliest delayed job is due."""
        return await self._earliest(calls.NEXT_DUE, Place.DELAYED)

    async def _earliest(self, call: Call, index: Kind[Any] | Place) -> Instant | None:
        found = await self._run(call, self._ground.due(index, None, 1))
        return found[0][0] if found else None

    # Sweeps of the leading coordinator; each looks at `limit` things at most.

    async def promote(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int:
        nobody = Claim(worker="", limit=0, epoch=epoch)
        work = self._ground.take(nobody, now, min(limit, BATCH_MAX))
        return (await self._run(calls.PROMOTE, work)).promoted

    async def expire(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> list[Job]:
        """Jobs whose lease had ended, as they are now."""
        work = sweeps.expire(self._ground, now, min(limit, BATCH_MAX), epoch)
        return await self._run(calls.EXPIRE, work, self._lost)

    async def recover_worker(
        self, worker_id: str, now: Instant, limit: int = BATCH_MAX, epoch: int = 0
    ) -> list[Job]:
        """Every job the worker holds, taken away as if its lease had ended."""
        work = sweeps.recover(self._ground, worker_id, now, min(limit, BATCH_MAX), epoch)
        return await self._run(calls.RECOVER_WORKER, work, self._lost)

    def _lost(self, jobs: list[Job], took_s: float) -> None:
        self._telemetry.lost(jobs)

    async def age(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int:
        """Betters the rank of jobs that wait too long."""
        work = sweeps.age(self._ground, now, min(limit, BATCH_MAX), epoch)
        return await self._run(calls.AGE, work)

    async def purge(
        self, now: Instant, keep: Keep, limit: int = BATCH_MAX, epoch: int = 0
    ) -> Purged:
        letters_max = self._limits.letters_max
        work = sweeps.purge(self._ground, letters_max, keep, now, min(limit, BATCH_MAX), epoch)
        return await self._run(calls.PURGE, work)

    # Schedules.

    async def create_schedule(self, schedule: Schedule) -> Schedule:
        step = partial(schedules.create, schedule=schedule, limits=self._limits)
        return await self._step(calls.CREATE_SCHEDULE, step)

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
        """Compare and set on `version`, and on the cursor when `before` says where it was. The
        cursor never moves back."""
        step = partial(
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
        return await self._step(calls.UPDATE_SCHEDULE, step)

    async def delete_schedule(self, schedule_id: str, version: int | None = None) -> Schedule:
        """Instances made already live on."""
        step = partial(schedules.delete, schedule_id=schedule_id, version=version)
        return await self._step(calls.DELETE_SCHEDULE, step)

    async def schedule(self, schedule_id: str) -> Schedule | None:
        return await self._get(calls.SCHEDULE, SCHEDULES, schedule_id)

    async def schedules(self, after: str = "", limit: int = PAGE_MAX) -> list[Schedule]:
        """By id, those behind `after`."""
        return await self._page(calls.SCHEDULES, SCHEDULES, after, limit)

    async def due_schedules(self, now: Instant, limit: int = BATCH_MAX) -> list[Schedule]:
        """Earliest first."""
        work = self._due_schedules(now, min(limit, BATCH_MAX))
        return await self._run(calls.DUE_SCHEDULES, work)

    async def _due_schedules(self, now: Instant, limit: int) -> list[Schedule]:
        due = await self._ground.due(SCHEDULES, now, limit)
        found = await self._ground.get(SCHEDULES, [key for _, key in due])
        return [schedule for schedule in found if schedule is not None]

    async def next_schedule_at(self) -> Instant | None:
        return await self._earliest(calls.NEXT_SCHEDULE_AT, SCHEDULES)

    async def fire(
        self, firings: Sequence[Firing], now: Instant, epoch: int = 0
    ) -> list[Fired | SchedulerError]:
        steps = [
            partial(schedules.fire, firing=f, now=now, epoch=epoch, limits=self._limits)
            for f in firings
        ]
        note = partial(self._telemetry.fired, now)
        return await self._run(calls.FIRE, self._ground.write(steps), note)

    # Looking.

    async def job(self, job_id: str) -> Job | None:
        (job,) = await self._run(calls.JOB, self._ground.jobs((job_id,)))
        return job

    async def jobs(self, job_filter: JobFilter, cursor: str = "", limit: int = 100) -> JobPage:
        limit = min(limit, PAGE_MAX)
        work = self._ground.find(job_filter, position_of(cursor), limit + 1)
        found = await self._run(calls.JOBS, work)
        page = found[:limit]
        return JobPage(tuple(page), cursor_of(page[-1]) if len(found) > limit else "")

    async def attempts(self, job_id: str, limit: int = PAGE_MAX) -> list[Attempt]:
        """Oldest first, without logs; they outlive the job."""
        return await self._page(calls.ATTEMPTS, ATTEMPTS, "", limit, f"{job_id}/")

    async def history(self, schedule_id: str, after: str = "", limit: int = PAGE_MAX) -> list[Run]:
        """What became of the schedule's instances, newest first, behind the run with the key
        `after`; it outlives jobs and attempts."""
        return await self._page(calls.HISTORY, HISTORY, after, limit, f"{schedule_id}/")

    async def results(self, job_id: str, token: int) -> bytes | None:
        """Of a load test, packed; of one attempt."""
        found = await self._get(calls.RESULTS, RESULTS, attempt_key(job_id, token))
        return None if found is None else found.data

    async def last_good(self, schedule_id: str) -> bytes | None:
        """The results of the schedule's newest run that was good and is kept."""
        for run in await self.history(schedule_id, limit=LOOK_BACK):
            if run.state is JobState.COMPLETED and run.measured:
                found = await self.results(run.job_id, run.token)
                if found is not None:
                    return found
        return None

    async def log(self, job_id: str, token: int) -> str | None:
        log = await self._get(calls.LOG, LOGS, attempt_key(job_id, token))
        return None if log is None else log.text

    async def counts(self) -> Counts:
        return await self._run(calls.COUNTS, self._ground.counts())

    # Dead letters.

    async def letters(self, after: str = "", limit: int = PAGE_MAX) -> list[DeadLetter]:
        return await self._page(calls.LETTERS, LETTERS, after, limit)

    async def letter(self, job_id: str) -> DeadLetter | None:
        return await self._get(calls.LETTER, LETTERS, job_id)

    async def replay(self, job_id: str, new_id: str, now: Instant) -> Job:
        """A new job like the dead one, whose letter goes away in the same step."""
        step = partial(queue.replay, job_id=job_id, new_id=new_id, now=now, limits=self._limits)
        return await self._step(calls.REPLAY, step)

    async def drop(self, job_id: str) -> DeadLetter:
        return await self._step(calls.DROP, partial(queue.drop_letter, job_id=job_id))

    # Workers.

    async def register(self, worker: Worker, now: Instant, alive_for_s: float) -> Worker:
        """With its session. Raises StaleSession while another process lives under the id."""
        step = partial(
            workers.register, worker=worker, now=now, alive_for_s=alive_for_s, limits=self._limits
        )
        return self._guard.heard(await self._step(calls.REGISTER, step))

    async def beat(self, beat: WorkerBeat, now: Instant) -> Worker:
        """Raises NotFound (register again) or StaleSession (stop)."""
        step = partial(workers.beat, said=beat, now=now)
        return self._guard.heard(await self._step(calls.BEAT, step))

    async def move_worker(self, worker_id: str, event: WorkerEvent) -> Worker:
        """DRAIN by a person, LOST by the coordinator."""
        step = partial(workers.move, worker_id=worker_id, event=event)
        return await self._step(calls.MOVE_WORKER, step)

    async def remove_worker(self, worker_id: str) -> None:
        await self._step(calls.REMOVE_WORKER, partial(workers.remove, worker_id=worker_id))

    async def worker(self, worker_id: str) -> Worker | None:
        return await self._get(calls.WORKER, WORKERS, worker_id)

    async def workers(self, after: str = "", limit: int = PAGE_MAX) -> list[Worker]:
        return await self._page(calls.WORKERS, WORKERS, after, limit)

    # The rest.

    async def emergency(self, now: Instant) -> Emergency | None:
        """The emergency stop, as it was half a second before `now` at the earliest."""
        return await self._guard.emergency(now)

    async def audit(self, row: Audit) -> Audit:
        """Numbered and chained."""
        return await self._step(calls.AUDIT, partial(values.audit, row=row))

    async def audits(self, after: int = 0, limit: int = PAGE_MAX) -> list[Audit]:
        return await self._page(calls.AUDITS, AUDITS, audit_key(after), limit)

    async def get(self, key: str) -> Value | None:
        return await self._get(calls.GET, VALUES, key)

    async def put(self, key: str, data: bytes, version: int) -> Value:
        """Compare and set; `version` 0 means "not there". Raises VersionConflict."""
        step = partial(values.put, key=key, data=data, version=version)
        value = await self._step(calls.PUT, step)
        self._guard.changed(key)
        return value

    async def delete(self, key: str, version: int) -> None:
        await self._step(calls.DELETE, partial(values.delete, key=key, version=version))
        self._guard.changed(key)

    async def epoch(self) -> int:
        """The highest coordinator epoch seen."""
        return await self._get(calls.EPOCH, EPOCHS, queue.EPOCH_KEY) or 0

    async def raise_epoch(self, epoch: int) -> None:
        """A new leader's first act: from here on older ones are refused. Raises StaleLeader."""
        await self._step(calls.RAISE_EPOCH, partial(values.raise_epoch, epoch=epoch))
        self._telemetry.took_lead(epoch)

"""What the contract's cases share: a scenario runs on a fresh store; short ways to make things.

The cases know only the contract. Memory runs them among the unit tests, SQLite and Redis among the
integration tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue.job import Failure, Job, new_job
from hyperscale.scheduler.queue.reports import Accepted, Beat, Completed, Released, Started
from hyperscale.scheduler.queue.reports import Failed as FailedReport
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.schedules.firing import instance
from hyperscale.scheduler.schedules.schedule import (
    Advance,
    Firing,
    Overlap,
    Schedule,
    ScheduleDefinition,
)
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, Dedup, StoreLimits, Submission, Submitted

NOON: Instant = 1_704_110_400 * SECOND  # 2024-01-01 12:00 UTC
LIMITS = StoreLimits(
    jobs_max=5000, schedules_max=50, workers_max=20, letters_max=10, line_max=3, suspect_after_s=1e9
)

Opener = Callable[[], AbstractAsyncContextManager[Store]]


def scenario(case: Callable[[Any, Store], Awaitable[None]]) -> Callable[[Any, Opener], None]:
    def test(self: Any, opener: Opener) -> None:
        async def run() -> None:
            async with opener() as store, asyncio.timeout(60):
                await case(self, store)

        asyncio.run(run())

    test.__name__ = case.__name__
    test.__doc__ = case.__doc__
    return test


def at(seconds: float) -> Instant:
    return NOON + round(seconds * SECOND)


def spec(name: str = "job", **fields: Any) -> JobSpec:
    fields.setdefault("retry", RetryPolicy(max_retries=2, jitter=0.0))
    return JobSpec(name=name, **{"kind": "python", **fields})


def job(job_id: str, now: Instant = NOON, due_at: Instant | None = None, **fields: Any) -> Job:
    return new_job(job_id, spec(**fields), now, due_at=due_at)


async def submit(store: Store, *jobs: Job) -> None:
    for each in jobs:
        assert (await store.submit(Submission(job=each), each.created_at)).created


async def submit_all(
    store: Store, submissions: Sequence[Submission], now: Instant
) -> list[Submitted | BaseException]:
    """At once, each answer or refusal in its place."""
    return await asyncio.gather(
        *(store.submit(each, now) for each in submissions), return_exceptions=True
    )


def keyed(each: Job, key: str, digest: str = "same", window_s: float = 3600.0) -> Submission:
    return Submission(job=each, dedup=Dedup(key=key, digest=digest, window_s=window_s))


async def take(
    store: Store, worker: str = "w-1", limit: int = 1, now: Instant = NOON, **fields: Any
) -> list[Job]:
    return await store.claim(Claim(worker=worker, limit=limit, **fields), now)


async def take_one(store: Store, worker: str = "w-1", now: Instant = NOON, **fields: Any) -> Job:
    (taken,) = await take(store, worker, 1, now, **fields)
    return taken


def started(held: Job, lease_s: float = 45.0) -> Started:
    return Started(job_id=held.id, worker=held.worker, token=held.token, lease_s=lease_s)


def beat(
    held: Job, progress: float | None = None, lease_s: float = 45.0, moved: bool = False
) -> Beat:
    return Beat(
        job_id=held.id,
        worker=held.worker,
        token=held.token,
        lease_s=lease_s,
        progress=progress,
        moved=moved,
    )


def completed(held: Job, log: str = "") -> Completed:
    return Completed(job_id=held.id, worker=held.worker, token=held.token, exit_code=0, log=log)


def failed(held: Job, failure: Failure = Failure.ERROR, error: str = "boom") -> FailedReport:
    return FailedReport(
        job_id=held.id, worker=held.worker, token=held.token, failure=failure, error=error
    )


def released(held: Job, delay_s: float = 0.0, reason: str = "") -> Released:
    return Released(
        job_id=held.id, worker=held.worker, token=held.token, delay_s=delay_s, reason=reason
    )


async def start_one(store: Store, worker: str = "w-1", now: Instant = NOON) -> Job:
    held = await take_one(store, worker, now)
    answer = await store.report(started(held), now)
    assert isinstance(answer, Accepted)
    return answer.job


async def finish(store: Store, held: Job, now: Instant = NOON) -> Job:
    answer = await store.report(completed(held), now)
    assert isinstance(answer, Accepted), answer
    return answer.job


def schedule(
    schedule_id: str = "nightly", overlap: Overlap = Overlap.ALLOW, **fields: Any
) -> Schedule:
    definition = ScheduleDefinition(
        name=schedule_id, job=spec(schedule_id), cron="* * * * *", overlap=overlap
    )
    fields.setdefault("next_at", at(60))
    return Schedule(
        id=schedule_id,
        definition=definition,
        created_at=NOON,
        updated_at=NOON,
        cursor=NOON,
        **fields,
    )


def firing(known: Schedule, *ticks: Instant, now: Instant, missed: int = 0) -> Firing:
    last = max(ticks, default=known.cursor)
    return Firing(
        schedule_id=known.id,
        version=known.version,
        advance=Advance(known.cursor, last, last + 60 * SECOND),
        jobs=tuple(instance(known, tick, now) for tick in ticks),
        missed=missed,
    )

"""One term of a leader under a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from hyperscale.scheduler.instants import SECOND, Instant, after
from hyperscale.scheduler.leader.duties import Duties, Figures
from hyperscale.scheduler.leader.election import Term
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.queue.job import new_job
from hyperscale.scheduler.queue.reports import Accepted, Started
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import ScheduleDefinition
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, JobFilter, Submission
from hyperscale.scheduler.worker.registration import Worker
from tests.unit.scheduler.store.cases.harness import NOON

SPEC = JobSpec(name="job", kind="python", retry=RetryPolicy(max_retries=3))
EVERY_MINUTE = ScheduleDefinition(name="m", cron="* * * * *", job=SPEC)
QUICK = CoordinatorSettings(look_s=0.02, sweep_s=0.02, scan_s=0.02, tidy_s=0.02)


class Clock:
    def __init__(self) -> None:
        self.now: Instant = NOON

    def __call__(self) -> Instant:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now = after(self.now, seconds)

    def steady(self) -> float:
        return self.now / SECOND


def endless(token: int) -> Term:
    return Term(token, 1e18, lambda: 0.0)


@asynccontextmanager
async def leading(
    store: Store, clock: Clock, token: int = 1, settings: CoordinatorSettings = QUICK
) -> AsyncIterator[Figures]:
    """One term under a clock that the test moves."""
    figures = Figures()
    await store.raise_epoch(token)
    run = Duties(store, endless(token), settings, clock, figures, clock.steady).run()
    task = asyncio.create_task(run)
    try:
        async with asyncio.timeout(60):
            yield figures
    finally:
        task.cancel()
        await asyncio.wait([task])


async def add(store: Store, clock: Clock, **fields: Any) -> None:
    await schedules.add(store, "m", replace(EVERY_MINUTE, **fields), clock())


async def count(store: Store) -> int:
    return len((await store.jobs(JobFilter(), limit=1000)).jobs)


def counted(store: Store, number: int) -> Callable[[], Any]:
    async def reached() -> bool:
        return await count(store) >= number

    return reached


async def held_by_a_worker(store: Store, clock: Clock, start: bool) -> Any:
    worker = Worker(id="worker-1", instance="x", capacity=1, started_at=clock(), seen_at=clock())
    await store.register(worker, clock(), 45)
    await store.submit(Submission(job=new_job("job", SPEC, clock())), clock())
    (held,) = await store.claim(Claim(worker="worker-1", lease_s=60), clock())
    if start:
        report = Started(job_id="job", worker="worker-1", token=held.token, lease_s=3600)
        assert isinstance(await store.report(report, clock()), Accepted)
    return held

"""Workers whose own clocks are wrong, on a store that others share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.service import open_worker
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.types import Submission
from tests.integration.scheduler.redis_server import redis_server
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.worlds import host_of, wall_clock


@pytest.mark.parametrize("ahead_s", [60.0, -60.0])
def test_a_worker_with_a_wrong_clock_starts_nothing_early_and_keeps_its_lease(
    tmp_path: Path, ahead_s: float
) -> None:
    async def run(url: str) -> None:
        store = await open_store(url)
        now = wall_clock()
        for name, due_s, priority in (("later", 30, 1), ("now", 0, 500)):
            payload = {"argv": '["sleep", "600"]'}
            spec = JobSpec(name=name, kind="command", payload=payload, priority=priority)
            job = new_job(name, spec, now, due_at=now + due_s * SECOND)
            await store.submit(Submission(job=job), now)

        async def running() -> bool:
            job = await store.job("now")
            return job is not None and job.state is JobState.EXECUTING

        settings = SchedulerSettings(
            store=url, spool=str(tmp_path / "spool"), command=True, shutdown_timeout_s=0
        )
        host = host_of(wall=lambda: time.time() + ahead_s)
        async with asyncio.timeout(60), open_worker(settings, host=host):
            await until(running)
            later, held = await store.job("later"), await store.job("now")
            assert later is not None
            assert later.state is JobState.PENDING
            assert held is not None
            assert held.lease_until is not None
            assert now < held.lease_until < now + (settings.lease_s + 30) * SECOND
        await store.close()

    with redis_server(tmp_path) as server:
        asyncio.run(run(server.url))

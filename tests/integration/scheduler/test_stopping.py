"""A scheduler on Redis told to stop at any moment of its first steps stops. Tasks that ask Redis
can lose a cancellation (Python 3.11's `wait_for`): then it would lead on for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from tests.integration.scheduler.redis_server import redis_server

STOPS = 150
STEP_S = 0.0002
DEADLINE_S = 30.0


def test_a_scheduler_stops_at_any_moment(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        for number in range(STOPS):
            settings = SchedulerSettings(store=url, election=url, worker=False, node=f"n{number}")
            scheduler = Scheduler(settings)
            await scheduler.start()
            await asyncio.sleep(number * STEP_S)
            async with asyncio.timeout(DEADLINE_S):
                await scheduler.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with redis_server(tmp_path) as server:
        asyncio.run(run(server.url))

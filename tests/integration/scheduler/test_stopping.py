"""Who is told to stop stops, at any moment, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.worker.registration import WorkerEvent, WorkerState
from tests.integration.scheduler.redis_server import redis_server
from tests.integration.scheduler.test_worker import bench
from tests.integration.scheduler.waiting import until

STOPS = 150
STEP_S = 0.0002
DEADLINE_S = 30.0


def test_a_scheduler_stops_at_any_moment(tmp_path: Path) -> None:
    """On Redis: tasks that ask it can lose a cancellation (Python 3.11's `wait_for`), and would
    then lead on for ever."""

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


def test_a_job_is_given_back_when_nothing_of_it_runs(tmp_path: Path) -> None:
    """Each run looks whether the one before is alive."""
    pid, seen = tmp_path / "pid", tmp_path / "seen"
    look = f"if kill -0 $(cat {pid}); then echo alive; else echo dead; fi >> {seen}"
    script = (
        f"trap '' TERM; if [ -e {pid} ]; then {look}; exit 0; fi; "
        f"echo $$ > {pid}; while :; do sleep 0.05; done"
    )

    async def run() -> None:
        async with bench(tmp_path) as b:
            first = await b.worker(shutdown_timeout_s=0)
            await b.submit("job", "command", {"argv": json.dumps(["sh", "-c", script])})

            async def written() -> bool:
                return pid.exists() and bool(pid.read_text())

            await until(written)
            second = await b.worker(id="worker-2")
            await first.stop()
            job = await b.ended("job")
            assert (job.state, job.retries) == (JobState.COMPLETED, 0)
            assert seen.read_text() == "dead\n"
            await second.stop()

    asyncio.run(run())


ALONE = """
import sys
from hyperscale.runtime.real import run
from hyperscale.scheduler.http import process
from hyperscale.scheduler.http.settings import ProcessSettings
from hyperscale.scheduler.settings import SchedulerSettings

settings = SchedulerSettings(store=sys.argv[1], spool=sys.argv[2], command=True, beat_s=0.2)
run(process.work(settings, ProcessSettings(), "", lambda *said: None))
"""


def test_a_drained_worker_ends_with_its_last_job(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            go = tmp_path / "go"
            wait = f"until [ -e {go} ]; do sleep 0.05; done"
            await b.submit("job", "command", {"argv": json.dumps(["sh", "-c", wait])})
            working = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ALONE, f"sqlite:{tmp_path}/jobs.db", tmp_path / "spool")
            )
            held = await b.executing("job")
            await b.store.move_worker(held.worker, WorkerEvent.DRAIN)
            await b.submit("later", "command", {"argv": '["true"]'})
            go.touch()
            async with asyncio.timeout(DEADLINE_S):
                assert await working.wait() == 0
            assert (await b.job("job")).state is JobState.COMPLETED
            assert (await b.job("later")).state is JobState.PENDING

    asyncio.run(run())


TOLD_AT_ITS_START = """
import os, signal, sys
from hyperscale.runtime.real import run
from hyperscale.scheduler.http import process
from hyperscale.scheduler.http.settings import ProcessSettings
from hyperscale.scheduler.settings import SchedulerSettings

open_store = process.open_store

async def told(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return await open_store(*arguments)

process.open_store = told
settings = SchedulerSettings(store=sys.argv[2], python_allow=("time:*",))
main = getattr(process, sys.argv[1])
run(main(settings, ProcessSettings(port=0), "", lambda *said: None))
"""


@pytest.mark.parametrize("command", ["serve", "work"])
def test_a_signal_at_the_start_leaves_no_worker_and_no_job_behind(
    tmp_path: Path, command: str
) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            await b.submit("job", "python", {"call": "time:sleep", "args": "[600]"})
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", TOLD_AT_ITS_START, command, f"sqlite:{tmp_path}/jobs.db"],
                env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
                timeout=90,
                check=False,
            )
            assert done.returncode == 0
            assert [one.state for one in await b.store.workers()] == [WorkerState.UNAVAILABLE]
            assert (await b.job("job")).state is JobState.PENDING
            assert await b.store.attempts("job") == []

    asyncio.run(run())

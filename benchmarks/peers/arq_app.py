"""A no-op on arq. Normal settings but for the poll delay: arq starts at most 100 jobs per poll, and
polls twice a second unless told otherwise.

    BENCH_REDIS=redis://... python arq_app.py COUNT SLOTS

starts a worker, enqueues COUNT jobs, waits until all are done, and prints jobs per second.
`benchmarks/scheduler.py` runs it, with an interpreter that has arq.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

from arq import create_pool  # type: ignore[import-not-found, unused-ignore]
from arq.connections import RedisSettings  # type: ignore[import-not-found, unused-ignore]
from noop import nothing as noop  # type: ignore[import-not-found, unused-ignore]

AT_ONCE = 20
"""Enqueued concurrently: one after the other the client would be the slower side."""


async def nothing(_: dict[str, Any]) -> None:
    return noop()


class WorkerSettings:
    functions = [nothing]
    redis_settings = RedisSettings.from_dsn(os.environ["BENCH_REDIS"])
    max_jobs = int(os.environ.get("BENCH_SLOTS", "4"))
    poll_delay = 0.01


async def per_s(count: int, slots: int) -> float:
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arq", "arq_app.WorkerSettings"),
        cwd=os.path.dirname(__file__) or ".",
        env={**os.environ, "BENCH_SLOTS": str(slots)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pool = await create_pool(WorkerSettings.redis_settings)
        await all_done(pool, 200)
        began = time.perf_counter()
        await all_done(pool, count)
        return count / (time.perf_counter() - began)
    finally:
        worker.terminate()
        await worker.wait()


async def all_done(pool: Any, count: int) -> None:
    """A job leaves the queue when its result is written."""
    for start in range(0, count, AT_ONCE):
        part = range(start, min(start + AT_ONCE, count))
        await asyncio.gather(*(pool.enqueue_job("nothing") for _ in part))
    async with asyncio.timeout(600):
        while await pool.zcard(pool.default_queue_name):  # noqa: ASYNC110 - Redis tells nobody
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    print(asyncio.run(per_s(int(sys.argv[1]), int(sys.argv[2]))))

"""A no-op on arq; `benchmarks/scheduler.py` starts it."""

from __future__ import annotations

import os
from typing import Any

from arq.connections import RedisSettings  # type: ignore[import-not-found, unused-ignore]


async def nothing(_: dict[str, Any]) -> None:
    return None


class WorkerSettings:
    functions = [nothing]
    redis_settings = RedisSettings.from_dsn(os.environ["BENCH_REDIS"])
    max_jobs = 4
    poll_delay = 0.01
    keep_result = 600

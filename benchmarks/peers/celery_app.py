"""A no-op on Celery, with Redis as broker and backend; `benchmarks/scheduler.py` starts it."""

from __future__ import annotations

import os

from celery import Celery  # type: ignore[import-untyped]

url = os.environ["BENCH_REDIS"]
app = Celery("bench", broker=url, backend=url)
app.conf.update(worker_prefetch_multiplier=64, task_acks_late=True, result_expires=600)


@app.task  # type: ignore[misc, untyped-decorator]
def nothing() -> None:
    return None

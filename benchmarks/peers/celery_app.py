"""A no-op on Celery with its normal settings, Redis as broker and backend.

    BENCH_REDIS=redis://... python celery_app.py COUNT SLOTS

starts a worker, sends COUNT tasks, waits for every result, and prints tasks per second.
`benchmarks/scheduler.py` runs it, with an interpreter that has Celery.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from celery import Celery  # type: ignore[import-untyped]
from celery.result import ResultSet  # type: ignore[import-untyped]
from noop import nothing as noop  # type: ignore[import-not-found, unused-ignore]

url = os.environ["BENCH_REDIS"]
app = Celery("celery_app", broker=url, backend=url)
nothing = app.task(name="nothing")(noop)


def per_s(count: int, slots: int) -> float:
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "celery_app", "worker"),
            *("-c", str(slots), "--loglevel", "ERROR", "--without-gossip", "--without-mingle"),
        ],
        cwd=os.path.dirname(__file__) or ".",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ResultSet([nothing.delay() for _ in range(200)]).join_native(timeout=60)
        began = time.perf_counter()
        ResultSet([nothing.delay() for _ in range(count)]).join_native(timeout=600)
        return count / (time.perf_counter() - began)
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    print(per_s(int(sys.argv[1]), int(sys.argv[2])))

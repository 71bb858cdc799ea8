"""What a job started ends with its worker, also when nothing in the worker can end it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psutil

from hyperscale.scheduler.queue.job import new_job
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Submission
from tests.integration.scheduler.cast import Cast, cast_of
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.worker.executors.test_executors import gone
from tests.unit.scheduler.worlds import wall_clock


def test_processes_of_a_killed_worker_end(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'store.db'}"
    deaf = tmp_path / "deaf.sh"
    deaf.write_text("trap '' TERM; sleep 600 & echo $!; while :; do sleep 600; done")

    async def begun(name: str) -> list[int]:
        """A job with a process that hears no SIGTERM, and one in a session of its own."""
        pids = tmp_path / name
        shell = f"setsid sh {deaf} >> {pids} & echo $! $$ >> {pids}; wait"
        payload = {"argv": json.dumps(["sh", "-c", shell])}
        spec = JobSpec(name=name, kind="command", payload=payload, retry=RetryPolicy(max_retries=0))
        now = wall_clock()
        await store.submit(Submission(job=new_job(name, spec, now)), now)

        async def told() -> bool:
            return pids.exists() and len(pids.read_text().split()) == 3

        await until(told)
        return [int(pid) for pid in pids.read_text().split()]

    async def all_gone(pids: list[int]) -> None:
        async def are() -> bool:
            return all(map(gone, pids))

        await until(are)

    def kill(cast: Cast) -> None:
        (worker,) = cast.playing
        cast.playing.clear()
        worker.process.kill()
        worker.process.wait()

    async def run() -> None:
        nonlocal store
        store = await open_store(address)
        with cast_of(address, "store", tmp_path, 0, (1,)) as cast:
            started = await begun("guarded")
            kill(cast)
            await all_gone(started)

            cast.enter("worker")
            cast.wait_ready()
            started = await begun("unguarded")
            (worker,) = cast.playing
            for child in psutil.Process(worker.process.pid).children():
                if any("orphans" in word for word in child.cmdline()):
                    child.kill()
            kill(cast)
            assert not any(map(gone, started))
            cast.enter("worker")
            cast.wait_ready()
            assert all(map(gone, started))
        assert list((tmp_path / "spool" / "processes").iterdir()) == []
        await store.close()

    store: Store
    asyncio.run(run())

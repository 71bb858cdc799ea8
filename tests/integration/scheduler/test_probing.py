"""A silent worker is asked at its own address before its jobs are taken away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.scheduler.leader.probing import answers
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.reports import Accepted, Started
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, Submission
from hyperscale.scheduler.worker.registration import Worker, WorkerState
from tests.integration.scheduler.scheduler_process import scheduler_process
from tests.integration.scheduler.scheduler_process import until as until_seen
from tests.integration.scheduler.term import SPEC, Clock, leading
from tests.integration.scheduler.waiting import until

WAITING = "silent workers answer, waiting"
LOST = "worker lost, jobs recovered"


@asynccontextmanager
async def page(answer: bytes) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /health/live?worker=")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def naming(worker: str) -> bytes:
    body = f'{{"status": "alive", "worker": "{worker}"}}'.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def holding(store: Store, clock: Clock, address: str, lease_s: float) -> Worker:
    worker = Worker(
        id="worker-1", instance="x", address=address, capacity=1, started_at=clock(),
        seen_at=clock(),
    )  # fmt: skip
    worker = await store.register(worker, clock(), 45)
    await store.submit(Submission(job=new_job("job", SPEC, clock())), clock())
    (held,) = await store.claim(Claim(worker=worker.id), clock())
    report = Started(job_id="job", worker=worker.id, token=held.token, lease_s=lease_s)
    assert isinstance(await store.report(report, clock()), Accepted)
    return worker


def test_who_answers_keeps_its_jobs_for_one_threshold_more() -> None:
    async def run() -> None:
        store, clock = Store(MemoryGround()), Clock()
        async with page(naming("worker-1")) as address:
            await holding(store, clock, address, lease_s=3600)
            async with leading(store, clock) as figures:
                clock.forward(46)

                async def suspected() -> bool:
                    return figures.suspects == ("worker-1",)

                await until(suspected)
                assert figures.recovered == 0
                clock.forward(45)

                async def recovered() -> bool:
                    return figures.recovered == 1

                await until(recovered)

    asyncio.run(run())


def test_an_answer_does_not_outlive_the_lease_of_a_job() -> None:
    async def run() -> None:
        store, clock = Store(MemoryGround()), Clock()
        async with page(naming("worker-1")) as address:
            await holding(store, clock, address, lease_s=45)
            async with leading(store, clock) as figures:
                clock.forward(46)

                async def expired() -> bool:
                    return figures.expired == 1

                await until(expired)
            (worker,) = await store.workers()
            assert worker.state is not WorkerState.UNAVAILABLE

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [naming("worker-2"), b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", b"nonsense\r\n"],
)
def test_only_the_workers_own_answer_counts(answer: bytes) -> None:
    async def run() -> None:
        store, clock = Store(MemoryGround()), Clock()
        async with page(answer) as address:
            worker = await holding(store, clock, address, lease_s=3600)
            assert not await answers(worker)
            async with leading(store, clock) as figures:
                clock.forward(46)

                async def recovered() -> bool:
                    return figures.recovered == 1

                await until(recovered)

    asyncio.run(run())


@pytest.mark.parametrize("address", ["", "10.0.0.1:80", "http://h:99999", "http://127.0.0.1:1"])
def test_an_address_where_nobody_is_answers_nothing(address: str) -> None:
    worker = Worker(id="w-1", instance="x", address=address, capacity=1, started_at=0, seen_at=0)
    assert asyncio.run(answers(worker)) is False


@pytest.mark.parametrize("paused", [False, True])
def test_a_real_worker_that_beats_too_rarely_is_asked(tmp_path: Path, paused: bool) -> None:
    """One that lives answers and is waited for; one that is paused is lost at the threshold."""
    log = tmp_path / "coordinator.log"
    with scheduler_process(
        *(tmp_path, "--no-worker", "--log", str(log), "--log-level", "info"),
        HYPERSCALE_SCHEDULER_BEAT_S="1",
        HYPERSCALE_SCHEDULER_DEAD_AFTER_S="4",
    ) as scheduler:
        words = [
            *(sys.executable, "-m", "hyperscale", "scheduler", "worker", "--port", "0"),
            *("--command", "--store", f"sqlite:{tmp_path / 'jobs.db'}"),
        ]
        rarely = {
            "HYPERSCALE_SCHEDULER_BEAT_S": "60",
            "HYPERSCALE_SCHEDULER_DEAD_AFTER_S": "120",
            "HYPERSCALE_SCHEDULER_SHUTDOWN_TIMEOUT_S": "0",
        }
        errors = tmp_path / "worker.err"
        with errors.open("wb") as file:
            worker = subprocess.Popen(
                words, stderr=file, env={**os.environ, **scheduler._env, **rarely}, cwd=tmp_path
            )
        try:
            until_seen(lambda: re.search(r"metrics: ", errors.read_text()), "the worker's page")
            with scheduler.client() as client:
                job = client.submit_job(name="long", payload={"command": "sleep 600"})["job_id"]
                until_seen(lambda: client.job(job)["state"] == JobState.EXECUTING, "its start")
                if paused:
                    worker.send_signal(signal.SIGSTOP)
                    until_seen(lambda: LOST in log.read_text(), "the loss of the worker")
                    assert WAITING not in log.read_text()
                    assert client.job(job)["retry_count"] == 1
                else:
                    until_seen(lambda: WAITING in log.read_text(), "the worker's answer")
                    assert LOST not in log.read_text().partition(WAITING)[0]
        finally:
            worker.send_signal(signal.SIGCONT)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0

"""Load that is lost inside a worker that lives: whatever happens to its generator processes, the
verdict and the coverage say so, as on one machine. The target's own count is the judge."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode

from .fleet import DEADLINE_S, OPEN, Fleet, NodeProcess, until
from .loads import steady, write
from .witness import Witness

PREPARED = """
from hyperscale import action
import asyncio


class Login(Workflow):
    @action()
    async def sign_in(self) -> None:
        with open({place!r}, "w") as file:
            file.write(str(os.getpid()))
        await asyncio.sleep(60)
        self.context["token"] = "real"


@depends("Login")
class Shop(Workflow):
    vus = 1
    iterations = 3

    @step()
    async def get(self, url: URL = TARGET + "/", token: str = "none") -> HTTPResponse:
        return await self.client.http.get(url, headers={{"x-token": token}})
"""

ARRIVING = """
class Arriving(Workflow):
    rate = "{rate}/s"
    duration = "{seconds}s"

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def requests_of(results: dict[str, Any]) -> int:
    return sum(step["count"] for workflow in results["workflows"] for step in workflow["steps"])


def signal_all(worker: NodeProcess, number: int) -> None:
    """The worker and its generators, as a machine that stands still."""
    for child in worker.children():
        child.send_signal(number)
    worker.signal(number)


def test_a_generator_is_killed_inside_a_worker(tmp_path: Path, witness: Witness) -> None:
    """Its part goes on elsewhere; what was not offered meanwhile is told, and who died."""
    seconds, rate = 20, 40
    file = write(tmp_path, witness.url, ARRIVING.format(rate=rate, seconds=seconds))
    with Fleet(tmp_path, workers=2) as fleet:
        fleet.start()
        with fleet.running("run", file, *fleet.there) as run:
            job = fleet.only_job()
            victim = fleet.wait_until_running(job.job_id, rate).workflows[0].workers[0]
            for child in fleet[victim].children():
                child.kill()
            ended = run.ended()
        results = fleet.results(job.job_id)
        assert ended.code == ExitCode.LOAD_LOST, ended
        (sentence,) = results["lost"]
        assert f"worker {victim}: generator process" in sentence
        assert "was killed by SIGKILL at" in sentence
        assert 0.5 < results["coverage"] < 1
        planned = seconds * rate
        assert results["coverage"] * planned == pytest.approx(witness.requests, abs=planned / 100)
        assert 0 < requests_of(results) <= witness.requests
        view = fleet.job(job.job_id)
        assert (view.coverage, view.lost) == (results["coverage"], (sentence,))
        assert fleet[victim].alive
        fleet.wait_until_idle()


def test_the_generator_of_a_preparation_is_killed(tmp_path: Path, witness: Witness) -> None:
    """What was to be prepared is not there: whoever needs it is not run."""
    place = tmp_path / "pid"
    file = write(tmp_path, witness.url, PREPARED.format(place=str(place)))
    with Fleet(tmp_path, worker_env=OPEN) as fleet:
        fleet.start()
        with fleet.running("run", file, *fleet.there) as run:
            job = fleet.only_job()
            until(lambda: place.exists() and place.read_text(), "the preparation to begin")
            os.kill(int(place.read_text()), signal.SIGKILL)
            ended = run.ended()
        assert ended.code == ExitCode.LOAD_LOST, ended
        results = fleet.results(job.job_id)
        assert (results["cut"], results["coverage"]) == ("worker lost", 0.0)
        assert "generator process" in results["lost"][0]
        login, shop = fleet.job(job.job_id).workflows
        assert (login.state, shop.state) == ("failed", "failed")
        assert "Login" in shop.error
        assert witness.requests == 0
        fleet.wait_until_idle()


def test_a_worker_stands_still_for_seven_seconds(tmp_path: Path, witness: Witness) -> None:
    """Arrivals that nobody started are neither served nor declared as dropped: they are missing."""
    seconds, rate = 24, 40
    file = write(tmp_path, witness.url, ARRIVING.format(rate=rate, seconds=seconds))
    with Fleet(tmp_path, workers=1) as fleet:
        fleet.start()
        job_id = fleet.detached(file)
        fleet.wait_until_running(job_id, rate)
        (worker,) = fleet.workers
        asleep_at = time.monotonic()
        signal_all(worker, signal.SIGSTOP)
        until(lambda: time.monotonic() > asleep_at + 7, "seven seconds", DEADLINE_S)
        signal_all(worker, signal.SIGCONT)
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        (workflow,) = results["workflows"]
        planned, dropped = seconds * rate, workflow["dropped_iterations"]
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert results["lost"]
        assert 0.3 < results["coverage"] < 0.8
        served = witness.requests
        assert results["coverage"] * planned - dropped == pytest.approx(served, abs=planned / 100)
        assert requests_of(results) == pytest.approx(served, abs=planned / 100)
        fleet.wait_until_idle()


def test_users_who_stand_still_offer_nothing(tmp_path: Path, witness: Witness) -> None:
    """Shorter than anybody waits before giving up on the worker: only its generators know."""
    seconds, asleep_s = 12, 3
    with Fleet(tmp_path, workers=1) as fleet:
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration=f"{seconds}s", vus=2))
        fleet.wait_until_running(job_id, 50)
        (worker,) = fleet.workers
        asleep_at = time.monotonic()
        signal_all(worker, signal.SIGSTOP)
        until(lambda: time.monotonic() > asleep_at + asleep_s, "three seconds", DEADLINE_S)
        signal_all(worker, signal.SIGCONT)
        woken_s = time.monotonic() - asleep_at
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert results["coverage"] == pytest.approx(1 - woken_s / seconds, abs=0.03)
        assert "planned seconds of users were not offered" in results["lost"][0]
        assert any("stood still for" in warning for warning in results["warnings"])
        fleet.wait_until_idle()

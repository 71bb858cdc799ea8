"""Two workers without a free core, and one of them is killed: the other takes its load over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cluster.fleet import OPEN, Fleet
from tests.integration.cluster.loads import write
from tests.integration.cluster.witness import Witness

RATE, SECONDS = 40, 45
# Until the load that went on has caught up with the second that the test has reached: the worker
# is told, loads the code and makes connections.
CATCHING_UP_S = 4.0

ARRIVALS = f"""
class Arrivals(Workflow):
    rate, duration, max_vus = "{RATE}/s", "{SECONDS}s", 40

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(TARGET + "/")
"""

ROWS = """
def rows():
    yield from range(100_000)


class Rows(Workflow):
    vus, iterations, think_time = 6, 900, "60ms"
    data = rows

    async def on_start(self) -> None:
        await self.client.http.get(TARGET + "/json")

    @step()
    async def get(self, row: int) -> HTTPResponse:
        with open(os.environ["ROWS"], "a") as used:
            used.write(f"{row}\\n")
        return await self.client.http.get(TARGET + "/")
"""


@pytest.fixture
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """The parameter is how many cores the worker has that will be lost."""
    with Fleet(tmp_path, managers=1, workers=1, cores=1, worker_env=OPEN) as fleet:
        fleet.add_worker("w2", cores=getattr(request, "param", 1))
        for worker in fleet.workers:
            worker.program = ("-m", "tests.integration.cluster.calm_worker")
            worker.env["PYTHONPATH"] = os.pathsep.join(path or "." for path in sys.path)
        yield fleet.start()


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def killed_at_work(fleet: Fleet, job_id: str, requests: int) -> dict[str, Any]:
    """The results of a job one of whose workers died after so many requests."""
    view = fleet.wait_until_running(job_id, requests)
    assert len(view.workflows[0].workers) == 2
    fleet["w2"].kill()
    view = fleet.wait_for_job(
        job_id, lambda view: view.workflows[0].attempts == 2 or view.exit_code is not None, "moves"
    )
    assert view.workflows[0].workers == ("w1",), view
    view = fleet.wait_for_end(job_id)
    fleet.wait_until_idle()
    return fleet.results(job_id)


def test_the_planned_rate_is_back_when_the_load_was_taken_over(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    job_id = fleet.detached(write(tmp_path, witness.url, ARRIVALS))
    results = killed_at_work(fleet, job_id, RATE)
    assert results["exit_code"] == ExitCode.LOAD_LOST, results
    (workflow,) = results["workflows"]
    lost, taken_over = workflow["marks"]
    assert lost["text"] == "worker w2 lost, 1 of 2 cores"
    assert taken_over["text"] == "lost load taken over by w1, sharing cores"
    assert f"worker w2 lost at {lost['at_s']:.0f} s" in results["lost"][0]

    missed_s = taken_over["at_s"] - lost["at_s"]
    assert results["coverage"] == pytest.approx(1 - missed_s / 2 / SECONDS, abs=0.1)
    offered = witness.requests + workflow["dropped_iterations"]
    planned = RATE * SECONDS
    assert offered <= planned
    assert planned - offered <= RATE / 2 * (missed_s + CATCHING_UP_S)

    after = [p for p in workflow["series"] if p["at_s"] >= taken_over["at_s"] + CATCHING_UP_S]
    made = sum(point["requests"] + point["dropped"] for point in after)
    assert made >= 0.95 * RATE * (SECONDS - after[0]["at_s"])


@pytest.mark.parametrize("fleet", [2], ids=["two of three cores"], indirect=True)
def test_iterations_and_rows_that_are_left_move_along(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    """The one process that is left has three parts of the workflow in the end."""
    used = tmp_path / "used"
    job_id = fleet.detached(write(tmp_path, witness.url, ROWS), "-e", f"ROWS={used}")
    results = killed_at_work(fleet, job_id, 100)
    (workflow,) = results["workflows"]
    rows = used.read_text().split()
    assert len(set(rows)) == len(rows) <= 900 + 6, "no row is used twice, no iteration made twice"
    assert 600 < workflow["iterations"] < 900, "those that w2 may have made are left out"
    assert results["coverage"] == pytest.approx(workflow["iterations"] / 900)
    assert results["exit_code"] == ExitCode.LOAD_LOST
    assert witness.paths()["/json"] == 6 + 4, "users that went on elsewhere began anew"


def test_load_that_is_dropped_is_said_to_be(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    text = ARRIVALS.replace(f"{SECONDS}s", "20s")
    file = write(tmp_path, witness.url, text)
    job_id = fleet.detached(file, "--lost-load", "drop")
    fleet.wait_until_running(job_id, RATE)
    fleet["w2"].kill()
    assert fleet.wait_for_end(job_id).exit_code == ExitCode.LOAD_LOST
    results = fleet.results(job_id)
    assert "lost_load = drop" in results["lost"][0]
    assert results["coverage"] < 0.9
    assert [mark["text"] for mark in results["workflows"][0]["marks"]] == [
        "worker w2 lost, 1 of 2 cores"
    ]

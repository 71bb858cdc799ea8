"""Three workflows on one worker with one core: all of them at the same time, in one process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.errors import ExitCode
from hyperscale.metrics import totals
from hyperscale.metrics.results import Results, decode
from tests.integration.cluster.fleet import Fleet, until
from tests.integration.cluster.loads import write
from tests.integration.cluster.witness import Witness

THREE = """
class A(Workflow):
    vus, duration, think_time = 4, "{seconds}s", "10ms"
    path = "/"

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(TARGET + self.path)


class B(A):
    vus = 2
    path = "/json"


class C(A):
    vus = 1
    path = "/items"
    start_time = "1s"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("cluster")
    with Fleet(folder, managers=1, workers=1, cores=1) as fleet:
        yield fleet.start()


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def run(fleet: Fleet, file: Path, to: Path) -> tuple[int, Results]:
    ended = fleet.hyperscale("run", file, *fleet.there, "--json", to)
    return ended.code, decode(to.read_bytes())


def test_three_workflows_share_a_core(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    file = write(tmp_path, witness.url, THREE.format(seconds=4))
    code, results = run(fleet, file, tmp_path / "results.json")
    assert code == ExitCode.PASSED, results
    spans = [(w.started_s, w.started_s + w.elapsed_s) for w in results.workflows]
    assert max(began for began, _ in spans) < min(ended for _, ended in spans)
    a, _, c = results.workflows
    assert c.started_s - a.started_s >= 0.5, "it waits, from the begin of the job"
    paths = witness.paths()
    assert [w.requests for w in results.workflows] == [paths[p] for p in ("/", "/json", "/items")]
    assert totals.vus_max(results) == 7
    assert totals.cores(results) == 1
    fleet.wait_until_idle()


def test_the_death_of_their_process_is_told_by_all_of_them(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    job = fleet.detached(write(tmp_path, witness.url, THREE.format(seconds=60)))
    until(lambda: {"/", "/json", "/items"} <= witness.paths().keys(), "load of all three")
    (generator,) = fleet["w1"].children()
    generator.send_signal(signal.SIGKILL)
    fleet.wait_for_end(job)
    results = fleet.results(job)
    assert results["exit_code"] == ExitCode.LOAD_LOST
    told = " ".join(results["lost"])
    for name, users in (("A", 4), ("B", 2), ("C", 1)):
        assert f"of {name} was killed by SIGKILL" in told
        assert f"{users} of {users} VUs lost" in told
    fleet.wait_until_idle()

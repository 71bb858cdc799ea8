"""Tests that misbehave and clusters that lack something: one sentence, an end, all cores free."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale import Workflow, step
from hyperscale.client import HyperscaleClient
from hyperscale.errors import BadInput, ExitCode
from hyperscale.testing import URL, HTTPResponse
from tests.integration.cli.program import Ended, assert_refused, hyperscale
from tests.integration.cluster.fleet import Fleet, free_port, until
from tests.integration.cluster.loads import steady, write
from tests.integration.cluster.witness import Witness

MEMORY_MB = 200


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("cluster")
    memory = {"HYPERSCALE_WORKER_MEMORY_MB": str(MEMORY_MB)}
    with Fleet(folder, managers=1, workers=2, cores=1, worker_env=memory) as fleet:
        yield fleet.start()


@pytest.fixture
def fleet(pool: Fleet) -> Iterator[Fleet]:
    """Whatever a test did, the cluster is as good as before."""
    yield pool
    pool.wait_until_idle()
    assert all(node.alive for node in pool.nodes.values())


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def submit(fleet: Fleet, tmp_path: Path, url: str, text: str, *words: object) -> Ended:
    return fleet.hyperscale("submit", write(tmp_path, url, text), *words)


GET = """
    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def test_setup_raises(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    text = """
class Broken(Workflow):
    vus = 1
    iterations = 1

    async def setup(self) -> None:
        raise LookupError("the fixtures are not there")
"""
    ended = submit(fleet, tmp_path, witness.url, text + GET)
    assert ended.code == ExitCode.FAILED, ended
    assert "the fixtures are not there" in ended.errors[0]
    assert witness.requests == 0


def test_every_step_raises(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    """Errors of a step are measurements: counted, shown, and nothing succeeded."""
    text = """
class Raising(Workflow):
    vus = 2
    iterations = 10

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        await self.client.http.get(url)
        raise LookupError("this user is not there")
"""
    ended = submit(fleet, tmp_path, witness.url, text)
    assert ended.code == ExitCode.FAILED, ended
    assert "this user is not there" in ended.out
    assert witness.requests == 10


def test_a_failed_workflow_does_not_hang_its_dependants(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    text = f"""
class First(Workflow):
    vus = 1
    iterations = 1

    async def setup(self) -> None:
        raise LookupError("no luck")
{GET}

@depends("First")
class Second(Workflow):
    vus = 1
    iterations = 1
{GET}

class Apart(Workflow):
    vus = 1
    iterations = 7
{GET}
"""
    ended = submit(fleet, tmp_path, witness.url, text)
    assert ended.code == ExitCode.FAILED, ended
    assert "no luck" in ended.errors[0]
    assert "not run, because First failed" in ended.out
    assert witness.requests == 7


def test_memory_is_limited(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    text = """
class Hungry(Workflow):
    vus = 1
    iterations = 1000

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        eaten = self.__dict__.setdefault("eaten", [])
        eaten.append(bytearray(16 << 20))
        return await self.client.http.get(url)
"""
    ended = submit(fleet, tmp_path, witness.url, text)
    assert ended.code == ExitCode.FAILED, ended
    assert f"more than {MEMORY_MB} MB of memory" in ended.errors[0]


def test_a_run_that_never_ends_is_given_up(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    text = """
import time

class Endless(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        response = await self.client.http.get(url)
        while True:
            time.sleep(0.01)
        return response
"""
    ended = submit(fleet, tmp_path, witness.url, text, "--timeout", "3s")
    assert ended.code == ExitCode.FAILED, ended
    assert "cut short: timed out" in ended.out
    assert "did not confirm" not in ended.err, "a process that hangs is killed in time"
    until(lambda: not generators_of_user_code(fleet), "no busy generator left")


def generators_of_user_code(fleet: Fleet) -> list[float]:
    """Processor use of generator processes that do not stand still."""
    busy = [child for worker in fleet.workers for child in worker.children()]
    uses = [child.cpu_percent(0.2) for child in busy if child.is_running()]
    return [use for use in uses if use > 50]


def test_a_bad_test_file_never_reaches_the_cluster(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    known = len(fleet.ask(lambda cluster: cluster.jobs()).jobs)
    assert_refused(submit(fleet, tmp_path, witness.url, "class Broken(:\n"), "load.py")
    assert_refused(submit(fleet, tmp_path, witness.url, "x = 1\n"), "load.py")
    assert_refused(fleet.hyperscale("submit", tmp_path / "nowhere.py"), "nowhere.py")
    assert len(fleet.ask(lambda cluster: cluster.jobs()).jobs) == known


def test_a_file_that_only_works_here(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    """The worker's own words come back, as the author's mistake."""
    text = f"""
if os.getpid() != int(os.environ.get("ONLY_PID", os.getpid())):
    raise ImportError("this machine is not prepared")
class Picky(Workflow):
    vus = 1
    iterations = 1
{GET}
"""
    words = ("-e", "ONLY_PID=1")
    ended = submit(fleet, tmp_path, witness.url, text, *words)
    assert ended.code in (ExitCode.BAD_INPUT, ExitCode.FAILED), ended
    assert "this machine is not prepared" in ended.errors[0]
    assert "Traceback" not in ended.err


def test_an_unpicklable_workflow_is_refused_before_it_is_sent(
    fleet: Fleet, witness: Witness
) -> None:
    lock = asyncio.Lock()

    class Unpicklable(Workflow):
        vus = 1
        iterations = 1
        held = (entry for entry in [lock])  # a generator cannot be pickled

        @step()
        async def get(self, url: URL = "http://127.0.0.1:1/") -> HTTPResponse:
            return await self.client.http.get(url)

    async def submitted() -> None:
        async with HyperscaleClient(fleet.addresses) as client:
            await client.submit_job([Unpicklable])

    with pytest.raises(BadInput, match="Unpicklable"):
        asyncio.run(submitted())


def test_no_workers_yet(tmp_path: Path, witness: Witness) -> None:
    """The job waits, says for what, and runs when a worker comes."""
    with Fleet(tmp_path, workers=0) as fleet:
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, iterations=10))
        view = fleet.wait_for_job(job_id, lambda view: view.position == 1, "waits")
        assert "no workers" in view.reason
        fleet.add_worker("w1")
        fleet.start()
        assert fleet.wait_for_end(job_id).exit_code == ExitCode.PASSED
        assert witness.requests == 10


def test_no_manager_answers(tmp_path: Path, witness: Witness) -> None:
    file = steady(tmp_path, witness.url)
    port = free_port()
    began = time.monotonic()
    ended = hyperscale("run", file, "--cluster", f"127.0.0.1:{port}", cwd=tmp_path)
    assert ended.code == ExitCode.FAILED, ended
    assert f"127.0.0.1:{port}" in ended.errors[0]
    assert "hyperscale dev" in ended.hints[0]
    assert time.monotonic() - began < 60

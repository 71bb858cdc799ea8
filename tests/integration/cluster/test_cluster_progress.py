"""What counts as progress on a real cluster: a test with a reason to be quiet is left alone, one
whose users hang is ended, and a manager that was away holds nothing against anybody."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cli.program import Ended
from tests.integration.cluster.fleet import Fleet, until
from tests.integration.cluster.loads import steady, write
from tests.integration.cluster.witness import Witness

STUCK = {"HYPERSCALE_JOBS_STUCK_S": "4", "HYPERSCALE_JOBS_STALLED_S": "2"}


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("cluster"), managers=1, workers=1, cores=6) as fleet:
        fleet["m1"].env = dict(STUCK)
        yield fleet.start()


@pytest.fixture
def fleet(pool: Fleet) -> Iterator[Fleet]:
    yield pool
    pool.wait_until_idle()
    assert all(node.alive for node in pool.nodes.values())


def submit(fleet: Fleet, tmp_path: Path, url: str, text: str) -> Ended:
    return fleet.hyperscale("submit", write(tmp_path, url, "import asyncio\n" + text))


GET = """
    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""

# Each is quiet for twice as long as a test may be that does not say why.
QUIET = f"""
class Late(Workflow):
    vus = 1
    duration = "1s"
    start_time = "9s"
    think_time = "50ms"
{GET}

class Warm(Workflow):
    vus = 1
    duration = "1s"
    warmup = "9s"
    think_time = "50ms"
{GET}

class Thinks(Workflow):
    vus = 1
    duration = "12s"
    think_time = "11s"
{GET}

class Rare(Workflow):
    rate = "5/m"
    duration = "14s"
    max_vus = 1
{GET}

class Slow(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def get(self, url: URL = TARGET + "/delay/9000") -> HTTPResponse:
        return await self.client.http.get(url)

class Sleeps(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        await asyncio.sleep(10)
        return await self.client.http.get(url)
"""


def test_who_has_a_reason_to_be_quiet_is_not_stuck(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    ended = submit(fleet, tmp_path, witness.url, QUIET)
    assert ended.code == ExitCode.PASSED, ended.out + ended.err
    assert "stuck" not in ended.out + ended.err


HUNG = """
class Hung(Workflow):
    vus = 2
    duration = "40s"
    graceful_stop = "1s"

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        await asyncio.sleep(600)
        return await self.client.http.get(url)
"""


def test_a_test_whose_users_all_hang_is_stuck(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    ended = submit(fleet, tmp_path, witness.url, HUNG)
    assert ended.code != ExitCode.PASSED
    assert "stuck: no progress for" in ended.out + ended.err
    assert witness.requests == 0


def test_a_generator_that_is_blocked_is_stuck(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    text = HUNG.replace("await asyncio.sleep(600)", "__import__('time').sleep(600)")
    ended = submit(fleet, tmp_path, witness.url, text)
    assert ended.code != ExitCode.PASSED
    assert "stuck: no progress for" in ended.out + ended.err


def test_a_workflow_that_hangs_beside_one_that_moves_is_failed_alone(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    text = (
        HUNG
        + f"""
class Moves(Workflow):
    vus = 1
    duration = "12s"
    think_time = "20ms"
{GET}
"""
    )
    ended = submit(fleet, tmp_path, witness.url, text)
    said = ended.out + ended.err
    assert ended.code != ExitCode.PASSED
    assert "stuck: no progress for" in said
    assert witness.requests > 100, said


def test_a_run_that_ends_while_nobody_leads_is_completed(witness: Witness, tmp_path: Path) -> None:
    """Without a quorum for longer than the whole run may take."""
    with Fleet(tmp_path, managers=2, workers=1) as fleet:
        fleet.start()
        file = steady(tmp_path, witness.url, duration="6s", vus=2, think="20ms")
        job_id = fleet.detached(file, "--timeout", "12s")
        fleet.wait_until_running(job_id)
        began = time.monotonic()
        follower = next(node for node in fleet.managers if node != fleet.leader())
        follower.signal(signal.SIGSTOP)
        until(lambda: fleet["w1"].logged("part ended"), "the end of the load")
        until(lambda: time.monotonic() > began + 20.0, "longer than the job may take")
        follower.signal(signal.SIGCONT)
        ended = fleet.wait_for_end(job_id)
        (part,) = fleet["w1"].logged("part ended")
        assert part["outcome"] == "completed", part
        assert all(node.logged("an even number of voters") for node in fleet.managers)
        assert (ended.status, ended.exit_code) == ("completed", ExitCode.PASSED), ended.reason
        assert sum(w.requests for w in ended.workflows) == witness.requests


def test_a_manager_that_is_started_again_knows_how_long_a_job_has_run(
    witness: Witness, tmp_path: Path
) -> None:
    with Fleet(tmp_path, managers=1, workers=1) as fleet:
        fleet.start()
        file = steady(tmp_path, witness.url, duration="60s", vus=1, think="20ms")
        job_id = fleet.detached(file, "--timeout", "20s")
        fleet.wait_until_running(job_id)
        began = time.monotonic()
        until(lambda: time.monotonic() > began + 16.0, "most of its time")
        fleet["m1"].kill()
        fleet["m1"].start()
        ended = fleet.wait_for_end(job_id)
        assert ended.status == "timeout", ended.reason
        measured = fleet.results(job_id)["workflows"][0]["elapsed_s"]
        assert measured < 30.0, "its age began anew"

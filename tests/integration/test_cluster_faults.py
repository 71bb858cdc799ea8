"""Faults of a cluster of real processes: whoever dies, sleeps or is cut off, one exact result.

Where nobody that makes load is hurt, the result equals the target's own count. Where a worker is
killed, what it sent after its last report was never told to anybody: the result may be below the
target's count by that, and never above it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.errors import ExitCode
from hyperscale.wire.certificates import make_authority
from tests.integration.cluster.fleet import DEADLINE_S, Fleet, until
from tests.integration.cluster.loads import steady
from tests.integration.cluster.wall import Wall
from tests.integration.cluster.witness import Witness

# A generator that waits for somebody waits for a lease or longer, which is 1.5 s.
STALL_S = 1.2
VUS = 4


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def requests_of(results: dict[str, object]) -> int:
    workflows = results["workflows"]
    assert isinstance(workflows, list)
    return sum(step["count"] for workflow in workflows for step in workflow["steps"])


def test_the_leading_manager_is_killed(tmp_path: Path, witness: Witness) -> None:
    """Load does not pause, the watching client notices nothing, the result is exact."""
    file = steady(tmp_path, witness.url, duration="9s", vus=VUS)
    with Fleet(tmp_path, managers=3, workers=2, tls=True) as fleet:
        fleet.start()
        with fleet.running("run", file, *fleet.there, "--json", "out.json") as run:
            job = fleet.only_job()
            fleet.wait_until_running(job.job_id, 100)
            killed_at = time.monotonic()
            leader = fleet.leader()
            leader.kill()
            fleet.wait_for_job(job.job_id, lambda view: view, "is known to the next leader")
            served_at = time.monotonic()
            assert fleet.leader().name != leader.name
            ended = run.ended()
        assert ended.code == ExitCode.PASSED, ended
        assert f"✓ passed: {witness.requests:,} requests" in ended.out
        results = fleet.results(job.job_id)
        assert requests_of(results) == witness.requests
        assert (results["coverage"], results["lost"]) == (1.0, [])
        assert witness.longest_stall_s(killed_at, served_at) < STALL_S
        fleet.wait_until_idle()


def test_all_managers_are_killed_and_come_back(tmp_path: Path, witness: Witness) -> None:
    """The job is found on disk; its workers wait for their managers with their results."""
    file = steady(tmp_path, witness.url, duration="5s", vus=VUS)
    with Fleet(tmp_path, managers=3, workers=1) as fleet:
        fleet.start()
        job_id = fleet.detached(file)
        fleet.wait_until_running(job_id, 100)
        for manager in fleet.managers:
            manager.kill()
        fleet.start()
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        if results["coverage"] == 1.0:  # they were back before the worker had to end its load
            assert view.exit_code == ExitCode.PASSED
        else:
            assert view.exit_code == ExitCode.LOAD_LOST, results["lost"]
        assert requests_of(results) == witness.requests
        fleet.wait_until_idle()


def test_a_worker_is_killed(tmp_path: Path, witness: Witness) -> None:
    """Its work moves to the other one, nothing is counted twice, the gap is declared."""
    file = steady(tmp_path, witness.url, duration="20s", vus=1)
    with Fleet(tmp_path, managers=1, workers=2) as fleet:
        fleet.start()
        with fleet.running("run", file, *fleet.there) as run:
            job = fleet.only_job()
            (victim,) = fleet.wait_until_running(job.job_id, 50).workflows[0].workers
            fleet[victim].kill()
            view = fleet.wait_for_job(
                job.job_id, lambda view: view.workflows[0].workers not in ((), (victim,)), "moves"
            )
            assert view.workflows[0].attempts == 2
            ended = run.ended()
        results = fleet.results(job.job_id)
        assert ended.code == ExitCode.LOAD_LOST, ended
        assert 0 < results["coverage"] < 1
        (sentence,) = results["lost"]
        assert f"worker {victim} lost" in sentence
        assert f"coverage: {results['coverage'] * 100:.1f} % of planned load" in ended.out, (
            ended.out
        )
        assert 0 < requests_of(results) <= witness.requests
        fleet.wait_until_idle()


def test_half_of_the_workers_die_and_nobody_can_take_over(tmp_path: Path, witness: Witness) -> None:
    """The other half goes on to the end; what is missing is said."""
    file = steady(tmp_path, witness.url, duration="12s", vus=VUS)
    with Fleet(tmp_path, managers=1, workers=2) as fleet:
        fleet.start()
        job_id = fleet.detached(file, "--lost-load", "move")
        view = fleet.wait_until_running(job_id, 100)
        assert len(view.workflows[0].workers) == 2
        fleet["w1"].kill()
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert 0.4 < results["coverage"] < 1
        assert "worker w1 lost" in results["lost"][0]
        assert 0 < requests_of(results) <= witness.requests
        fleet.wait_until_idle()


def test_a_worker_cut_off_stops_its_load(tmp_path: Path) -> None:
    """And when it is back its own true numbers count, and the load goes on."""
    with (
        Witness() as witness,
        Wall() as wall,
        Fleet(
            tmp_path,
            tls=True,
            worker_env={"HYPERSCALE_WORKER_FENCE_S": "3"},
            advertise={"m1": wall.host(1), "w1": wall.host(2)},
        ) as fleet,
    ):
        wall.stand_before(1, fleet["m1"].port)
        wall.stand_before(2, fleet["w1"].port)
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="25s", vus=VUS))
        fleet.wait_until_running(job_id, 100)
        wall.cut()
        until(lambda: time.monotonic() - witness.last_moved_s() > 1.5, "the load to stop")
        fence = fleet["w1"].logged("cut off")
        assert fence, "the load stopped for another reason"
        assert fence[0]["silent_s"] < 6.0
        before = witness.requests
        wall.heal()
        witness.wait_for_requests(before)
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert 0 < results["coverage"] < 1
        assert before < requests_of(results) <= witness.requests
        assert witness.requests - requests_of(results) <= VUS
        fleet.wait_until_idle()


def test_a_worker_cut_off_with_the_leader_stops_its_load(tmp_path: Path, witness: Witness) -> None:
    """The two hear each other, but the others have another leader: the load goes on there."""
    names = {"m1": 1, "m2": 2, "m3": 3, "w1": 4, "w2": 5}
    with (
        Wall() as wall,
        Fleet(
            tmp_path,
            managers=3,
            workers=2,
            worker_env={"HYPERSCALE_WORKER_FENCE_S": "3"},
            advertise={name: wall.host(number) for name, number in names.items()},
        ) as fleet,
    ):
        for name, number in names.items():
            wall.stand_before(number, fleet[name].port)
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="40s", vus=1))
        (victim,) = fleet.wait_until_running(job_id, 50).workflows[0].workers
        leader = fleet.leader()
        inside = [leader, fleet[victim]]
        outside = [node for node in fleet.nodes.values() if node not in inside]
        wall.divide(inside, outside)
        until(lambda: fleet[victim].logged("cut off"), "the load to stop")
        assert [one["outcome"] for one in fleet[victim].logged("part ended")] == ["cut off"]
        fleet.wait_for_job(
            job_id, lambda view: view.workflows[0].workers not in ((), (victim,)), "has moved"
        )
        wall.heal()
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert 0 < results["coverage"] < 1
        assert 0 < requests_of(results) <= witness.requests
        fleet.wait_for_workers(victim)
        fleet.wait_until_idle()


def test_a_worker_that_is_asleep_makes_no_load(tmp_path: Path, witness: Witness) -> None:
    """Its main process cannot end the load when it is stopped; the generators do."""
    with Fleet(tmp_path, workers=2, worker_env={"HYPERSCALE_WORKER_FENCE_S": "3"}) as fleet:
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="25s", vus=1))
        view = fleet.wait_until_running(job_id, 50)
        (victim,) = view.workflows[0].workers
        fleet[victim].signal(signal.SIGSTOP)
        until(lambda: time.monotonic() - witness.last_moved_s() > 1.5, "the load to stop")
        fleet.wait_for_job(
            job_id,
            lambda view: view.workflows[0].workers not in ((), (victim,)),
            "has moved",
        )
        fleet[victim].signal(signal.SIGCONT)
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert 0 < requests_of(results) <= witness.requests
        fleet.wait_for_workers(victim)
        fleet.wait_until_idle()


def test_a_worker_leaves_in_the_middle_of_a_run(tmp_path: Path, witness: Witness) -> None:
    """SIGTERM: what it has begun it ends, new work goes elsewhere, then it is gone."""
    with Fleet(tmp_path, workers=2) as fleet:
        fleet.start()
        first = fleet.detached(steady(tmp_path, witness.url, duration="4s", vus=1))
        (leaving,) = fleet.wait_until_running(first, 50).workflows[0].workers
        fleet[leaving].signal(signal.SIGTERM)
        until(
            lambda: any(
                (one.worker, one.state) == (leaving, "draining")
                for one in fleet.ask(lambda cluster: cluster.workers()).workers
            ),
            f"{leaving} draining",
        )
        second = fleet.detached(steady(tmp_path, witness.url, duration="1s", vus=1))
        assert fleet.wait_for_end(first).exit_code == ExitCode.PASSED
        view = fleet.wait_for_end(second)
        assert view.exit_code == ExitCode.PASSED
        assert fleet[leaving].exit_code() == 0
        total = requests_of(fleet.results(first)) + requests_of(fleet.results(second))
        assert total == witness.requests
        until(
            lambda: (
                leaving
                not in {one.worker for one in fleet.ask(lambda cluster: cluster.workers()).workers}
            ),
            f"{leaving} gone",
        )
        fleet.wait_until_idle()


def test_strangers_are_kept_out(tmp_path: Path, witness: Witness) -> None:
    """A worker of another authority, a client of another authority, and an old release."""
    file = steady(tmp_path, witness.url, iterations=20)
    with Fleet(tmp_path, tls=True) as fleet:
        fleet.start()
        stranger = fleet.add_worker("w2")
        other = make_authority("default")
        fleet.certify("w2", "worker", other)
        old = fleet.add_worker("w3")
        old.program = ("-m", "tests.integration.cluster.old_release")
        old.env["PYTHONPATH"] = os.pathsep.join(path or "." for path in sys.path)
        stranger.start()
        old.start()

        fleet.certify("mallory", "client", other)
        refused = fleet.hyperscale("submit", file, "--name", "mallory")
        assert refused.code == ExitCode.FAILED, refused
        assert "certificate" in refused.errors[0] + refused.hints[0]
        assert "Traceback" not in refused.err

        refusal = until(lambda: old.logged("refused"), "w3 refused")[0]
        assert "protocol 0.9" in refusal["reason"]
        until(lambda: stranger.logged("not reached"), "w2 turned away")
        assert stranger.alive, "it goes on trying: its certificate may be replaced"
        ended = fleet.hyperscale("submit", file)
        assert ended.code == ExitCode.PASSED, ended
        assert witness.requests == 20
        views = fleet.ask(lambda cluster: cluster.workers())
        assert [one.worker for one in views.workers] == ["w1"]


@pytest.mark.skipif(not os.environ.get("TESTS_SOAK"), reason="half a minute of waiting")
def test_a_worker_sleeps_for_twenty_seconds(tmp_path: Path, witness: Witness) -> None:
    """Everybody gives up on it; when it wakes up, nothing it says is counted a second time."""
    with Fleet(tmp_path, managers=3, workers=2, tls=True) as fleet:
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="40s", vus=VUS))
        view = fleet.wait_until_running(job_id, 100)
        victim = fleet[view.workflows[0].workers[0]]
        asleep_at = time.monotonic()
        victim.signal(signal.SIGSTOP)
        until(lambda: time.monotonic() > asleep_at + 20, "twenty seconds", DEADLINE_S)
        victim.signal(signal.SIGCONT)
        view = fleet.wait_for_end(job_id)
        results = fleet.results(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        assert 0.5 < results["coverage"] < 1
        assert 0 < requests_of(results) <= witness.requests
        fleet.wait_for_workers(victim.name)
        fleet.wait_until_idle()

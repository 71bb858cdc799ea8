"""Workers that lose TCP and keep UDP, and workers whose process dies: real processes.

What carries commands decides: load that nobody could end ends by itself, and goes on elsewhere.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from hyperscale.errors import ExitCode
from tests.integration.cluster.fleet import Fleet, NodeProcess, until
from tests.integration.cluster.loads import steady
from tests.integration.cluster.wall import Wall
from tests.integration.cluster.witness import Witness

NAMES = {"m1": 1, "w1": 2, "w2": 3}
FENCE_S = 3.0


@contextmanager
def walled(folder: Path) -> Iterator[tuple[Wall, Fleet]]:
    """A manager and two workers that can be kept from each other."""
    with (
        Wall() as wall,
        Fleet(
            folder,
            workers=2,
            worker_env={"HYPERSCALE_WORKER_FENCE_S": f"{FENCE_S:g}"},
            advertise={name: wall.host(number) for name, number in NAMES.items()},
        ) as fleet,
    ):
        for name, number in NAMES.items():
            wall.stand_before(number, fleet[name].port)
        yield wall, fleet.start()


def cut_streams(wall: Wall, fleet: Fleet, victim: str) -> NodeProcess:
    """Its probes are answered as ever."""
    others = [node for name, node in fleet.nodes.items() if name != victim]
    wall.divide([fleet[victim]], others, only_streams=True)
    return fleet[victim]


def states(fleet: Fleet) -> dict[str, str]:
    views = fleet.try_to(lambda cluster: cluster.workers())
    return {} if views is None else {one.worker: one.state for one in views.workers}


def is_still(witness: Witness) -> bool:
    return time.monotonic() - witness.last_moved_s() > 1.5


def test_the_load_of_a_worker_without_tcp_moves(tmp_path: Path) -> None:
    with Witness() as witness, walled(tmp_path) as (wall, fleet):
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="25s", vus=1))
        (victim,) = fleet.wait_until_running(job_id, 50).workflows[0].workers
        cut = cut_streams(wall, fleet, victim)
        until(lambda: states(fleet).get(victim) == "cut off", "it to be shown as cut off")
        until(lambda: cut.logged("cut off"), "the load to stop")
        fleet.wait_for_job(
            job_id, lambda view: view.workflows[0].workers not in ((), (victim,)), "has moved"
        )
        assert not fleet["m1"].logged("member died"), "probes found it alive"
        view = fleet.wait_for_end(job_id)
        assert view.exit_code == ExitCode.LOAD_LOST, view
        wall.heal()
        until(lambda: states(fleet).get(victim) == "healthy", "it to be back")
        fleet.wait_until_idle()


def test_a_cancelled_job_makes_no_load_on_a_worker_without_tcp(tmp_path: Path) -> None:
    with Witness() as witness, walled(tmp_path) as (wall, fleet):
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="300s", vus=1))
        (victim,) = fleet.wait_until_running(job_id, 50).workflows[0].workers
        cut = cut_streams(wall, fleet, victim)
        assert fleet.hyperscale("cancel", job_id).code in (ExitCode.PASSED, ExitCode.FAILED)
        fleet.wait_for_end(job_id)
        until(lambda: is_still(witness), "the load to stop")
        ended = cut.logged("part ended")
        assert [one["outcome"] for one in ended] == ["cut off"]


def test_a_worker_killed_alone_takes_its_generators_along_and_begins_anew(tmp_path: Path) -> None:
    """Nobody but its main process is killed: what it had made is found dead at once, and its part
    is given out again when it registers, without waiting for a silence."""
    with Witness() as witness, Fleet(tmp_path) as fleet:
        fleet.start()
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="40s", vus=2))
        fleet.wait_until_running(job_id, 50)
        worker = fleet["w1"]
        generators = [child.pid for child in worker.children()]
        assert generators
        worker.signal(signal.SIGKILL)
        worker.exit_code()
        until(lambda: not any(map(psutil.pid_exists, generators)), "its generators to be dead")
        until(lambda: is_still(witness), "the load to stop")
        before = witness.requests
        worker.start()
        view = fleet.wait_for_job(
            job_id, lambda view: view.workflows[0].attempts == 2, "has begun anew"
        )
        assert view.workflows[0].workers == ("w1",)
        witness.wait_for_requests(before)
        fleet.hyperscale("cancel", job_id)
        fleet.wait_for_end(job_id)
        fleet.wait_until_idle()

"""`hyperscale drain`: a worker out of service and back, over a change of leader."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cluster.fleet import Fleet, until

SERVING = ("healthy", "degraded")  # as busy as this machine is


def state(fleet: Fleet, name: str) -> str:
    views = fleet.try_to(lambda cluster: cluster.workers(within_s=2.0))
    return next((one.state for one in views.workers if one.worker == name), "") if views else ""


def test_a_drained_worker_stays_so_under_the_next_leader_and_comes_back(tmp_path: Path) -> None:
    with Fleet(tmp_path, managers=3, workers=2) as fleet:
        fleet.start()
        drained = fleet.hyperscale("drain", "w1")
        assert drained.code == 0, drained
        assert "w1 takes no new parts; hyperscale drain w1 --undo takes it back" in drained.out
        until(lambda: state(fleet, "w1") == "draining", "w1 is shown as draining")
        assert state(fleet, "w2") in SERVING

        leader = fleet.leader()
        leader.kill()
        until(lambda: fleet.leader().name != leader.name, "another leader")
        until(lambda: state(fleet, "w1") == "draining", "w1 is still draining")

        back = fleet.hyperscale("drain", "w1", "--undo")
        assert "w1 takes new parts again" in back.out
        until(lambda: state(fleet, "w1") in SERVING, "w1 is back")

        unknown = fleet.hyperscale("drain", "w9")
        assert unknown.code == 1
        assert "w9 cannot be drained: no worker 'w9' is known here" in unknown.err

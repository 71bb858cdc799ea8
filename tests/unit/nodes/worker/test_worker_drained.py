"""A worker that an administrator drains: nothing new, what runs ends, and there is a way back."""

from __future__ import annotations

import pytest

from hyperscale.nodes.worker import gauges
from hyperscale.workload.load import ClosedVUs
from tests.fixtures.scripted_manager import facts
from tests.unit.nodes.worker.sim_cluster import SimCluster
from tests.unit.nodes.worker.test_worker_parts import begin, run


def test_it_finishes_what_runs_takes_nothing_new_and_comes_back() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=ClosedVUs(vus=2, duration_s=8.0)))
        await run(manager, order)
        answer = await manager.drain("w1")
        assert (answer.obeyed, answer.parts) == (True, 1)
        await manager.until(lambda: manager.reports[-1].draining, "to hear of it")
        refused = await manager.dispatch("w1", manager.order(facts("Other")))
        assert (refused.accepted, refused.no_room) == (False, True)
        assert "drained by ann@laptop" in refused.reason
        assert not gauges.readiness(cluster.worker).ok

        end = await manager.ended(order)
        assert (end.outcome, end.measured_s) == ("completed", pytest.approx(8.0))
        assert (await manager.drain("w1", undo=True)).obeyed
        await manager.until(lambda: not manager.reports[-1].draining, "to hear of it")
        assert gauges.readiness(cluster.worker).ok
        await run(manager, manager.order(facts("Third")))

    cluster.play(story())


def test_it_tells_the_next_leader() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        await manager.drain("w1")
        told = len(manager.registrations)
        manager.term = 2
        manager.knows = False
        await manager.until(lambda: len(manager.registrations) > told, "another registration")
        assert manager.registrations[-1].draining

    cluster.play(story())


def test_a_leader_of_an_earlier_term_is_refused_and_so_is_a_way_back_from_leaving() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        manager.term = 7
        await manager.drain("w1", undo=True)
        manager.term = 6
        assert not (await manager.drain("w1")).obeyed
        assert not cluster.worker.parts.draining
        manager.term = 7
        cluster.worker.parts.drain_state.leaving = True
        assert (await manager.drain("w1", undo=True)).reason == "this worker is leaving"
        assert cluster.worker.parts.draining

    cluster.play(story())

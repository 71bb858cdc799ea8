"""A worker in numbers, and whether it says that it can be given work."""

from __future__ import annotations

from typing import Any

from hyperscale.nodes.member.metrics_text import render
from hyperscale.nodes.worker import gauges
from hyperscale.runtime.page_server import Health
from tests.unit.nodes.worker.sim_cluster import CORES, SimCluster


def samples(cluster: SimCluster) -> dict[str, Any]:
    found = list(gauges.metrics(cluster.worker, list))
    assert render(found)
    return {one.name: one.samples for one in found}


def test_a_worker_is_ready_while_a_leader_counts_on_it() -> None:
    cluster = SimCluster()

    async def story() -> None:
        await cluster.world.sleep(0.001)
        assert not gauges.readiness(cluster.worker).ok
        await cluster.world.sleep(5.0)
        assert gauges.readiness(cluster.worker) == Health(ok=True)
        told = samples(cluster)
        assert told["worker_cores"] == {("busy",): 0.0, ("free",): float(CORES)}
        assert told["worker_registered"] == {(): 1.0}
        assert told["worker_lease_seconds"][()] > 0
        assert told["worker_talk_total"][("registrations",)] == 1.0
        assert sum(told["worker_state"].values()) == 1.0
        cluster.world.crash("m1", for_good=True)
        await cluster.world.sleep(15.0)
        health = gauges.readiness(cluster.worker)
        assert not health.ok
        assert "has answered for" in health.reason
        assert samples(cluster)["worker_lease_seconds"] == {(): 0.0}

    cluster.play(story())


def test_a_draining_worker_says_so() -> None:
    cluster = SimCluster()

    async def story() -> None:
        await cluster.world.sleep(5.0)
        cluster.worker.parts.drain_state.leaving = True
        assert gauges.readiness(cluster.worker) == Health(
            False, "it takes no new parts: this worker is leaving"
        )

    cluster.play(story())


def test_circuits_to_managers_are_shown() -> None:
    cluster = SimCluster()

    async def story() -> None:
        await cluster.world.sleep(5.0)
        assert samples(cluster)["worker_circuits"][("closed",)] == 1.0
        cluster.world.crash("m1", for_good=True)
        await cluster.world.sleep(4.0)
        page: Any = gauges.pages(cluster.worker)["/debug/circuits"]()
        ((address, circuit),) = page.items()
        assert address.endswith(":7000")
        assert circuit["opened"] >= 1
        assert samples(cluster)["worker_circuits"][("closed",)] == 0.0

    cluster.play(story())

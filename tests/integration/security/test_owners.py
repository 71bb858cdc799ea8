"""Two clients, each with a certificate of its own, at the managers of one cluster."""

from __future__ import annotations

from pathlib import Path

from hyperscale.nodes.protocol.jobs import JobAck, SteerAck, SteerJob
from hyperscale.wire.peer import Peer
from tests.integration.cluster.fleet import Fleet, until
from tests.integration.cluster.loads import steady
from tests.integration.cluster.witness import Witness
from tests.integration.security.intruder import speaking, submission


def test_a_job_is_its_submitters_also_through_a_manager_that_does_not_lead(tmp_path: Path) -> None:
    with Fleet(tmp_path, managers=2, workers=1, tls=True) as fleet, Witness() as witness:
        fleet.start()
        for name in ("alice", "bob"):
            fleet.certify(name, "client")
        follower = next(node for node in fleet.managers if node.name != fleet.leader().name).name
        file = steady(tmp_path, witness.url, duration="60s")
        message = submission(file, requested_by="boss@hq")

        async def submits(peer: Peer) -> JobAck:
            return await peer.request(message, JobAck, 20.0)

        def cancels(name: str) -> SteerAck:
            async def cancelling(peer: Peer) -> SteerAck:
                order = SteerJob(job_id=message.job_id, action="cancel", by="alice")
                return await peer.request(order, SteerAck, 20.0)

            return speaking(fleet, name, "client", cancelling, to=follower)

        assert speaking(fleet, "alice", "client", submits, to=follower).accepted
        fleet.wait_until_running(message.job_id)
        assert fleet.job(message.job_id).owner == "alice"
        listed = fleet.hyperscale("jobs", "--name", "bob").out
        assert "alice (boss@hq)" in listed
        refused = cancels("bob")
        assert not refused.accepted
        assert f"job {message.job_id} belongs to alice; bob may only read it" in refused.error
        by_program = fleet.hyperscale("cancel", message.job_id, "--name", "bob")
        assert by_program.code != 0
        assert "belongs to alice" in by_program.err
        assert cancels("alice").accepted
        view = fleet.wait_for_end(message.job_id)
        assert view.reason == "cancelled by alice (alice)"


def test_an_operator_drains_a_worker_by_way_of_a_manager_that_does_not_lead(tmp_path: Path) -> None:
    from hyperscale.nodes.protocol.jobs import DrainAck, DrainWorker

    with Fleet(tmp_path, managers=2, workers=1, tls=True) as fleet:
        fleet.start()
        follower = next(node for node in fleet.managers if node.name != fleet.leader().name).name

        async def drains(peer: Peer) -> DrainAck:
            return await peer.request(DrainWorker(worker="w1", by="boss"), DrainAck, 20.0)

        fleet.certify("bob", "client", groups=("shop",))
        refused = speaking(fleet, "bob", "client", drains, to=follower)
        assert not refused.accepted
        assert refused.error.startswith("bob is not of the group operators")
        assert speaking(fleet, "client", "client", drains, to=follower).accepted
        (drained,) = until(lambda: fleet["w1"].logged("drained"), "a line of the log")
        assert drained["by"] == "client (boss)"

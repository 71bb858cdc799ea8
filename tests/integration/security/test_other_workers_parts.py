"""A worker's key against the part of another worker: neither its end nor its numbers are taken."""

from __future__ import annotations

from pathlib import Path

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.engine.messages import Stamped
from hyperscale.nodes.protocol.parts import EventAnswer, PartEnd, TellEvent
from hyperscale.wire.errors import Refused
from hyperscale.wire.peer import Peer
from tests.integration.cluster.fleet import Fleet
from tests.integration.cluster.loads import steady
from tests.integration.cluster.witness import Witness
from tests.integration.security.intruder import speaking


def test_it_does_not_end_it(tmp_path: Path) -> None:
    with Fleet(tmp_path, managers=1, workers=1, tls=True) as fleet, Witness() as witness:
        fleet.start()
        fleet.certify("w9", "worker")
        job_id = fleet.detached(steady(tmp_path, witness.url, iterations=400, think="10ms"))
        fleet.wait_until_running(job_id)
        value = {"x": Stamped(2**40, 0, b"cos\nsystem\n(S'id'\ntR.")}

        async def ends(peer: Peer) -> list[str]:
            said = []
            for term in (1, 2, 3):
                for epoch in range(6):
                    event = PartEnd(
                        part=Part(job_id, "Steady", 0),
                        fence=Fence(term, epoch, 1),
                        worker="w9",
                        outcome="completed",
                        iterations=10**9,
                        context=value,
                    )
                    try:
                        await peer.request(TellEvent(event=event), EventAnswer, 10.0)
                    except Refused as refusal:
                        said.append(refusal.reason)
            return said

        said = speaking(fleet, "w9", "worker", ends)
        assert said == [f"{Part(job_id, 'Steady', 0)} is placed on w1, not on w9"]
        view = fleet.wait_for_end(job_id)
        assert (view.status, sum(one.requests for one in view.workflows)) == ("completed", 400)

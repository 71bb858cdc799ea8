"""What the key of a worker opens at a manager: its own work, and nothing that people ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hyperscale.nodes.protocol.jobs import (
    JobAck,
    JobUpdate,
    SteerAck,
    SteerJob,
    WatchJob,
)
from hyperscale.wire.errors import Reason, Refused, RemoteFailed
from hyperscale.wire.messages import Registry
from hyperscale.wire.peer import Peer
from tests.integration.cluster.fleet import Fleet
from tests.integration.cluster.loads import steady
from tests.integration.cluster.witness import Witness
from tests.integration.security.intruder import ALL, speaking, submission

OWN = {
    "register.worker",
    "tell.event",
    "report.progress",
    "ask.extension",
    "leave.worker",
    "member.exchange",
    "discovery.probe",
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet"), managers=1, workers=2, tls=True) as made:
        yield made.start()


def refusals(fleet: Fleet, to: str) -> dict[str, str]:
    """By kind, why a worker may not ask it. There is nothing in the messages: whoever may not send
    them learns not even that."""
    empty = Registry()
    hollow = {kind.name: msgspec.defstruct("Hollow", []) for kind in ALL}
    for kind in ALL:
        empty.add(hollow[kind.name], kind=kind.name, priority=kind.priority, version=kind.version)

    async def asks(peer: Peer) -> dict[str, str]:
        said = {}
        for name, struct in hollow.items():
            with pytest.raises((Refused, RemoteFailed)) as refusal:
                await peer.request(struct(), JobAck, 10.0)
            if isinstance(refusal.value, Refused):
                said[name] = refusal.value.code
        return said

    return speaking(fleet, "w1", "worker", asks, to=to, kinds=empty)


def test_it_asks_a_manager_for_nothing_but_its_own_work(fleet: Fleet) -> None:
    said = refusals(fleet, "m1")
    refused = {name for name, code in said.items() if code == Reason.ROLE_NOT_ALLOWED}
    assert {kind.name for kind in ALL} - refused == OWN


def test_it_asks_another_worker_for_nothing(fleet: Fleet) -> None:
    said = refusals(fleet, "w2")
    assert set(said) == {kind.name for kind in ALL}
    assert set(said.values()) == {Reason.ROLE_NOT_ALLOWED}


def test_it_neither_submits_nor_watches_nor_cancels(fleet: Fleet, tmp_path: Path) -> None:
    with Witness() as witness:
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="60s"))
        fleet.wait_until_running(job_id)
        mine = submission(steady(tmp_path, witness.url, name="mine.py"), requested_by="boss")

        async def tries(peer: Peer) -> list[str]:
            codes = []
            for message, answer in (
                (SteerJob(job_id=job_id, action="cancel", by="root@boss"), SteerAck),
                (mine, JobAck),
            ):
                with pytest.raises(Refused) as refusal:
                    await peer.request(message, answer, 10.0)
                codes.append(refusal.value.code)
            with pytest.raises(Refused) as refusal:
                async with await peer.subscribe(WatchJob(job_id=job_id), JobUpdate) as updates:
                    await anext(aiter(updates))
            return [*codes, refusal.value.code]

        assert speaking(fleet, "w1", "worker", tries) == [Reason.ROLE_NOT_ALLOWED] * 3
        view = fleet.only_job()
        assert (view.job_id, view.status) == (job_id, "running")
        assert fleet.hyperscale("cancel", job_id).code == 0
        fleet.wait_for_end(job_id)


def test_a_client_speaks_for_no_worker(fleet: Fleet) -> None:
    from hyperscale.nodes.protocol.parts import LeaveWorker, Left

    async def leaves(peer: Peer) -> Refused:
        with pytest.raises(Refused) as refusal:
            await peer.request(LeaveWorker(worker="w1", incarnation=1), Left, 10.0)
        return refusal.value

    refused = speaking(fleet, "client", "client", leaves)
    assert refused.code == Reason.ROLE_NOT_ALLOWED
    assert "it may come from worker" in refused.reason

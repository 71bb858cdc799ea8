"""A real gate before a real datacenter: what each kind of certificate opens there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hyperscale.nodes.gate.ledger import LEDGER
from hyperscale.nodes.protocol.jobs import Body, JobAck, SteerAck, SteerJob
from hyperscale.wire.errors import Reason, Refused, RemoteFailed
from hyperscale.wire.messages import Registry
from hyperscale.wire.peer import Peer
from tests.integration.cli.program import Ended, hyperscale
from tests.integration.cluster.fleet import CLUSTER, ENV, Fleet, until
from tests.integration.cluster.loads import steady
from tests.integration.cluster.witness import Witness
from tests.integration.security.intruder import ALL, speaking, submission

ASKED_BY_CLIENTS = {
    *("submit.job", "steer.job", "ask.job", "ask.jobs", "ask.results", "watch.job"),
    *("member.ask_members", "member.ask_status"),
}
OF_MEMBERS = {"member.exchange", "discovery.probe", "member.ask_members", "member.ask_status"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A manager that takes no clients, and the gate before it."""
    with Fleet(tmp_path_factory.mktemp("fleet"), managers=1, workers=1, tls=True) as made:
        made.start()
        made["m1"].kill()
        made["m1"].env["HYPERSCALE_MANAGER_ONLY_GATES"] = "true"
        made["m1"].start()
        made.add_gate("g1").start()
        until(lambda: at(made, "g1", "jobs").code == 0, "a gate that answers")
        yield made


def at(fleet: Fleet, node: str, *words: object, name: str = "client") -> Ended:
    known = ("--cluster-id", CLUSTER, "--environment", ENV, "--certs", fleet.certs, "--name", name)
    return hyperscale(
        *words, "--manager", f"127.0.0.1:{fleet[node].port}", *known, cwd=fleet.folder
    )


def allowed(fleet: Fleet, name: str, role: str) -> set[str]:
    """What the gate does not refuse to this role before it reads it."""
    hollow = Registry()
    kinds = [*ALL, *LEDGER]
    structs = {kind.name: msgspec.defstruct("Hollow", []) for kind in kinds}
    for kind in kinds:
        hollow.add(structs[kind.name], kind=kind.name, priority=kind.priority, version=kind.version)

    async def asks(peer: Peer) -> set[str]:
        await peer.connection()
        said = set()
        for kind, struct in structs.items():
            try:
                await peer.request(struct(), JobAck, 10.0)
            except Refused as refusal:
                if refusal.code in (Reason.ROLE_NOT_ALLOWED, Reason.UNKNOWN_KIND):
                    continue
            except RemoteFailed:
                pass
            said.add(kind)
        return said

    return speaking(fleet, name, role, asks, to="g1", kinds=hollow)


def test_a_client_asks_about_jobs_and_says_nothing_of_what_gates_agree_on(fleet: Fleet) -> None:
    assert allowed(fleet, "client", "client") - {"ask.workers", "drain.worker"} == ASKED_BY_CLIENTS


def test_a_datacenters_manager_asks_a_gate_for_no_job(fleet: Fleet) -> None:
    assert allowed(fleet, "m1", "manager") <= OF_MEMBERS


def test_a_workers_certificate_does_not_get_in(fleet: Fleet) -> None:
    with pytest.raises(Refused, match="'worker' cannot connect to 'gate'") as refused:
        allowed(fleet, "w1", "worker")
    assert refused.value.code == Reason.ROLE_NOT_ALLOWED


def test_a_manager_told_of_gates_refuses_clients_and_says_where_to_go(fleet: Fleet) -> None:
    ended = at(fleet, "m1", "jobs")
    assert ended.code == 1
    assert "'client' cannot connect to 'manager'" in ended.err
    assert "or of a gate where there are gates" in ended.err


def test_a_job_is_its_submitters_at_gates_too(fleet: Fleet, tmp_path: Path) -> None:
    fleet.certify("alice", "client")
    fleet.certify("bob", "client")
    with Witness() as witness:
        message = submission(steady(tmp_path, witness.url, duration="60s"), "\x1b]0;owned\x07boss")

        async def submits(peer: Peer) -> JobAck:
            return await peer.request(message, JobAck, 20.0)

        async def cancels(peer: Peer) -> SteerAck:
            forged = SteerJob(
                job_id=message.job_id, action="cancel", asked_by="alice", certified=True,
                groups=("operators",), passed_on=True,
            )  # fmt: skip
            return await peer.request(forged, SteerAck, 20.0)

        def accepted() -> bool:
            ack = speaking(fleet, "alice", "client", submits, to="g1")
            assert ack.accepted or ack.retry_after_s, ack.error
            return ack.accepted

        until(accepted, "the gate to see a worker")
        assert "bob may only read it" in speaking(fleet, "bob", "client", cancels, to="g1").error
        assert "\x1b" not in at(fleet, "g1", "status", message.job_id, name="bob").out
        assert speaking(fleet, "alice", "client", cancels, to="g1").accepted
        until(
            lambda: "cancelled by g1 (alice)" in at(fleet, "g1", "status", message.job_id).out,
            "its end",
        )


def test_a_submission_is_counted_before_anything_is_built(fleet: Fleet, tmp_path: Path) -> None:
    message = submission(steady(tmp_path, "http://127.0.0.1:1", duration="1s"))
    body = msgspec.msgpack.decode(message.body, type=Body)
    many = msgspec.structs.replace(body.workflows[0], steps=body.workflows[0].steps * 10_001)
    large = msgspec.structs.replace(body, workflows=(many,))

    async def submits(peer: Peer) -> JobAck:
        sent = msgspec.structs.replace(message, body=msgspec.msgpack.encode(large))
        return await peer.request(sent, JobAck, 20.0)

    ack = speaking(fleet, "client", "client", submits, to="g1")
    assert not ack.accepted
    assert "at most 10,000 steps" in ack.error

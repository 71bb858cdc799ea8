"""Datagrams of somebody who has what every worker has: the cluster secret."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hyperscale.cluster.election import list_digest
from hyperscale.cluster.election.messages import Envelope, Heartbeat, PreVoteReply
from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import messages as membership
from hyperscale.nodes.member.queries import AskMembers, Members
from hyperscale.nodes.member.shared_port import Channel
from hyperscale.wire.peer import Peer
from tests.fixtures.datagrams import tell
from tests.integration.cluster.fleet import CLUSTER, ENV, Fleet, until
from tests.integration.security.intruder import speaking

VOTERS = ("m1", "m2", "m3")


def members(fleet: Fleet, of: str) -> Members:
    async def asks(peer: Peer) -> Members:
        return await peer.request(AskMembers(), Members, 10.0)

    return speaking(fleet, "client", "client", asks, to=of)


def test_it_neither_deposes_a_leader_nor_ends_a_life(tmp_path: Path) -> None:
    with Fleet(tmp_path, managers=3, workers=1, tls=True) as fleet:
        fleet.start()
        leader = fleet.leader().name
        before = members(fleet, leader)
        lives = {row.node_id: row.incarnation for row in before.rows}
        group, digest = f"{CLUSTER}/{ENV}/manager", list_digest(VOTERS)
        rival = next(name for name in VOTERS if name != leader)

        def forge(sender: str, to: str, data: bytes) -> None:
            secret = (fleet.folder / "secret").read_text()
            tell(("127.0.0.1", fleet[to].port), sender, secret, data)

        for term in (before.term + 1, 2**62):
            for message in (PreVoteReply(term, 1, False), Heartbeat(term, 1)):
                data = msgspec.msgpack.encode(Envelope(group, rival, digest, message))
                for name in VOTERS:
                    if name != rival:
                        forge(rival, name, bytes((Channel.ELECTION,)) + data)
        me = Node("w1", lives["w1"], "worker", "local", ("127.0.0.1", 1), ("127.0.0.1", 1))
        lie = membership.Gossip(membership.Sender(me), [membership.Suspect(leader, 2**53, ("w1",))])
        head = membership.header(f"{CLUSTER}/{ENV}")
        for name in VOTERS:
            gossip = bytes((Channel.MEMBERSHIP,)) + membership.encode(head, lie)
            forge("w1", name, gossip)
            forge(rival, name, b"\x09")
        told = "forged datagrams refused"
        until(lambda: fleet[leader].logged(told), "the leader has met them")
        after = members(fleet, leader)
        assert (after.leader, after.term) == (leader, before.term)
        now = {row.node_id: row.incarnation for row in after.rows}
        assert now[leader] < lives[leader] + 2**20
        assert {row.state for row in after.rows if row.role == "manager"} == {"alive"}

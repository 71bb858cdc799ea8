"""Incarnations that nobody has reached: refused, whoever tells them, and nobody is silenced."""

from __future__ import annotations

import pytest

from hyperscale.cluster.identity import INCARNATION_MAX, JUMP_MAX, Node
from hyperscale.cluster.membership.messages import (
    Alive,
    Dead,
    Gossip,
    Left,
    Sender,
    Suspect,
    Update,
    encode,
    header,
)
from tests.unit.cluster.membership.driver import Cluster

LIAR = Node("n9", 1, "worker", "dc1", ("n9", 1), ("n9", 1))
FAR = INCARNATION_MAX


def told(cluster: Cluster, update: Update, by: Node = LIAR) -> None:
    data = encode(header(cluster.config.cluster), Gossip(Sender(by), [update]))
    for name, core in cluster.cores.items():
        cluster.carry(name, core.receive(cluster.now, data))


@pytest.mark.parametrize("far", [JUMP_MAX + 1_000, 2**53, FAR])
@pytest.mark.parametrize(
    "lie",
    [
        lambda far: Suspect("n1", far, ("n9",)),
        lambda far: Dead("n1", far, "n9"),
        lambda far: Left("n1", far),
        lambda far: Alive(Node("n1", far, "manager", "dc1", ("n9", 1), ("n9", 1))),
    ],
)
def test_a_member_is_not_talked_out_of_its_incarnation(lie, far: int) -> None:  # type: ignore[no-untyped-def]
    cluster = Cluster(3)
    cluster.run(10.0)
    before = cluster.cores["n1"].me.incarnation
    told(cluster, lie(far))
    cluster.run(30.0)
    assert cluster.cores["n1"].me.incarnation == before
    for name in ("n0", "n2"):
        member = cluster.cores[name].member("n1")
        assert member is not None
        assert (member.live, member.incarnation) == (True, before)
        assert cluster.cores[name].counts["jump_refused"] > 0


def test_a_life_within_reach_is_outlived_as_ever() -> None:
    cluster = Cluster(3)
    cluster.run(10.0)
    before = cluster.cores["n1"].me.incarnation
    told(cluster, Suspect("n1", before + 1_000, ("n9",)))
    cluster.run(30.0)
    assert cluster.cores["n1"].me.incarnation > before + 1_000
    member = cluster.cores["n0"].member("n1")
    assert member is not None
    assert member.live


def test_a_death_told_of_a_stranger_does_not_keep_it_out() -> None:
    cluster = Cluster(2)
    cluster.run(5.0)
    told(cluster, Dead("n5", FAR, "n9"))
    cluster.start("n5", join=True)
    cluster.run(20.0)
    member = cluster.cores["n0"].member("n5")
    assert member is not None
    assert member.live


def test_an_impostor_with_a_far_life_does_not_replace_a_member() -> None:
    cluster = Cluster(3)
    cluster.run(10.0)
    fake = Node("n1", FAR, "manager", "dc1", ("n9", 1), ("n9", 1))
    told(cluster, Left("nobody", 1), by=fake)
    cluster.run(20.0)
    member = cluster.cores["n0"].member("n1")
    assert member is not None
    assert (member.live, member.node.udp) == (True, ("n1", 1))


def test_a_datagram_in_the_name_of_a_stranger_does_not_keep_it_out() -> None:
    cluster = Cluster(2)
    cluster.run(5.0)
    fake = Node("n5", 2**53, "manager", "dc1", ("n9", 1), ("n9", 1))
    told(cluster, Left("nobody", 1), by=fake)
    assert cluster.cores["n0"].member("n5") is None
    cluster.start("n5", join=True)
    cluster.run(20.0)
    member = cluster.cores["n0"].member("n5")
    assert member is not None
    assert (member.live, member.incarnation < JUMP_MAX) == (True, True)


def test_a_node_that_was_driven_far_is_known_again_after_the_others_restarted() -> None:
    cluster = Cluster(3)
    cluster.run(10.0)
    for step in (1, 2, 3):
        told(cluster, Suspect("n1", step * JUMP_MAX, ("n9",)))
        cluster.run(5.0)
    assert cluster.cores["n1"].me.incarnation > 3 * JUMP_MAX
    for name in ("n0", "n2"):
        cluster.down.add(name)
    cluster.run(1.0)
    for name in ("n0", "n2"):
        cluster.start(name, join=True)
    cluster.run(60.0)
    for name in ("n0", "n2"):
        member = cluster.cores[name].member("n1")
        assert member is not None
        assert member.live

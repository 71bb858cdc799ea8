"""Five nodes find each other over simulated streams, in any order, with dead seeds and DNS."""

from __future__ import annotations

import struct

import pytest

from hyperscale.cluster.discovery import DiscoverySettings, DiscoveryState, DnsName, Probe
from hyperscale.cluster.identity import Node
from hyperscale.errors import RunFailed
from hyperscale.nodes.member.bootstrap import PROBES, Bootstrap
from hyperscale.runtime.host import Address, Datagrams
from hyperscale.sim.host import SimHost
from hyperscale.sim.links import Cut
from hyperscale.sim.world import World
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.server import Server

NAMES = [f"n{number}" for number in range(1, 6)]
PORT = 9_000


class Cluster:
    def __init__(self, seed: int, **settings: object) -> None:
        self.world = World(seed)
        self.settings = settings
        self.found: dict[str, set[str]] = {}
        self.formed: set[str] = set()
        self.failed: dict[str, str] = {}
        self.bootstraps: dict[str, Bootstrap] = {}
        self.delays: dict[str, float] = {}
        self.cluster_ids: dict[str, str] = {}
        self.nameservers: list[Address] = []

    async def node(self, host: SimHost) -> None:
        await host.clock.sleep(self.delays.get(host.name, 0.0))
        name, role, cluster = host.name, "manager", self.cluster_ids.get(host.name, "c")
        place = (host.ip, PORT)
        me = Probe(cluster, "test", Node(name, host.generation, role, "dc", place, place))
        config = {"peer_roles": ("manager",), "forms_cluster": True} | self.settings
        bootstrap = self.bootstraps[name] = Bootstrap(
            host,
            me,
            DiscoverySettings(**config),  # type: ignore[arg-type]
            self.nameservers,
        )
        bootstrap.on_found.append(lambda peer: self.found.setdefault(name, set()).add(peer.node_id))
        bootstrap.on_formed.append(lambda: self.formed.add(name))
        identity = Identity(
            node_id=name,
            incarnation=host.generation,
            role=role,
            cluster_id=cluster,
            environment_id="test",
            datacenter="dc",
        )
        endpoint = Endpoint(
            host, Introduction(identity), PROBES, bootstrap.handlers, plaintext="anywhere"
        )
        await Server(endpoint).start(Address("", PORT))
        await bootstrap.start(endpoint)
        try:
            await bootstrap.joined()
        except RunFailed as failure:
            self.failed[name] = failure.message

    def run(self, seconds: float) -> None:
        self.world.run(self.world.sleep(seconds))
        assert self.world.failures == []

    def together(self) -> set[str]:
        """Everybody reached from the first node by finding or being found."""
        known = {NAMES[0]}
        for _ in NAMES:
            for name, peers in self.found.items():
                if name in known or peers & known:
                    known |= {name} | peers
        return known


@pytest.mark.parametrize("seed", range(10))
def test_five_nodes_in_any_order_with_dead_seeds(seed: int) -> None:
    seeds = (("n1", PORT), ("gone", PORT), ("n2", PORT), ("10.99.0.1", PORT), ("n3", PORT))
    cluster = Cluster(seed, seeds=seeds)
    dice = cluster.world.random
    for name in dice.sample(NAMES, len(NAMES)):
        cluster.delays[name] = dice.choice([0.0, dice.uniform(0.0, 1.0), dice.uniform(0.0, 20.0)])
        cluster.world.add(name, cluster.node)
    cluster.run(45.0)
    assert cluster.together() == set(NAMES)
    assert {each.state for each in cluster.bootstraps.values()} == {DiscoveryState.JOINED}
    cluster.world.close()


def test_the_first_node_forms_and_a_restart_finds_the_way_back_by_its_file() -> None:
    cluster = Cluster(1, seeds=(("n1", PORT),))
    for name in ("n1", "n2"):
        cluster.world.add(name, cluster.node)
    cluster.run(5.0)
    assert cluster.found == {"n1": {"n2"}, "n2": {"n1"}}
    cluster.settings["seeds"] = ()
    cluster.found.clear()
    cluster.world.crash("n2")
    cluster.world.restart("n2")
    cluster.run(1.0)
    assert cluster.found == {"n2": {"n1"}}
    cluster.world.close()


def test_another_cluster_is_refused_and_the_worker_is_told() -> None:
    cluster = Cluster(3, seeds=(("n1", PORT),), forms_cluster=False, deadline_s=3.0)
    cluster.cluster_ids["n1"] = "other"
    for name in ("n1", "n2"):
        cluster.world.add(name, cluster.node)
    cluster.run(10.0)
    assert "n2" not in cluster.found
    assert "this is cluster 'other', not 'c'" in cluster.failed["n2"]
    cluster.world.close()


def test_service_names_lead_to_peers() -> None:
    cluster = Cluster(4, names=(DnsName("_hs._tcp.test", service=True),))
    asked: list[Address] = []

    async def name_server(host: SimHost) -> None:
        def answer(query: bytes, source: Address) -> None:
            asked.append(source)
            target = b"".join(bytes([len(part)]) + part for part in (b"n1",)) + b"\0"
            data = struct.pack(">HHH", 0, 0, PORT) + target
            head = query[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
            record = b"\xc0\x0c" + struct.pack(">HHIH", 33, 1, 10, len(data)) + data
            port[0].send(source, head + query[12:-11] + record)

        port: list[Datagrams] = [await host.network.bind(Address("", 53), answer)]
        await host.clock.sleep(1_000.0)

    machine = cluster.world.add("ns", name_server)
    cluster.nameservers = [Address("10.99.0.99", 53), Address(machine.ip, 53)]
    for name in ("n1", "n2"):
        cluster.world.add(name, cluster.node)
    cluster.run(10.0)
    assert asked
    assert cluster.found["n2"] == {"n1"}
    cluster.world.close()


def test_a_partition_during_the_start_is_healed_later() -> None:
    cluster = Cluster(5, seeds=tuple((name, PORT) for name in NAMES))
    for name in NAMES:
        cluster.world.add(name, cluster.node)
    left, right = NAMES[:2], NAMES[2:]
    cluster.world.network.cut(Cut("partition", frozenset(left), frozenset(right)))
    cluster.run(20.0)
    assert cluster.together() == set(left)
    cluster.world.network.heal_all()
    cluster.run(70.0)
    assert cluster.together() == set(NAMES)
    cluster.world.close()

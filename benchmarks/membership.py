"""The cost of size, measured in the simulator.

    python benchmarks/membership.py      (a Markdown table on stdout)

A quiet cluster, then one node is killed; views start filled, so that what is measured is the
protocol at rest and not the join of a thousand nodes in one instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import Change, Changed, MembershipConfig, Via
from hyperscale.nodes.member.membership_shell import MemberSettings, MembershipShell
from hyperscale.runtime.host import Address
from hyperscale.sim import Scenario, SimHost, World, run

PORT = 7_000


class Measured(Scenario):
    """Nodes that know each other from the start; subclasses disturb them and look."""

    name = "measured"
    faults = ()
    safety_s = 180.0
    liveness_s = 1.0

    def __init__(self, nodes: int, config: MembershipConfig) -> None:
        super().__init__(nodes)
        self.config = config
        self.shells: dict[str, MembershipShell] = {}
        self.told: list[tuple[float, str, Changed]] = []

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, lambda host: self.node(world, host))

    async def node(self, world: World, host: SimHost) -> None:
        here = Address(host.ip, PORT)
        settings = MemberSettings(host.name, bind_udp=here, bind_tcp=here)
        shell = MembershipShell(host, settings, self.config)
        shell.on_change(lambda event: self.told.append((world.now, host.name, event)))
        await shell.start()
        self.shells[host.name] = shell

    async def all_acquainted(self, world: World) -> None:
        while len(self.shells) < self.nodes:
            await world.sleep(0.1)
        everybody = [shell.me for shell in self.shells.values()]
        for shell in self.shells.values():
            acquaint(shell, everybody)
        await world.sleep(5.0)

    def deaths(self, subject: str) -> list[tuple[float, Changed]]:
        return [
            (at, event)
            for at, _, event in self.told
            if event.node.node_id == subject and event.change is Change.DIED
        ]


def acquaint(shell: MembershipShell, everybody: Sequence[Node]) -> None:
    """Fill a view as if it had been there for long. Nothing is told."""
    shared = shell.core._shared
    for node in everybody:
        if node.node_id != shell.me.node_id and shared.view.get(node.node_id) is None:
            shared.view.add(node, 0.0).confirmed = True
            shared.ring.add(node.node_id)
    for node in everybody:
        shared.news.forget(node.node_id)


class Quiet(Measured):
    safety_s = 110.0

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes, MembershipConfig())
        self.bytes_per_node_s = 0.0
        self.stream_bytes_per_node_s = 0.0
        self.killed_at = 0.0
        self.subject = f"n{nodes}"

    async def during(self, world: World) -> None:
        await self.all_acquainted(world)
        before, streams = self._sent(world)
        await world.sleep(60.0)
        after, streams_after = self._sent(world)
        self.bytes_per_node_s = (after - before) / 60.0 / self.nodes
        self.stream_bytes_per_node_s = (streams_after - streams) / 60.0 / self.nodes
        self.killed_at = world.now
        world.crash(self.subject)
        await world.sleep(40.0)

    def _sent(self, world: World) -> tuple[int, int]:
        streams = sum(shell.counts["stream_bytes_out"] for shell in self.shells.values())
        datagrams = sum(shell.counts["datagram_bytes_out"] for shell in self.shells.values())
        return datagrams, streams


def sizes() -> None:
    print("### Cost and speed by size (healthy network, one node killed)\n")
    print(
        "| nodes | datagram bytes per node and s | stream bytes per node and s "
        "| first suspicion, s "
        "| first death, s | known by all, s | told by gossip | simulated at |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for nodes in (10, 100, 1_000):
        scenario = Quiet(nodes)
        report = run(scenario, 1)
        assert report.ok, report.failures
        suspected = min(
            at
            for at, _, event in scenario.told
            if event.change is Change.SUSPECTED and event.node.node_id == scenario.subject
        )
        died = scenario.deaths(scenario.subject)
        assert len(died) == nodes - 1, f"{len(died)} of {nodes - 1} know"
        via = Counter(event.via for _, event in died)
        times = [at - scenario.killed_at for at, _ in died]
        print(
            f"| {nodes} | {scenario.bytes_per_node_s:.0f} | "
            f"{scenario.stream_bytes_per_node_s:.0f} | {suspected - scenario.killed_at:.1f} | "
            f"{min(times):.1f} | {max(times):.1f} | {via[Via.GOSSIP]} | "
            f"{report.virtual_s / report.real_s:.0f} x real time |",
            flush=True,
        )
    print()


if __name__ == "__main__":
    sizes()

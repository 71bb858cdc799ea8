"""Membership measured in the simulator: Lifeguard on and off, and the cost of size.

    python benchmarks/membership.py [lifeguard] [sizes]      (Markdown tables on stdout)

Lifeguard: 100 nodes of which some stall again and again, as in the experiment of
arXiv 1707.00788. A false positive is a belief that a node which was never disturbed is dead;
it counts once per node that held it. Then three healthy nodes are killed.

Sizes: a quiet cluster, then one node is killed; views start filled, so that what is measured is
the protocol at rest and not the join of a thousand nodes in one instant.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections import Counter
from collections.abc import Sequence

from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import Change, Changed, MembershipConfig, Via, plain_swim
from hyperscale.nodes.member.membership_shell import MemberSettings, MembershipShell
from hyperscale.runtime.host import Address
from hyperscale.sim import Scenario, SimHost, World, run
from hyperscale.sim.links import clog

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
    station = shell.core._station
    for node in everybody:
        if node.node_id != shell.me.node_id and station.view.get(node.node_id) is None:
            station.view.add(node, 0.0).confirmed = True
            station.ring.add(node.node_id)
    for node in everybody:
        station.news.forget(node.node_id)


# --- Lifeguard ------------------------------------------------------------------------------------


class Slow(Measured):
    """`slow` nodes stall again and again. As in the paper a stall blocks what goes in and out
    while timers run on: a process whose threads do not get their turn."""

    stall_s = (4.0, 16.0)
    run_s = (0.001, 0.25)

    def __init__(self, nodes: int, config: MembershipConfig, slow: int) -> None:
        super().__init__(nodes, config)
        self.slow = self.node_names()[:slow]
        self.killed: dict[str, float] = {}

    async def during(self, world: World) -> None:
        await self.all_acquainted(world)
        stumbling = [asyncio.ensure_future(self._stumble(world, name)) for name in self.slow]
        try:
            await world.sleep(100.0)
            for name in self.node_names()[-3:]:
                self.killed[name] = world.now
                world.crash(name)
            await world.sleep(70.0)
        finally:
            for task in stumbling:
                task.cancel()

    async def _stumble(self, world: World, name: str) -> None:
        dice = world.random_stream(f"slow {name}")
        while True:
            await world.sleep(dice.uniform(*self.run_s))
            stall = world.network.cut(clog(name))
            await world.sleep(dice.uniform(*self.stall_s))
            world.network.heal(stall)

    def false_positives(self) -> tuple[int, int]:
        """All, and those held by healthy nodes."""
        held = [
            observer
            for _, observer, event in self.told
            if event.change is Change.DIED
            and event.node.node_id not in self.slow
            and event.node.node_id not in self.killed
        ]
        return len(held), sum(observer not in self.slow for observer in held)

    def latencies(self) -> tuple[list[float], list[float]]:
        """Until the first healthy node, and until the last one knows."""
        first, last = [], []
        for name, killed_at in self.killed.items():
            known = [
                at - killed_at
                for at, observer, event in self.told
                if event.node.node_id == name
                and event.change is Change.DIED
                and observer not in self.slow
                and at >= killed_at
            ]
            if known:  # else it was believed dead, wrongly, before it was
                first.append(min(known))
                last.append(max(known))
        return first, last


def lifeguard(seeds: Sequence[int] = (1, 2)) -> None:
    print(
        "### Lifeguard: 100 nodes, some slow\n\n"
        "A slow node hears and says nothing for 4 to 16 s, then catches up for 1 to 250 ms.\n"
    )
    print(
        "| slow nodes | protocol | false positives | at healthy nodes | first detection, s "
        "(median, max) | known by all healthy, s (median, max) |"
    )
    print("|---|---|---|---|---|---|")
    configs = {"SWIM": plain_swim(MembershipConfig()), "SWIM + Lifeguard": MembershipConfig()}
    for slow in (1, 8, 24):
        counts: dict[str, int] = {}
        for protocol, config in configs.items():
            total = healthy = 0
            first: list[float] = []
            last: list[float] = []
            for seed in seeds:
                scenario = Slow(100, config, slow)
                report = run(scenario, seed)
                assert report.ok, report.failures
                all_held, at_healthy = scenario.false_positives()
                total += all_held
                healthy += at_healthy
                begun, ended = scenario.latencies()
                first += begun
                last += ended
            counts[protocol] = total
            print(
                f"| {slow} | {protocol} | {total} | {healthy} | {spread(first)} | {spread(last)} |",
                flush=True,
            )
        plain, guarded = counts["SWIM"], counts["SWIM + Lifeguard"]
        ratio = f"{plain / guarded:.0f} x fewer" if guarded else f"{plain} to none"
        print(f"| {slow} | | {ratio} | | | |", flush=True)
    print(
        "\nThe paper (arXiv 1707.00788) reports 50 to 100 times fewer false positives, and "
        "about 1.9 % of SWIM's at healthy members.\n"
    )


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f}, {max(values):.1f}"


# --- sizes ----------------------------------------------------------------------------------------


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


def main() -> None:
    wanted = sys.argv[1:] or ["lifeguard", "sizes"]
    if "lifeguard" in wanted:
        lifeguard()
    if "sizes" in wanted:
        sizes()


if __name__ == "__main__":
    main()

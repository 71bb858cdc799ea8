"""Elections among three or five voters, in every weather.

Most seeds are a swarm of faults with an adversary that aims at the leader. Some are calm on
purpose: single nodes are cut off and return (nobody may notice), or the network is a partial mesh,
as in the outage where an etcd cluster found no leader for six hours. Leaders command a
resource that guards itself with fencing tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

import msgspec

from hyperscale.cluster.election import ElectionSettings, ElectionState, Eligibility, Envelope
from hyperscale.cluster.fencing import FenceGuard, Ruling
from hyperscale.nodes.member.election_shell import ElectionPlan, ElectionShell
from hyperscale.nodes.member.term_file import TermFile
from hyperscale.runtime.host import Address
from hyperscale.sim.checkers import Checker
from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.links import Cut, one_way, partition
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.election_bugs import (
    CORES,
    FILES,
    PLANTED_BUGS,
    BlindGuard,
    WatchedElection,
)
from hyperscale.sim.scenarios.election_checkers import all_checkers
from hyperscale.sim.world import World

PORT = 7_000
SETTLED_S = 6.0
HASTY = ElectionSettings(
    election_delay_max_s=3.1, retry_delay_min_s=0.002, retry_delay_max_s=0.05, ballot_resend_s=0.05
)
"""Voters that strike the moment a promise ends: leases must hold without help from patience."""
HISTORIES = ("swarm",) * 6 + ("rejoin", "mesh", "amnesia", "late answers")


class ElectionScenario(Scenario):
    name = "election"
    summary = "three or five voters elect a leader; its lease, its term and its fences hold"
    planted_bugs = PLANTED_BUGS
    nodes_default = 0  # the seed draws three or five
    safety_s = 60.0
    liveness_s = 45.0  # reluctance of the worst eligibility, an election delay, and to settle
    steady_s = 12.0
    limits = Limits(drift_max=0.01)  # all that ElectionSettings.clock_drift_max allows
    core = "majority"

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self._shells: dict[str, tuple[int, ElectionShell]] = {}
        self._eligibilities: dict[str, Eligibility] = {}
        self._healed_at: float | None = None
        self._settled: tuple[tuple[str, int], float] | None = None
        self.history = ""
        guard = BlindGuard if planted_bug == "blind-guard" else FenceGuard[None]
        self._resource: FenceGuard[None] = guard()

    # -- the cluster -------------------------------------------------------------------------

    async def setup(self, world: World) -> None:
        self.nodes = self.nodes or world.random.choice((3, 5))
        self.history = world.random.choice(HISTORIES) if self.nodes >= 3 else "swarm"
        if self.history != "swarm":
            self.faults: Sequence[str] = ("clock-drift",) if world.random.random() < 0.7 else ()
        for name in self.node_names():
            world.add(name, partial(self._node, world))

    async def _node(self, world: World, host: SimHost) -> None:
        plan = ElectionPlan(
            group="managers",
            node_id=host.name,
            bind=Address("0.0.0.0", PORT),
            settings=HASTY if self.history == "late answers" else ElectionSettings(),
            voters={name: Address(name, PORT) for name in self.node_names()},
        )
        file = FILES.get(self.planted_bug, TermFile)(host.disk, plan.directory)
        shell = ElectionShell(
            host, plan, make_election=partial(self._make, world, host), term_file=file
        )
        observe = partial(world.observe, node=host.name)
        shell.on_become_leader.append(lambda term: self._became_leader(world, host, shell, term))
        shell.on_lose_leadership.append(
            lambda term, reason: observe("lost_leadership", term=term, reason=reason)
        )
        shell.on_leader_change.append(
            lambda term, leader: observe("follows", term=term, leader=leader)
        )
        self._shells[host.name] = (host.generation, shell)
        await shell.start()
        observe("remembers", term=shell.term)
        try:
            await shell.failed()
        finally:
            await shell.stop()

    def _make(self, world: World, host: SimHost, *arguments: object) -> WatchedElection:
        core = CORES.get(self.planted_bug, WatchedElection)(*arguments)  # type: ignore[arg-type]
        core.observe = world.observe
        core.true_time = host.process.true_time
        return core

    # -- what leaders do ---------------------------------------------------------------------

    def _became_leader(self, world: World, host: SimHost, shell: ElectionShell, term: int) -> None:
        world.observe("became_leader", node=host.name, term=term)
        host.tasks.spawn(f"lead term {term}", self._lead(world, host, shell, term))

    async def _lead(self, world: World, host: SimHost, shell: ElectionShell, term: int) -> None:
        """Check the lease, then act: a pause or a slow network may come in between."""
        dice = world.random_stream(f"acts of {term}")
        attempt = 0
        while shell.state is ElectionState.LEADER and shell.term == term:
            if shell.may_lead():
                attempt += 1
                fence = shell.fence(attempt=attempt)
                world.observe("acted", node=host.name, fence=fence)
                late = dice.expovariate(1.0) * dice.choice((0.01, 0.01, 5.0))
                world.loop.at(world.now + late, self._obey, world, fence)
            await host.clock.sleep(dice.uniform(0.1, 1.0))

    def _obey(self, world: World, fence: object) -> None:
        verdict = self._resource.admit(world.now, "resource", fence)  # type: ignore[arg-type]
        if verdict.ruling is Ruling.FRESH:
            world.observe("applied", fence=fence)

    # -- stories -----------------------------------------------------------------------------

    async def during(self, world: World) -> None:
        dice = world.random_stream("adversary")
        if self.history == "rejoin":
            await self._rejoin(world, dice)
        elif self.history == "mesh":
            await self._mesh(world, dice)
        elif self.history == "amnesia":
            await self._amnesia(world, dice)
        elif self.history == "late answers":
            await self._late_answers(world, dice)
        elif dice.random() < 0.7:
            await self._hunt_leaders(world, dice)

    async def _first_leader(self, world: World) -> str:
        leader = None
        while leader is None:
            await asyncio.sleep(2.0)
            leader = self.leader(world)
        return leader

    async def _rejoin(self, world: World, dice: Random) -> None:
        """Followers, one at a time, are cut off in either or both directions and return."""
        leader = await self._first_leader(world)
        world.observe("calm_begins", term=self.shells(world)[leader].term)
        try:
            while True:
                victim = dice.choice([name for name in world.machines if name != leader])
                cut = dice.choice(
                    (partition([victim]), one_way([victim], None), one_way(None, [victim]))
                )
                await self._cut_for(world, dice.uniform(1.0, 25.0), cut)
                await asyncio.sleep(dice.uniform(0.0, 8.0))
        finally:
            world.observe("calm_ends")

    async def _mesh(self, world: World, dice: Random) -> None:
        """Links fail so that somebody still hears a majority, but not the leader of before."""
        leader = await self._first_leader(world)
        others = [name for name in world.machines if name != leader]
        hub = dice.choice(others)
        shape = dice.choice(("star", "deaf leader", "leader off one"))
        leaves = [name for name in world.machines if name != hub]
        cuts = {
            "star": [partition([a], [b]) for a in leaves for b in leaves if a < b],
            "deaf leader": [one_way(others, [leader])],
            "leader off one": [partition([leader], [hub])],
        }[shape]
        world.observe("mesh_begins", shape=shape)
        try:
            await self._cut_for(world, dice.uniform(40.0, 50.0), *cuts)
        finally:
            world.observe("mesh_ends")

    async def _amnesia(self, world: World, dice: Random) -> None:
        """The leader lives on few followers; those lose their memory the moment it is cut off,
        while the others have been asking for votes for long."""
        while True:
            leader = await self._first_leader(world)
            others = dice.sample(sorted(set(world.machines) - {leader}), self.nodes - 1)
            loyal, estranged = others[: self.nodes // 2], others[self.nodes // 2 :]
            cut = world.network.cut(partition([leader], estranged))
            await asyncio.sleep(dice.uniform(7.0, 10.0))
            for name in loyal:
                world.crash(name, "lost-unsynced")
            isolated = world.network.cut(partition([leader]))
            await asyncio.sleep(dice.uniform(0.0, 0.3))
            for name in loyal:
                world.restart(name)
            await asyncio.sleep(dice.uniform(4.0, 8.0))
            world.network.heal(cut)
            world.network.heal(isolated)

    async def _late_answers(self, world: World, dice: Random) -> None:
        """Answers reach the leader late and all at once, and then nothing does."""
        while True:
            leader = await self._first_leader(world)
            others = frozenset(world.machines) - {leader}
            held = Cut("held answers", others, frozenset([leader]), both=False, holds=True)
            if dice.random() < 0.5:
                await self._cut_for(world, dice.uniform(1.0, 2.5), held)
                await asyncio.sleep(dice.uniform(0.001, 0.02))
            await self._cut_for(world, dice.uniform(4.0, 8.0), partition([leader]))

    async def _cut_for(self, world: World, seconds: float, *cuts: Cut) -> None:
        for cut in cuts:
            world.network.cut(cut)
        await asyncio.sleep(seconds)
        for cut in cuts:
            world.network.heal(cut)

    async def _hunt_leaders(self, world: World, dice: Random) -> None:
        """On top of the swarm: hit whoever leads, at moments that matter."""
        while True:
            await asyncio.sleep(dice.uniform(0.5, 12.0))
            leader = self.leader(world)
            if leader is not None:
                await self._hit(world, dice, leader)

    async def _hit(self, world: World, dice: Random, leader: str) -> None:
        other = dice.choice([name for name in world.machines if name != leader] or [leader])
        shell = self.shells(world)[leader]
        kind = dice.randrange(7)
        if kind == 0:
            world.pause(leader, dice.uniform(1.0, 8.0))
        elif kind == 1:
            disk: CrashDisk = dice.choice(("kept", "lost-unsynced", "torn"))
            victim = dice.choice((leader, other))
            world.crash(victim, disk)
            await asyncio.sleep(dice.uniform(0.0, 2.0))
            world.restart(victim)
        elif kind == 2:
            await self._cut_for(world, dice.uniform(1.0, 10.0), partition([leader], [other]))
        elif kind == 3:
            cut = one_way(None, [leader]) if dice.random() < 0.5 else one_way([leader], None)
            await self._cut_for(world, dice.uniform(1.0, 10.0), cut)
        elif kind == 4:
            world.loop.post(world.host(leader).process, shell.hand_over, None, True)
        elif kind == 5:
            eligibility = Eligibility(dice.uniform(0, 8), dice.random() < 0.2, dice.random() < 0.2)
            self._eligibilities[leader] = eligibility
            world.loop.post(world.host(leader).process, shell.set_eligibility, eligibility)
        elif world.host(leader).process.running:
            # A stop once begun is finished, also when the safety phase ends meanwhile.
            await asyncio.shield(self._leave_for(world, dice.uniform(0.0, 5.0), leader))

    async def _leave_for(self, world: World, seconds: float, name: str) -> None:
        await world.stop(name)
        world.loop.at(world.now + seconds, world.restart, name)

    def _lift_bars(self, world: World) -> None:
        """A cluster whose voters have all been told to stay out has no leader, rightly."""
        for name, shell in self.shells(world).items():
            eligibility = self._eligibilities.get(name)
            if eligibility is not None and eligibility.barred:
                back = replace(eligibility, barred=False)
                world.loop.post(world.host(name).process, shell.set_eligibility, back)

    # -- judging -----------------------------------------------------------------------------

    def shells(self, world: World) -> dict[str, ElectionShell]:
        """Those of running nodes; a shell of a node that crashed believes what it believed."""
        found = {}
        for name in world.up():
            generation, shell = self._shells.get(name, (0, None))
            if shell is not None and generation == world.machines[name].generation:
                found[name] = shell
        return found

    def leader(self, world: World) -> str | None:
        """Who runs and believes that it may lead."""
        leading = (name for name, shell in self.shells(world).items() if shell.may_lead())
        return next(leading, None)

    def checkers(self) -> list[Checker]:
        return all_checkers()

    def goal(self, world: World) -> str:
        """One leader whom all follow, the same for two leases: late messages have no more say."""
        if self._healed_at is None:
            self._healed_at = world.now
            self._lift_bars(world)
        shells = {name: s for name, s in self.shells(world).items() if name in world.core}
        leading = [name for name, shell in shells.items() if shell.may_lead()]
        states = ", ".join(f"{name} {shell.state.value}" for name, shell in shells.items())
        if len(shells) < len(world.core) or len(leading) != 1:
            return f"{len(leading)} leaders ({states})"
        lost = [name for name, shell in shells.items() if shell.leader != leading[0]]
        if lost:
            return f"{', '.join(lost)} do not follow {leading[0]} ({states})"
        leadership = (leading[0], shells[leading[0]].term)
        if self._settled is None or self._settled[0] != leadership:
            self._settled = (leadership, world.now)
        return "" if world.now - self._settled[1] >= SETTLED_S else f"{leading[0]} is new"

    def figures(self, world: World) -> dict[str, float]:
        if self._settled is None or self._healed_at is None:
            return {}
        return {"seconds to a stable leader": self._settled[1] - self._healed_at}

    def describe(self, data: bytes) -> str:
        envelope = msgspec.msgpack.decode(data, type=Envelope)
        return f"{envelope.message}"

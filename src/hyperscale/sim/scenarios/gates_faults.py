"""What is done to gates and datacenters beside the swarm's faults: lines between them.

A datacenter is cut off from the gates, a gate from all datacenters or from everybody; in both
directions or one, all traffic or TCP alone or UDP alone, for longer than it takes to be given up.
And distances: round trips between places differ, and may be longer in one direction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from hyperscale.sim.links import Cut, Latency, Link, Traffic, one_way, only, partition
from hyperscale.sim.world import World

TRAFFIC: Final[tuple[Traffic, ...]] = ("all", "all", "all", "streams", "datagrams", "calls")
LOOK_S: Final = 0.25
CUT_S: Final = (10.0, 25.0)
FAR_S_MAX: Final = 0.12  # one way


class GatesFaults:
    def __init__(
        self,
        world: World,
        gates: Sequence[str],
        datacenters: dict[str, list[str]],
        owners: Callable[[], list[str]],
    ) -> None:
        """`owners`: gates that follow jobs now. Those lose most."""
        self._world = world
        self._gates = list(gates)
        self._datacenters = datacenters
        self._owners = owners
        self.always = False

    def place_apart(self) -> None:
        """In some worlds. A gate stands in the datacenter of its number."""
        dice = self._world.random_stream("distances")
        if dice.random() < 0.5:
            return
        places = list(self._datacenters)
        place_of = {one: dc for dc, hosts in self._datacenters.items() for one in hosts}
        place_of |= {gate: places[n % len(places)] for n, gate in enumerate(self._gates)}
        delays = {
            (one, other): dice.uniform(0.005, FAR_S_MAX)
            for one in places
            for other in places
            if one != other
        }
        self._world.coverage["places apart"] += 1
        network = self._world.network

        def route(source: str, target: str) -> Link:
            there = place_of.get(source), place_of.get(target)
            if None in there or there[0] == there[1]:
                return network.default
            delay_s = delays[there]  # type: ignore[index]  # neither is None
            jitter_s = network.default.latency.jitter_s + delay_s * 0.05
            known: Latency = replace(
                network.default.latency,
                base_s=network.default.latency.base_s + delay_s,
                jitter_s=jitter_s,
            )
            return replace(network.default, latency=known)

        network.route = route

    async def inject(self) -> None:
        dice = self._world.random_stream("lines")
        if dice.random() < 0.3 and not self.always:
            return
        while True:
            await self._world.sleep(dice.uniform(2.0, 7.0))
            while not self._owners():
                await self._world.sleep(LOOK_S)
            await self._world.sleep(dice.uniform(0.0, 2.0))
            await self._cut(dice)

    async def _cut(self, dice: Random) -> None:
        kind = dice.choice(("datacenter", "uplink", "uplink", "alone", "pair"))
        cut = getattr(self, f"_{kind}")(dice)
        world = self._world
        world.coverage[f"cut: {kind}"] += 1
        world.coverage[f"cut: {cut.traffic}"] += 1
        world.network.cut(cut)
        world.observe("line_cut", what=kind, traffic=cut.traffic, both=cut.both)
        try:
            await asyncio.sleep(dice.uniform(*CUT_S))
        finally:
            world.network.heal(cut)
        world.observe("line_healed", what=kind)

    def _datacenter(self, dice: Random) -> Cut:
        """From all gates."""
        hosts = dice.choice(list(self._datacenters.values()))
        return self._made(dice, hosts, self._gates)

    def _uplink(self, dice: Random) -> Cut:
        """Of one gate: to all datacenters, not to the other gates."""
        hosts = [one for those in self._datacenters.values() for one in those]
        return self._made(dice, [self._somebody(dice)], hosts)

    def _alone(self, dice: Random) -> Cut:
        return self._made(dice, [self._somebody(dice)], None)

    def _pair(self, dice: Random) -> Cut:
        hosts = dice.choice(list(self._datacenters.values()))
        return self._made(dice, [self._somebody(dice)], hosts)

    def _somebody(self, dice: Random) -> str:
        return dice.choice(self._owners() or self._gates)

    @staticmethod
    def _made(dice: Random, one: Sequence[str], other: Sequence[str] | None) -> Cut:
        ways = dice.choice(("both", "both", "there", "back"))
        traffic = dice.choice(TRAFFIC)
        if ways == "both" or traffic == "calls":
            return only(traffic, partition(one, other), "line")
        made = one_way(one, other) if ways == "there" else one_way(other, one)
        return only(traffic, made, "line")

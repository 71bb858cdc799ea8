"""A worker through random trouble: parts of all kinds, cuts, freezes, leaders that change.

Afterwards every part it accepted has told one end with exactly the load it made, all cores are
free, and no load ran while it was cut off.
"""

from __future__ import annotations

from random import Random

import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd, PartEvent, PartPrepared
from hyperscale.sim.links import partition
from hyperscale.wire.errors import WireError
from hyperscale.workload.load import ClosedVUs, SharedIterations
from tests.fixtures.scripted_manager import ScriptedManager, facts
from tests.unit.nodes.worker.sim_cluster import CORES, SimCluster

MISHAPS = ("", "", "", "raises in prepare", "raises in run", "never ends", "dies")
TROUBLE_S = 90.0
FENCE_S = 6.0


class Chaos:
    def __init__(self, seed: int) -> None:
        self.cluster = SimCluster(managers=2, seed=seed)
        self.dice = Random(f"chaos {seed}")
        self.accepted: list[DispatchPart] = []
        self.cuts: list[tuple[float, float]] = []
        self.settled: list[PartEvent] = []
        self.leader = "m1"
        self.term = 1

    @property
    def manager(self) -> ScriptedManager:
        return self.cluster.managers[self.leader]

    async def story(self) -> None:
        world = self.cluster.world
        await world.sleep(0.1)
        await self.manager.worker("w1")
        for each in self.cluster.managers.values():
            each.settles = self.settle_some
        number = 0
        while world.now < TROUBLE_S:
            await world.sleep(self.dice.uniform(0.2, 2.5))
            number += 1
            deed = self.dice.choice(["work"] * 4 + ["steer"] * 4 + ["cut", "freeze"])
            try:
                await (self.work(number) if deed == "work" else getattr(self, deed)())
            except (WireError, AssertionError):
                continue  # it could not be reached just now
            if self.dice.random() < 0.05:
                self.change_leader()
        await self.settle()

    def settle_some(self, event: PartEvent) -> bool:
        """A leader without a quorum hears and cannot promise anything."""
        if self.dice.random() < 0.4:
            return False
        self.settled.append(event)
        return True

    async def work(self, number: int) -> None:
        load = self.dice.choice(
            [ClosedVUs(vus=4, duration_s=self.dice.uniform(0.5, 15.0)), SharedIterations(2, 50)]
        )
        order = self.manager.order(
            facts(load=load, tags={"mishap": self.dice.choice(MISHAPS)}),
            job=f"job{number}",
            cores=self.dice.randint(1, CORES),
            limit_s=20.0,
        )
        if (await self.manager.dispatch("w1", order)).accepted:
            self.accepted.append(order)

    async def steer(self) -> None:
        for order in self.accepted[-4:]:
            if self.manager.told(PartPrepared, order):
                await self.manager.start("w1", order)
        if self.accepted and self.dice.random() < 0.3:
            action = self.dice.choice(["cancel", "stop", "pause", "resume"])
            await self.manager.steer("w1", self.accepted[-1], action)

    async def cut(self) -> None:
        world = self.cluster.world
        made = world.network.cut(partition({"w1"}, {"m1", "m2"}))
        since = world.now
        await world.sleep(self.dice.uniform(0.5, 12.0))
        world.network.heal(made)
        self.cuts.append((since, world.now))

    async def freeze(self) -> None:
        seconds = self.dice.uniform(0.5, 10.0)
        self.cluster.world.pause("w1", seconds)
        await self.cluster.world.sleep(seconds)

    def change_leader(self) -> None:
        self.term += 1
        self.leader = "m2" if self.leader == "m1" else "m1"
        for manager in self.cluster.managers.values():
            manager.leads, manager.term = False, self.term
            manager.other_leader = self.manager.place
        self.manager.leads = True

    async def settle(self) -> None:
        """No more trouble: all must come to its end."""
        world, worker = self.cluster.world, self.cluster.worker
        until = world.now + 120.0
        while not (worker.parts.empty and not len(worker.outbox)):
            assert world.now < until, worker.parts.statuses()
            await world.sleep(1.0)
            for status in worker.parts.statuses():
                order = next(o for o in self.accepted if o.part == status.part)
                if status.state == "prepared":
                    await self.manager.start("w1", order)
                elif status.state == "paused":
                    await self.manager.steer("w1", order, "resume")

    def ends(self, order: DispatchPart) -> list[PartEnd]:
        token = (order.part, order.fence)
        return [
            event
            for event in self.settled
            if isinstance(event, PartEnd) and (event.part, event.fence) == token
        ]


@pytest.mark.parametrize("seed", range(6))
def test_every_part_ends_once_with_the_load_it_made(seed: int) -> None:
    chaos = Chaos(seed)
    cluster = chaos.cluster
    loaded: dict[str, int] = {}
    moments: list[float] = []

    def observer(order: DispatchPart, amount: int) -> None:
        loaded[str(order.part)] = loaded.get(str(order.part), 0) + amount
        moments.append(cluster.world.now)

    cluster.on_load.append(observer)
    cluster.play(chaos.story())

    assert len(chaos.accepted) > 3
    assert cluster.worker.parts.cores.free == CORES
    assert cluster.runner.busy == 0
    for order in chaos.accepted:
        ends = chaos.ends(order)
        assert ends, order.part
        assert len({(end.outcome, end.state, end.error) for end in ends}) == 1
        total = aggregate_of(order.facts)
        if ends[0].state:
            total.absorb(ends[0].state)
        assert total.requests == loaded.get(str(order.part), 0), (order.part, ends[0])
    for since, until in chaos.cuts:
        late = [at for at in moments if since + FENCE_S + 0.3 < at < until]
        assert not late, (since, until, late[:3])

"""What is done to a simulated cluster beside the swarm's faults: blows where they hurt most, and
nodes that are told to leave.

A node that leaves does so in its own time, also when the faults are over; its supervisor starts it
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Final

from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.worker.worker import Worker
from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.host import SimHost
from hyperscale.sim.links import Cut, Traffic, one_way, only, partition
from hyperscale.sim.scenarios.cluster_shapes import FULL_S, TIGHT
from hyperscale.sim.scenarios.cluster_truth import ObservedPart, ObservedRunner, Truth
from hyperscale.sim.world import World

# Until a death is noticed (some 5 s), believed (8 s) and made up for.
STRIKE_S: Final = 25.0
# What a worker may lose, and whom it loses then: everybody, the managers, or the one that leads.
CUTS: Final[tuple[tuple[Traffic, str], ...]] = (
    ("all", "everybody"),
    ("all", "managers"),
    ("streams", "managers"),
    ("streams", "leader"),
    ("datagrams", "everybody"),
    ("calls", "managers"),
)
MISSED_S: Final = 10.0
LOOK_EVERY_S: Final = 0.5
ENDS_S: Final = 4.0  # a worker without managers ends its load after 6 s
LEAVE: Final = "leave"


class Blows:
    def __init__(
        self,
        world: World,
        truth: Truth,
        managers: Mapping[str, Manager],
        workers: Mapping[str, tuple[Worker, ObservedRunner]],
    ) -> None:
        self._world = world
        self._truth = truth
        self._managers = managers
        self._workers = workers
        self._leaving: list[asyncio.Task[None]] = []

    async def cut(self) -> None:
        """One worker after the other loses something, and nothing else is wrong."""
        dice = self._world.random_stream("cuts")
        while True:
            await self._world.sleep(dice.uniform(1.0, 5.0))
            name = await self._somebody(lambda: self._at_work(MISSED_S))
            await self._cut_off(name, dice)

    async def fall(self, until_s: float, *, is_full: bool = False) -> None:
        """Those that the seed draws; where a job has all cores, it loses some."""
        dice = self._world.random_stream("blows")
        late_s = until_s * 0.9
        blows: list[Awaitable[None]] = []
        if dice.random() < 0.4:
            blows.append(self._kill_leader(dice.uniform(5.0, late_s), dice.uniform(0.1, 20.0)))
        if dice.random() < 0.2:
            disk: CrashDisk = dice.choice(("kept", "lost-unsynced", "torn"))
            blows.append(self._kill_managers(dice.uniform(5.0, late_s), disk))
        if dice.random() < 0.25:
            worker = dice.choice([name for name in self._world.machines if name[0] == "w"])
            blows.append(self._kill_for_good(dice.uniform(5.0, late_s), worker))
        if dice.random() < 0.5:
            at_s, cut_off = dice.uniform(3.0, until_s / 2), dice.random() < 0.5
            blows.append(self._strike_at_work(at_s, dice if cut_off else None))
        if dice.random() < 0.3:
            blows.append(self._leave_work(dice.uniform(3.0, late_s), dice.uniform(0.1, 10.0)))
        if dice.random() < 0.2:
            blows.append(self._leave_lead(dice.uniform(5.0, late_s), dice.uniform(0.1, 10.0)))
        if dice.random() < 0.25:
            at_s, between_s = dice.uniform(5.0, until_s / 2), dice.uniform(0.0, 3.0)
            blows.append(self._kill_both(at_s, between_s, dice.uniform(1.0, 20.0)))
        if dice.random() < 0.7:
            blows.append(self._stop_quorum(dice.uniform(18.0, 25.0)))
        if is_full:
            at_s = self._world.random_stream("full blow").uniform(8.0, until_s * 0.6)
            blows.append(self._kill_at_full_work(at_s))
        await asyncio.gather(*blows)

    # -- without warning ---------------------------------------------------------------------

    async def _strike_at_work(self, at_s: float, dice: Random | None) -> None:
        """A worker is cut off, or stands still, until its parts are elsewhere: those that have
        enough to do to be missed."""
        world = self._world
        await world.sleep(at_s)
        name = await self._somebody(lambda: self._at_work(MISSED_S))
        if dice is None:
            world.coverage["paused at work"] += 1
            world.pause(name, STRIKE_S)
            return
        await self._cut_off(name, dice)

    async def _cut_off(self, worker: str, dice: Random) -> None:
        traffic, from_whom = dice.choice(CUTS)
        ways = dice.choice(("both", "there", "back"))
        whom = {"everybody": None, "managers": list(self._managers), "leader": self._leaders()}
        made = _cut(worker, whom[from_whom], ways)
        world = self._world
        world.coverage["cut off at work"] += 1
        world.coverage[f"cut of {traffic} from {from_whom}"] += 1
        cut = world.network.cut(only(traffic, made, "isolate"))
        world.observe("cut_off", node=worker, traffic=traffic, whom=from_whom, ways=ways)
        await world.sleep(STRIKE_S)
        world.network.heal(cut)
        world.observe("cut_healed", what=worker)

    async def _kill_leader(self, at_s: float, down_s: float) -> None:
        await self._world.sleep(at_s)
        for name in self._leaders():
            self._world.coverage["leader killed"] += 1
            self._world.crash(name)
            self._world.restart_after(name, down_s)

    async def _kill_both(self, at_s: float, between_s: float, down_s: float) -> None:
        """The leader, and a worker before anybody else has asked it for its numbers."""
        await self._world.sleep(at_s)
        name = await self._somebody(lambda: self._at_work(MISSED_S))
        await self._kill_leader(0.0, down_s)
        await self._world.sleep(between_s)
        self._world.coverage["leader and worker killed"] += 1
        self._world.crash(name)
        self._world.restart_after(name, down_s)

    async def _kill_managers(self, at_s: float, disk: CrashDisk) -> None:
        await self._world.sleep(at_s)
        self._world.coverage["all managers killed"] += 1
        for number, name in enumerate(self._managers):
            self._world.crash(name, disk)
            self._world.restart_after(name, 1.0 + number)

    async def _stop_quorum(self, seconds: float) -> None:
        """Most managers stand still while a load with little time comes to its end: nobody can
        lead, and no worker has missed them for long enough to end its load."""
        world = self._world
        while not any(one.loading and one.running.left_s < ENDS_S for one in self._tight()):
            await world.sleep(LOOK_EVERY_S / 2)
        world.coverage["without a quorum"] += 1
        stopped = sorted(self._managers)[: len(self._managers) // 2 + 1]
        world.observe("without_quorum", seconds=seconds)
        for name in stopped:
            world.pause(name, seconds)

    def _tight(self) -> list[ObservedPart]:
        every = [one for many in self._truth.observed.values() for one in many]
        return [one for one in every if one.order.facts.name == TIGHT]

    async def _kill_for_good(self, at_s: float, worker: str) -> None:
        await self._world.sleep(at_s)
        self._world.coverage["worker gone for good"] += 1
        self._world.crash(worker, for_good=True)

    async def _kill_at_full_work(self, at_s: float) -> None:
        await self._world.sleep(at_s)
        name = await self._somebody(lambda: self._at_work(FULL_S / 2))
        self._world.coverage["worker killed, no core free"] += 1
        self._world.crash(name, for_good=True)

    # -- with a word (SIGTERM) ---------------------------------------------------------------

    async def _leave_work(self, at_s: float, down_s: float) -> None:
        await self._world.sleep(at_s)
        name = await self._somebody(self._at_work)
        self._world.coverage["worker left at work"] += 1
        worker, runner = self._workers[name]
        self._tell(runner.host, down_s, lambda: self._drained(worker, runner))

    async def _leave_lead(self, at_s: float, down_s: float) -> None:
        await self._world.sleep(at_s)
        name = await self._somebody(self._leaders)
        self._world.coverage["leader left"] += 1
        self._tell(self._world.host(name), down_s, self._managers[name].stop)

    async def _drained(self, worker: Worker, runner: ObservedRunner) -> None:
        host, world = runner.host, self._world
        facts = {"node": host.name, "life": host.generation}
        world.observe("leaving", **facts, limit_s=worker.settings.drain_s)
        await worker.drain()
        untold = len(worker.outbox)
        world.observe("drained", **facts, busy=runner.busy, untold=untold)
        await worker.stop()
        world.observe("left", **facts, busy=runner.busy)

    def _tell(self, host: SimHost, down_s: float, leave: Callable[[], Awaitable[None]]) -> None:
        """Not part of the faults: they may end first."""
        leaving = asyncio.get_running_loop().create_task(
            self._leave(host, down_s, leave), name=f"{host.name} leaves"
        )
        self._leaving.append(leaving)

    async def _leave(
        self, host: SimHost, down_s: float, leave: Callable[[], Awaitable[None]]
    ) -> None:
        gone = asyncio.Event()

        async def in_order() -> None:
            try:
                await leave()
            finally:
                gone.set()

        host.tasks.spawn(LEAVE, in_order())
        while not gone.is_set() and not host.process.dead:
            await self._world.sleep(LOOK_EVERY_S)
        if not host.process.dead and await self._world.stop(host.name, for_good=False):
            self._world.restart_after(host.name, down_s)

    # -- whom ---------------------------------------------------------------------------------

    async def _somebody(self, found: Callable[[], list[str]]) -> str:
        while not (names := found()):
            await self._world.sleep(LOOK_EVERY_S)
        return names[0]

    def _at_work(self, left_s: float = 0.0) -> list[str]:
        """Workers under load, with a part that has so much left to do; one that a threshold will
        end has not."""
        everything = [one for many in self._truth.observed.values() for one in many]
        return sorted(
            {
                one.host.name
                for one in everything
                if one.loading
                and one.running.left_s >= left_s
                and not (left_s and one.order.facts.thresholds)
            }
        )

    def _leaders(self) -> list[str]:
        return [
            name
            for name, manager in self._managers.items()
            if self._world.machines[name].up and manager.leadership.leads()
        ]


def _cut(worker: str, others: Sequence[str] | None, ways: str) -> Cut:
    if ways == "both":
        return partition([worker], others)
    return one_way([worker], others) if ways == "there" else one_way(others, [worker])

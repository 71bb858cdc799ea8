"""Faults by the swarm method: each seed draws its own few classes and their strength.

Many mild faults at once hide what a single harsh one shows, so a seed leaves most classes out.
An injector is a coroutine of the world, outside every node; at the end of the safety phase it is
cancelled and everything is healed. A class counts as hit only when it has touched something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.links import Cut, Latency, Traffic, clog, one_way, only, partition
from hyperscale.sim.world import World

DRAW_PROBABILITY = 0.4
AMBUSH_S_MAX = 0.001  # after a write; a sync takes about as long
QUIET_PROBABILITY = 0.05  # some seeds have no faults at all: the plain case must work too


@dataclass(frozen=True, slots=True)
class Limits:
    """How strong faults may get; a seed draws a strength below."""

    loss_max: float = 0.3
    duplicate_max: float = 0.3
    latency_max_s: float = 0.1
    tail_max_s: float = 3.0
    slow_max_s: float = 1.0
    drift_max: float = 0.001  # ten times what a cheap oscillator does
    wall_step_max_s: float = 3600.0
    pause_max_s: float = 15.0
    cut_max_s: float = 20.0
    down_max_s: float = 15.0
    down_max: int | None = None  # hosts that are down at one time; None: any number
    gap_s_min: float = 1.0  # mean time between two events of one class
    gap_s_max: float = 15.0
    error_max: float = 0.1
    disk_slow_max: float = 200.0


class Swarm:
    """The faults of one seed."""

    def __init__(
        self, world: World, allowed: tuple[str, ...], limits: Limits, victims: list[str]
    ) -> None:
        self.world = world
        self.limits = limits
        self.victims = victims
        self.random = world.random_stream("swarm")
        self.drawn = self._draw(allowed)
        self._baseline = world.network.default
        self.healing = False
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self.world.observe("swarm", faults=self.drawn)
        loop = asyncio.get_running_loop()
        for name in self.drawn:
            dice = self.world.random_stream(f"fault {name}")
            injector = INJECTORS[name](self, dice)
            self._running.append(loop.create_task(injector, name=f"fault {name}"))

    async def heal(self, core: list[str]) -> None:
        """No more faults: the hosts of `core` run and hear each other; the rest stays cut off."""
        self.healing = True
        for task in self._running:
            task.cancel()
        ended = await asyncio.gather(*self._running, return_exceptions=True)
        broken = [error for error in ended if isinstance(error, Exception)]
        if broken:
            raise broken[0]
        world = self.world
        world.network.heal_all()
        world.network.default = self._baseline
        for machine in world.machines.values():
            machine.slow = None
            machine.disk.heal()
            world.resume(machine.name)
            if machine.name in core:
                world.restart(machine.name)
        if len(core) < len(world.machines):
            world.network.cut(partition(core))
        world.core, world.healed_at = core, world.now
        world.observe("healed", core=core)

    def victim(self, dice: Random) -> str:
        return dice.choice(self.victims)

    def victims_up(self) -> list[str]:
        machines = self.world.machines
        return [name for name in self.victims if machines[name].up]

    def may_crash(self) -> bool:
        down = len(self.victims) - len(self.victims_up())
        return self.limits.down_max is None or down < self.limits.down_max

    def some(self, dice: Random) -> list[str]:
        """A real, random part of the victims."""
        size = dice.randint(1, max(1, len(self.victims) - 1))
        return dice.sample(self.victims, size)

    async def gaps(self, dice: Random, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Act again and again, at random moments."""
        mean = dice.uniform(self.limits.gap_s_min, self.limits.gap_s_max)
        while True:
            await asyncio.sleep(dice.expovariate(1.0) * mean)
            await act()

    async def cut_for_a_while(self, cut: Cut, dice: Random) -> None:
        self.world.observe("cut", what=_words(cut))
        self.world.network.cut(cut)
        await asyncio.sleep(dice.uniform(0.1, self.limits.cut_max_s))
        self.world.network.heal(cut)
        self.world.observe("cut_healed", what=_words(cut))

    def _draw(self, allowed: tuple[str, ...]) -> tuple[str, ...]:
        if self.random.random() < QUIET_PROBABILITY:
            return ()
        return tuple(name for name in allowed if self.random.random() < DRAW_PROBABILITY)


Injector = Callable[[Swarm, Random], Coroutine[Any, Any, None]]


# -- conditions that hold through the whole phase ----------------------------------------------


async def _loss(swarm: Swarm, dice: Random) -> None:
    network = swarm.world.network
    network.default = replace(network.default, loss=dice.uniform(0.01, swarm.limits.loss_max))


async def _duplicate(swarm: Swarm, dice: Random) -> None:
    network = swarm.world.network
    rate = dice.uniform(0.01, swarm.limits.duplicate_max)
    network.default = replace(network.default, duplicate=rate)


async def _latency_tail(swarm: Swarm, dice: Random) -> None:
    limits, network = swarm.limits, swarm.world.network
    latency = Latency(
        base_s=dice.uniform(0, limits.latency_max_s / 2),
        jitter_s=dice.uniform(0, limits.latency_max_s / 2),
        tail_probability=dice.uniform(0.001, 0.05),
        tail_mean_s=dice.uniform(0, limits.tail_max_s),
    )
    network.default = replace(network.default, latency=latency)


async def _clock_drift(swarm: Swarm, dice: Random) -> None:
    for name in swarm.victims:
        drift = dice.uniform(-swarm.limits.drift_max, swarm.limits.drift_max)
        swarm.world.set_clock_rate(name, 1.0 + drift)


async def _append_error(swarm: Swarm, dice: Random) -> None:
    for name in swarm.some(dice):
        swarm.world.machines[name].disk.append_errors = dice.uniform(0, swarm.limits.error_max)


async def _sync_error(swarm: Swarm, dice: Random) -> None:
    for name in swarm.some(dice):
        swarm.world.machines[name].disk.sync_errors = dice.uniform(0, swarm.limits.error_max)


# -- events that come and go -------------------------------------------------------------------


async def _slow_node(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        machine = swarm.world.machines[swarm.victim(dice)]
        extra = dice.uniform(0.01, swarm.limits.slow_max_s)
        swarm.world.observe("slowed", node=machine.name, seconds=extra)
        machine.slow = Latency(base_s=extra / 2, jitter_s=extra / 2)
        await asyncio.sleep(dice.uniform(1.0, swarm.limits.cut_max_s))
        machine.slow = None
        swarm.world.observe("fast_again", node=machine.name)

    await swarm.gaps(dice, act)


async def _partition(swarm: Swarm, dice: Random) -> None:
    await swarm.gaps(dice, lambda: swarm.cut_for_a_while(partition(swarm.some(dice)), dice))


async def _isolate(swarm: Swarm, dice: Random) -> None:
    await swarm.gaps(
        dice,
        lambda: swarm.cut_for_a_while(partition([swarm.victim(dice)], kind="isolate"), dice),
    )


async def _one_way(swarm: Swarm, dice: Random) -> None:
    def cut() -> Cut:
        side = swarm.some(dice)
        return one_way(side, None) if dice.random() < 0.5 else one_way(None, side)

    await swarm.gaps(dice, lambda: swarm.cut_for_a_while(cut(), dice))


def _one_traffic(name: str, traffic: Traffic) -> Injector:
    """Some hosts and the others lose one transport and keep the other."""

    async def inject(swarm: Swarm, dice: Random) -> None:
        def cut() -> Cut:
            side = swarm.some(dice)
            both = traffic != "calls" and dice.random() < 0.5
            return only(traffic, partition(side) if both else one_way(side), name)

        await swarm.gaps(dice, lambda: swarm.cut_for_a_while(cut(), dice))

    return inject


async def _cut_pair(swarm: Swarm, dice: Random) -> None:
    """Two hosts lose each other, wholly or in part, and nobody else."""

    def cut() -> Cut:
        one, other = dice.sample(swarm.victims, 2)
        sort: Traffic = dice.choice(("all", "datagrams", "streams", "calls"))
        made = partition([one], [other]) if dice.random() < 0.5 else one_way([one], [other])
        return only(sort, made, "cut-pair")

    await swarm.gaps(dice, lambda: swarm.cut_for_a_while(cut(), dice))


async def _clog(swarm: Swarm, dice: Random) -> None:
    """Swizzle: clog a random subset one by one, free them in another order."""

    async def act() -> None:
        network, clogs = swarm.world.network, []
        for name in swarm.some(dice):
            swarm.world.observe("clogged", node=name)
            clogs.append(network.cut(clog(name)))
            await asyncio.sleep(dice.uniform(0, 2.0))
        dice.shuffle(clogs)
        for cut in clogs:
            await asyncio.sleep(dice.uniform(0, 2.0))
            network.heal(cut)
            swarm.world.observe("unclogged", node=_words(cut))

    await swarm.gaps(dice, act)


def _crashes(disk: CrashDisk) -> Injector:
    """Half of the power cuts wait for a write and strike before it can be durable."""

    async def inject(swarm: Swarm, dice: Random) -> None:
        world = swarm.world

        def strike(name: str, down_s: float) -> None:
            if swarm.healing or not world.machines[name].up:
                return
            world.crash(name, disk)
            world.restart_after(name, down_s)

        async def act() -> None:
            up = swarm.victims_up()
            if not up or not swarm.may_crash():
                return
            name, down_s = dice.choice(up), dice.uniform(0, swarm.limits.down_max_s)
            if disk == "kept" or dice.random() < 0.5:
                strike(name, down_s)
                return
            delay = dice.uniform(0, AMBUSH_S_MAX)
            world.machines[name].disk.ambush = partial(
                world.loop.after, delay, strike, name, down_s
            )

        await swarm.gaps(dice, act)

    return inject


async def _pause(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        swarm.world.pause(swarm.victim(dice), dice.uniform(0.05, swarm.limits.pause_max_s))

    await swarm.gaps(dice, act)


async def _wall_step(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        most = swarm.limits.wall_step_max_s
        swarm.world.step_wall_clock(swarm.victim(dice), dice.uniform(-most, most))

    await swarm.gaps(dice, act)


async def _disk_full(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        name = swarm.victim(dice)
        disk = swarm.world.machines[name].disk
        disk.capacity = disk.used_bytes
        swarm.world.observe("disk_full", node=name)
        await asyncio.sleep(dice.uniform(1.0, swarm.limits.cut_max_s))
        disk.capacity = None
        swarm.world.observe("disk_free", node=name)

    await swarm.gaps(dice, act)


async def _disk_slow(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        name = swarm.victim(dice)
        disk = swarm.world.machines[name].disk
        disk.slow_factor = dice.uniform(2.0, swarm.limits.disk_slow_max)
        swarm.world.observe("disk_slow", node=name, factor=disk.slow_factor)
        await asyncio.sleep(dice.uniform(1.0, swarm.limits.cut_max_s))
        disk.slow_factor = 1.0

    await swarm.gaps(dice, act)


async def _bit_rot(swarm: Swarm, dice: Random) -> None:
    async def act() -> None:
        swarm.world.rot(swarm.victim(dice))

    await swarm.gaps(dice, act)


INJECTORS: dict[str, Injector] = {
    "loss": _loss,
    "duplicate": _duplicate,
    "latency-tail": _latency_tail,
    "slow-node": _slow_node,
    "partition": _partition,
    "isolate": _isolate,
    "one-way": _one_way,
    "clog": _clog,
    "pause": _pause,
    "clock-drift": _clock_drift,
    "wall-step": _wall_step,
    "crash-kept": _crashes("kept"),
    "crash-lost-unsynced": _crashes("lost-unsynced"),
    "crash-torn": _crashes("torn"),
    "append-error": _append_error,
    "sync-error": _sync_error,
    "disk-full": _disk_full,
    "disk-slow": _disk_slow,
    "bit-rot": _bit_rot,
    "cut-streams": _one_traffic("cut-streams", "streams"),
    "cut-datagrams": _one_traffic("cut-datagrams", "datagrams"),
    "cut-calls": _one_traffic("cut-calls", "calls"),
    "cut-pair": _cut_pair,
}

ALL_FAULTS = tuple(INJECTORS)
TRANSPORT_FAULTS = ("cut-streams", "cut-datagrams", "cut-calls", "cut-pair")
"""For scenarios with nodes that speak over both transports."""
ORDINARY_FAULTS = tuple(
    name for name in ALL_FAULTS if name != "bit-rot" and name not in TRANSPORT_FAULTS
)
"""Rot needs a second copy to survive; a scenario that has one asks for it."""


def _words(cut: Cut) -> str:
    def side(hosts: frozenset[str] | None) -> str:
        return "the rest" if hosts is None else "+".join(sorted(hosts))

    arrow = "|" if cut.both else "↛"
    return f"{cut.kind} {side(cut.sources)} {arrow} {side(cut.targets)}"

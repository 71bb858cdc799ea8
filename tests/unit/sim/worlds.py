"""Small worlds for tests: hosts without a program of their own."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World


async def idle(_host: SimHost) -> None:
    """A node that does nothing; tests act in its place."""


def world_of(*names: str, seed: int = 1) -> World:
    world = World(seed)
    for name in names:
        world.add(name, idle)
    return world


def at(world: World, name: str, port: int) -> Address:
    return Address(world.machines[name].ip, port)


def finish(world: World, story: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end and let nothing have failed."""
    try:
        result = world.run(story)
        assert world.failures == []
        return result
    finally:
        world.close()

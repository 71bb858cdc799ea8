"""What a scenario is: nodes to run, faults they must survive, checkers that watch, a goal.

    class Counters(Scenario):
        name = "counters"
        summary = "every node counts, no count is lost"
        planted_bugs = {"forget-sync": "DurableCounter"}  # which checker must see it

        async def setup(self, world: World) -> None:
            for name in self.node_names():                 # n1, n2, ... as many as asked for
                world.add(name, lambda host: self.node(world, host))

        async def node(self, world: World, host: SimHost) -> None:
            '''Runs at every (re)start; the node's own code takes `host` as a runtime Host.'''
            file = await host.disk.open("count")
            while True:
                await host.clock.sleep(0.1)
                await file.append(b".")
                if self.planted_bug != "forget-sync":
                    await file.sync()
                world.observe("counted", node=host.name)   # -> on_counted(at, node=...) of checkers

        def checkers(self) -> list[Checker]:
            return [DurableCounter()]

        def goal(self, world: World) -> str:
            '''Polled in the liveness phase: "" when reached, else what is missing.'''
            return "" if all(... for name in world.core) else "n2 still counts nothing"

A run is: `setup`; the safety phase (`safety_s` of true time under the faults that the seed drew
from `faults`); everything heals and `world.core` is up; the liveness phase (`goal` must be reached
within `liveness_s`, then hold for `steady_s`); `Checker.at_end`. The first failure ends the run.
Run it with `hyperscale.sim.run(Counters(nodes=5), seed)` or `hyperscale sim counters`.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import ORDINARY_FAULTS, Limits
from hyperscale.sim.trace import printable
from hyperscale.sim.world import World


class Scenario:
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    nodes_default: ClassVar[int] = 5
    """0: each seed draws its own number, in `setup`."""
    safety_s: float = 60.0
    liveness_s: float = 60.0
    steady_s: float = 0.0
    """How long the goal must hold once it is reached."""
    goal_every_s: float = 0.5
    faults: Sequence[str] = ORDINARY_FAULTS
    """The classes a seed may draw from (`faults.ALL_FAULTS`); () is a quiet world."""
    limits: Limits = Limits()
    core: Literal["all", "majority"] = "all"
    """Who must reach the goal: everyone, or (half of the seeds) only a random majority, the rest
    staying cut off."""
    planted_bugs: ClassVar[Mapping[str, str]] = {}
    """Planted bugs, each with the name of the checker that must catch it."""

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        assert not planted_bug or planted_bug in self.planted_bugs, (
            f"{self.name} has no planted bug {planted_bug}"
        )
        self.nodes = nodes or self.nodes_default
        self.planted_bug = planted_bug

    async def setup(self, world: World) -> None:
        """Add the hosts; shape the links with `world.network.default` or `.route`."""
        raise NotImplementedError

    async def during(self, world: World) -> None:
        """What a client does in the safety phase; cancelled at its end."""

    def checkers(self) -> list[Checker]:
        return []

    def goal(self, world: World) -> str:
        """ "" when reached, else a few words on what is missing."""
        return ""

    def victims(self, world: World) -> list[str]:
        """Hosts that faults may hit."""
        return list(world.machines)

    def describe(self, data: bytes) -> str:
        """A datagram in words, for the trace."""
        return printable(data)

    def forgives(self, task: str, error: BaseException) -> bool:
        """Whether a task may die of this without failing the run: the error of a broken disk (a
        node that gives up is started again), or a stream that broke while it was served."""
        if isinstance(error, ConnectionError):
            return task.startswith("serve ")
        return isinstance(error, OSError) and error.errno in (errno.EIO, errno.ENOSPC)

    def figures(self, world: World) -> dict[str, float]:
        """Measurements of a finished run, for its report."""
        return {}

    def node_names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

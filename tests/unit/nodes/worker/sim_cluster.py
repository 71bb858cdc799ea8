"""A worker and scripted managers in a simulated world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.part_runner import LoadEvent, SimRunner
from hyperscale.sim.world import World
from tests.fixtures.scripted_manager import ScriptedManager, manager_settings

PORT = 7_000
CORES = 4


class SimCluster:
    """`m1` leads unless a test says otherwise; `w1` is the worker."""

    def __init__(self, managers: int = 1, seed: int = 1, **settings: float) -> None:
        self.world = World(seed)
        self.managers: dict[str, ScriptedManager] = {}
        self.worker: Worker
        self.runner: SimRunner
        self.deeds: list[tuple[float, LoadEvent, Part, Fence]] = []
        self.loaded: Counter[Fence] = Counter()
        self.last_load_at = 0.0
        self.on_load: list[Callable[[DispatchPart, int], None]] = []
        self._settings = settings
        self._voters = tuple(f"m{number}" for number in range(1, managers + 1))
        seeds = tuple((f"10.0.0.{number}", PORT) for number in range(1, managers + 1))
        self._seeds = seeds
        for name in self._voters:
            self.world.add(name, self._manager)
        self.world.add("w1", self._worker)

    @property
    def m1(self) -> ScriptedManager:
        return self.managers["m1"]

    async def _manager(self, host: SimHost) -> None:
        here = Address(host.ip, PORT)
        settings = manager_settings(
            host.name, here, Path("unused"), self._seeds, plaintext="anywhere"
        )
        manager = ScriptedManager(host, settings)
        manager.voters = self._voters
        manager.leads = host.name == "m1" and "m1" not in self.managers
        self.managers[host.name] = manager
        await manager.begin()

    async def _worker(self, host: SimHost) -> None:
        node = NodeSettings(
            id=host.name,
            bind=Address(host.ip, PORT),
            data=Path("unused"),
            seeds=self._seeds,
            role="worker",
            plaintext="anywhere",
        )
        settings = replace(WorkerSettings(node=node, cores=CORES), **self._settings)
        self.runner = SimRunner(host, CORES, self._saw)
        self.worker = Worker(host, settings, self.runner)
        await self.worker.start()

    def _saw(self, deed: LoadEvent, order: DispatchPart, amount: int) -> None:
        if deed == "loaded":
            self.loaded[order.fence] += amount
            self.last_load_at = self.world.now
            for listener in self.on_load:
                listener(order, amount)
        else:
            self.deeds.append((self.world.now, deed, order.part, order.fence))

    def did(self, deed: LoadEvent) -> list[Part]:
        return [part for _, done, part, _ in self.deeds if done == deed]

    def play(self, story: Coroutine[Any, Any, None]) -> None:
        """Run it to its end; nothing may have failed in the background."""
        try:
            self.world.run(story)
            assert self.world.failures == [], self.world.failures
        finally:
            self.world.close()

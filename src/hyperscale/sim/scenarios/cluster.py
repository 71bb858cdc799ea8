"""The whole cluster: real managers, workers and clients, with virtual load.

People submit jobs of many shapes, watch and steer them, while machines crash, stand still, lose
their disks' last writes and each other. Every job that was accepted must come to one end, with
numbers that are those of the stages, and must leave nothing behind.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.cluster.jobs.records import decode as decode_record
from hyperscale.errors import HyperscaleError
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import Record
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.stage import Progressed
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime.host import Address
from hyperscale.sim.checkers import Checker
from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.links import partition
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.cluster_canaries import CANARIES, Cast
from hyperscale.sim.scenarios.cluster_checkers import all_checkers
from hyperscale.sim.scenarios.cluster_truth import Performance, Truth
from hyperscale.sim.scenarios.cluster_users import User, Wish, draw_wishes
from hyperscale.sim.stage import Deed, SimPerformer, SimStage
from hyperscale.sim.world import World

PORT: Final = 7_000
CORES_MAX: Final = 4
WORKERS_MAX: Final = 4
# Slower than in life: numbers that move are most of the work of a simulated minute.
REPORTED_EVERY_S: Final = 0.25
SHOWN_EVERY_S: Final = 0.5
# Until a death is noticed (some 5 s), believed (8 s) and made up for.
STRIKE_S: Final = 25.0
# A small log, so that checkpoints and whole states are part of the story.
RECORDS: Final = RecordsSettings(
    checkpoint=Policy(records=25, seconds=15.0), log_bytes_max=400_000, entries_kept=10
)


class ClusterScenario(Scenario):
    name = "cluster"
    summary = "managers, workers and clients: every job has one end with true numbers"
    nodes_default = 0  # managers; the seed draws one or three
    canaries = CANARIES
    safety_s = 45.0
    liveness_s = 400.0
    steady_s = 10.0
    goal_every_s = 1.0
    limits = Limits(
        loss_max=0.15,
        tail_max_s=1.0,
        pause_max_s=12.0,
        cut_max_s=15.0,
        down_max_s=12.0,
        gap_s_min=4.0,
        gap_s_max=25.0,
        error_max=0.01,
        disk_slow_max=50.0,
    )

    def __init__(self, nodes: int | None = None, canary: str = "") -> None:
        super().__init__(nodes, canary)
        self.truth = Truth()
        self.managers: dict[str, Manager] = {}
        self.workers: dict[str, tuple[Worker, WatchedStage]] = {}
        self._cores: dict[str, int] = {}
        self._wishes: dict[str, list[Wish]] = {}
        self._addresses: list[Address] = []
        self._cast = Cast(canary)

    async def setup(self, world: World) -> None:
        dice = world.random
        self.nodes = self.nodes or dice.choice((1, 3, 3, 3, 3))
        names = [f"m{number}" for number in range(1, self.nodes + 1)]
        self._addresses = [Address(f"10.0.0.{n}", PORT) for n in range(1, self.nodes + 1)]
        for name in names:
            world.add(name, partial(self._manager, world, tuple(names)))
        for number in range(1, dice.randint(2, WORKERS_MAX) + 1):
            self._cores[f"w{number}"] = dice.randint(1, CORES_MAX)
        for name in self._cores:
            world.add(name, partial(self._worker, world))
        for number in range(1, dice.randint(1, 2) + 1):
            client = f"c{number}"
            self._wishes[client] = draw_wishes(dice, client, self.safety_s * 0.8)
            world.add(client, partial(self._client, world))

    def checkers(self) -> list[Checker]:
        return all_checkers(self.truth, self._leftovers)

    # -- hosts -------------------------------------------------------------------------------

    def _node(self, host: SimHost, role: str, voters: tuple[str, ...] = ()) -> NodeSettings:
        return NodeSettings(
            id=host.name,
            bind=Address(host.ip, PORT),
            data=Path("unused"),
            seeds=tuple((one.host, one.port) for one in self._addresses),
            role=role,
            voters=voters,
            plaintext="anywhere",
        )

    async def _manager(self, world: World, voters: tuple[str, ...], host: SimHost) -> None:
        node = self._node(host, "manager", voters)
        settings = ManagerSettings(node=node, records=RECORDS, window_s=SHOWN_EVERY_S)
        manager = self._cast.manager(host, settings)
        self.managers[host.name] = manager
        manager.records.on_applied.append(partial(self._applied, world, host))
        await manager.start()
        manager.node.endpoint.report = partial(self._handler_failed, world, host)
        await manager.over.wait()
        raise manager.failure or RuntimeError(f"{host.name} is over without a reason")

    def _applied(self, world: World, host: SimHost, record: Record) -> None:
        known = self.truth.payloads.get(record.index)
        if known is not None:
            if known != record.payload:
                world.fail("OneHistory", f"{host.name} applies another record at {record.index}")
            return
        decoded = decode_record(record.payload)
        self.truth.committed(record.index, record.payload, decoded)
        kind = type(decoded).__name__
        world.coverage[f"record {kind}"] += 1
        world.observe(
            "committed", node=host.name, index=record.index, what=kind, job=decoded.job_id
        )

    async def _worker(self, world: World, host: SimHost) -> None:
        cores = self._cores[host.name]
        node = self._node(host, "worker")
        settings = WorkerSettings(node=node, cores=cores, flush_s=REPORTED_EVERY_S)
        stage = WatchedStage(self, world, host, cores)
        worker = self._cast.worker(host, settings, stage)
        self.workers[host.name] = (worker, stage)
        await worker.start()
        worker.node.endpoint.report = partial(self._handler_failed, world, host)

    def _handler_failed(
        self, world: World, host: SimHost, task: str, error: BaseException | None
    ) -> None:
        """The other side was told that its question could not be answered: a bug, or the disk."""
        if error is None or self.canary or isinstance(error, HyperscaleError):
            return
        world.fail("framework", f"{host.name} could not answer {task}: {error!r}")

    async def _client(self, world: World, host: SimHost) -> None:
        wishes = self._wishes[host.name]
        User(world, host, self._addresses, wishes, self._cast.picture).start()

    # -- what is done to them beside the swarm's faults --------------------------------------

    async def during(self, world: World) -> None:
        dice = world.random_stream("blows")
        blows = []
        if dice.random() < 0.4:
            blows.append(self._kill_leader(world, dice.uniform(5.0, 40.0), dice.uniform(0.1, 20.0)))
        if dice.random() < 0.2:
            disk: CrashDisk = dice.choice(("kept", "lost-unsynced", "torn"))
            blows.append(self._kill_managers(world, dice.uniform(5.0, 40.0), disk))
        if dice.random() < 0.25:
            worker = dice.choice(sorted(self._cores))
            blows.append(self._kill_for_good(world, dice.uniform(5.0, 40.0), worker))
        if dice.random() < 0.5:
            blows.append(self._strike_at_work(world, dice.uniform(3.0, 20.0), dice.random() < 0.5))
        await asyncio.gather(*blows)

    async def _strike_at_work(self, world: World, at_s: float, cut_off: bool) -> None:
        """A worker under load is cut off, or stands still, until its parts are elsewhere."""
        await world.sleep(at_s)
        while not (busy := self._at_work()):
            await world.sleep(0.5)
        if not cut_off:
            world.coverage["paused at work"] += 1
            world.pause(busy[0], STRIKE_S)
            return
        world.coverage["cut off at work"] += 1
        cut = world.network.cut(partition([busy[0]], kind="isolate"))
        await world.sleep(STRIKE_S)
        world.network.heal(cut)

    def _at_work(self) -> list[str]:
        everything = [one for many in self.truth.performances.values() for one in many]
        return sorted({one.host.name for one in everything if one.loading})

    async def _kill_leader(self, world: World, at_s: float, down_s: float) -> None:
        await world.sleep(at_s)
        for name, manager in self.managers.items():
            if world.machines[name].up and manager.leadership.leads():
                world.coverage["leader killed"] += 1
                world.crash(name)
                world.restart_after(name, down_s)

    async def _kill_managers(self, world: World, at_s: float, disk: CrashDisk) -> None:
        await world.sleep(at_s)
        world.coverage["all managers killed"] += 1
        for number, name in enumerate(self.managers):
            world.crash(name, disk)
            world.restart_after(name, 1.0 + number)

    async def _kill_for_good(self, world: World, at_s: float, worker: str) -> None:
        await world.sleep(at_s)
        world.coverage["worker gone for good"] += 1
        world.crash(worker, for_good=True)

    # -- the goal ----------------------------------------------------------------------------

    def goal(self, world: World) -> str:
        unfinished = self.truth.unfinished()
        if unfinished:
            return f"not over: {', '.join(unfinished)}"
        waiting = [w.key for wishes in self._wishes.values() for w in wishes if not w.told]
        return f"not told the end: {', '.join(waiting)}" if waiting else ""

    def _leftovers(self) -> list[str]:
        found = []
        for name, (worker, stage) in self.workers.items():
            cores = worker.parts.cores
            dead = stage.host.process.dead
            if not dead and (stage.busy or cores.free != cores.total):
                found.append(f"{name} has {stage.busy} parts and {cores.free}/{cores.total} free")
        for name, manager in self.managers.items():
            for worker_name, held in sorted(manager.jobs.book.by_worker.items()):
                if manager.leadership.leads() and held:
                    found.append(f"{name} believes that {worker_name} is at work")
        return found

    def forgives(self, task: str, error: BaseException) -> bool:
        """A manager whose disk failed gives up; a planted bug may trip the code's own checks."""
        if isinstance(error, InvariantBroken):
            return bool(self.canary)
        if task == "main" and isinstance(error, HyperscaleError):
            return True
        return super().forgives(task, error)


class WatchedStage(SimStage):
    """Tells the truth of what is done on it."""

    def __init__(self, scenario: ClusterScenario, world: World, host: SimHost, cores: int) -> None:
        super().__init__(host, cores, self._saw)
        self.host = host
        self._truth = scenario.truth
        self._world = world

    def perform(
        self, order: DispatchPart, cores: tuple[int, ...], progressed: Progressed
    ) -> SimPerformer:
        performer = super().perform(order, cores, progressed)
        self._truth.performances[order.part].append(Performance(self.host, order, performer))
        if order.fence.attempt > 1:
            self._world.coverage["part taken over"] += 1
        self._observe("accepted", order)
        return performer

    def _saw(self, deed: Deed, order: DispatchPart, amount: int) -> None:
        one = next(
            p
            for p in reversed(self._truth.performances[order.part])
            if p.order is order and p.host is self.host
        )
        if deed == "loaded":
            one.requests += amount
        elif deed == "began":
            self._observe("began", order)
            one.began = True

    def _observe(self, kind: str, order: DispatchPart) -> None:
        host = self.host
        self._world.observe(
            kind, node=host.name, life=host.generation, part=order.part, fence=order.fence
        )

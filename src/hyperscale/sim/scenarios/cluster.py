"""The whole cluster: real managers, workers and clients, with virtual load.

People submit jobs of many shapes, watch and steer them, while machines crash, stand still, lose
their disks' last writes and each other. Every job that was accepted must come to one end, with
numbers that are those of the stages, and must leave nothing behind.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.cluster.jobs.records import Part
from hyperscale.cluster.jobs.records import decode as decode_record
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.errors import HyperscaleError
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import Record
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.manager.condensing import condensed_record
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime.host import Address
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import ORDINARY_FAULTS, TRANSPORT_FAULTS, Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.cluster_bugs import PLANTED_BUGS, PlantedNodes
from hyperscale.sim.scenarios.cluster_checkers import all_checkers
from hyperscale.sim.scenarios.cluster_command import UnderCommand
from hyperscale.sim.scenarios.cluster_faults import LEAVE, ClusterFaults
from hyperscale.sim.scenarios.cluster_losses import HeardIsKept, TrueCoverage
from hyperscale.sim.scenarios.cluster_lost_load import TakenOver, ToSpare
from hyperscale.sim.scenarios.cluster_promises import (
    FORGOTTEN_WITHIN_S,
    Alone,
    Kept,
    Leaving,
    PausedStays,
    ThresholdsJudged,
    WithinCores,
)
from hyperscale.sim.scenarios.cluster_shapes import STALLED_S, STUCK_S, full_body
from hyperscale.sim.scenarios.cluster_timing import LimitsInTime, StuckIfHanging
from hyperscale.sim.scenarios.cluster_truth import ObservedRunner, Truth
from hyperscale.sim.scenarios.cluster_users import (
    NONCE,
    User,
    Wish,
    draw_long_wishes,
    draw_timed,
    draw_wishes,
)
from hyperscale.sim.world import World

PORT: Final = 7_000
CORES_MAX: Final = 4
WORKERS_MAX: Final = 4
WORKERS_FULL: Final = 3
FULL_SHARE: Final = 0.3
# Slower than in life: numbers that move are most of the work of a simulated minute.
REPORTED_EVERY_S: Final = 0.25
SHOWN_EVERY_S: Final = 0.5
# Virtual nodes are late only when they stand still, and then by more than this.
LOAD_LOOKED_AT_S: Final = 0.5
# A small log, so that checkpoints and whole states are part of the history.
RECORDS: Final = RecordsSettings(
    checkpoint=Policy(records=25, seconds=15.0), log_bytes_max=400_000, entries_kept=10
)
# Shorter than what parts may take: some finish in time, others are cut off.
DRAIN_S: Final = 6.0
# In some histories ended jobs are forgotten while the faults go on.
SHORT_MEMORY: Final = JobSettings(
    completed_kept_s=6.0,
    failed_kept_s=9.0,
    key_kept_s=6.0,
    stuck_s=STUCK_S,
    stalled_s=STALLED_S,
)
# Long enough for several cuts, each until its part is elsewhere.
CUTS_ALONE_S: Final = 80.0


class ClusterScenario(Scenario):
    name = "cluster"
    summary = "managers, workers and clients: every job has one end with true numbers"
    nodes_default = 0  # managers; the seed draws one or three
    planted_bugs = PLANTED_BUGS
    faults = (*ORDINARY_FAULTS, *TRANSPORT_FAULTS)
    cuts_alone_share = 0.2
    """Of histories in which workers lose what is between them and others, in part or wholly, and
    nothing else happens: there parts must move in time."""
    safety_s = 30.0
    liveness_s = 400.0
    steady_s = 4.0
    goal_every_s = 1.0
    limits = Limits(
        loss_max=0.15,
        tail_max_s=1.0,
        pause_max_s=12.0,
        cut_max_s=15.0,
        down_max_s=12.0,
        gap_s_min=3.0,
        gap_s_max=16.0,
        error_max=0.02,
        disk_slow_max=50.0,
    )

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self.truth = Truth()
        self.managers: dict[str, Manager] = {}
        self.workers: dict[str, tuple[Worker, ObservedRunner]] = {}
        self._cores: dict[str, int] = {}
        self._wishes: dict[str, list[Wish]] = {}
        self._addresses: list[Address] = []
        self._planted = PlantedNodes(planted_bug)
        self._jobs = JobSettings(stuck_s=STUCK_S, stalled_s=STALLED_S)
        self._is_full = False
        self._only_cuts = False

    async def setup(self, world: World) -> None:
        dice = world.random
        if dice.random() < 0.25:
            world.coverage["short memory"] += 1
            self._jobs = SHORT_MEMORY
            self.steady_s += SHORT_MEMORY.failed_kept_s + FORGOTTEN_WITHIN_S
        if world.random_stream("cuts alone").random() < self.cuts_alone_share:
            world.coverage["cuts alone"] += 1
            self._only_cuts, self.faults, self.safety_s = True, (), CUTS_ALONE_S
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
            if self._only_cuts:
                self._wishes[client] = draw_long_wishes(dice, client)
            else:
                self._wishes[client] = draw_wishes(dice, client, self.safety_s * 0.8)
            world.add(client, partial(self._client, world))
        if self._only_cuts:
            return
        timed = draw_timed(world.random_stream("timed"), "c1", self.safety_s / 2)
        self._wishes["c1"] += timed
        self._draw_full(world.random_stream("full"), world)

    def _draw_full(self, dice: Random, world: World) -> None:
        """In some histories a job has all cores to itself, when one of the workers dies for good:
        one of many, since others may, too."""
        if len(self._cores) < WORKERS_FULL or dice.random() >= FULL_SHARE:
            return
        world.coverage["no core is free"] += 1
        self._is_full = True
        body = msgspec.msgpack.encode(full_body(dice))
        key = f"c1-full:0:{NONCE}"
        self._wishes["c1"] = [Wish(key, "full", body, at_s=dice.uniform(0.0, 3.0))]

    def checkers(self) -> list[Checker]:
        return [
            *all_checkers(self.truth, self._leftovers),
            Leaving(self.truth),
            Kept(self.truth, self._remembered, lambda: self._jobs),
            ThresholdsJudged(self.truth),
            PausedStays(self.truth, self._called_paused),
            WithinCores(self.truth),
            Alone(self.truth),
            UnderCommand(self.truth, self._leading, lambda: self._only_cuts),
            TrueCoverage(self.truth),
            HeardIsKept(self.truth, self._leaders),
            StuckIfHanging(self.truth),
            LimitsInTime(self.truth, self._unheard),
            TakenOver(self.truth),
            ToSpare(self.truth),
        ]

    def _leaders(self) -> list[Manager]:
        return [manager for manager in self.managers.values() if manager.leadership.leads()]

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
        settings = ManagerSettings(
            node=node, jobs=self._jobs, records=RECORDS, window_s=SHOWN_EVERY_S
        )
        manager = self._planted.manager(host, settings)
        manager.node.admission.sample_every_s = LOAD_LOOKED_AT_S
        self.managers[host.name] = manager
        manager.records.on_applied.append(partial(self._applied, world, host))
        manager.records.on_forgotten.append(partial(self._forgotten, world, host))
        await manager.start()
        manager.node.endpoint.report = partial(self._handler_failed, world, host)
        await manager.over.wait()
        raise manager.failure or RuntimeError(f"{host.name} is over without a reason")

    def _applied(self, world: World, host: SimHost, record: Record) -> None:
        known = self.truth.payloads.get(record.index)
        if known is not None:
            if known != record.payload and not _same(known, record.payload):
                world.fail("OneHistory", f"{host.name} applies another record at {record.index}")
            return
        decoded = decode_record(record.payload)
        self.truth.terms[record.index] = record.fence.term
        self.truth.committed(world.now, record.index, record.payload, decoded)
        kind = type(decoded).__name__
        world.coverage[f"record {kind}"] += 1
        world.observe(
            "committed", node=host.name, index=record.index, what=kind, job=decoded.job_id
        )

    def _forgotten(self, world: World, host: SimHost, job: str) -> None:
        if job not in self.truth.forgotten:
            world.coverage["job forgotten"] += 1
            self.truth.forget(job)
        world.observe("forgotten", node=host.name, job=job)

    async def _worker(self, world: World, host: SimHost) -> None:
        cores = self._cores[host.name]
        node = self._node(host, "worker")
        settings = WorkerSettings(node=node, cores=cores, flush_s=REPORTED_EVERY_S, drain_s=DRAIN_S)
        runner = ObservedRunner(self.truth, world, host, cores)
        worker = self._planted.worker(host, settings, runner)
        worker.node.admission.sample_every_s = LOAD_LOOKED_AT_S
        self.workers[host.name] = (worker, runner)
        await worker.start()
        worker.node.endpoint.report = partial(self._handler_failed, world, host)

    def _handler_failed(
        self, world: World, host: SimHost, task: str, error: BaseException | None
    ) -> None:
        """The other side was told that its question could not be answered: a bug, or the disk."""
        if error is None or self.planted_bug or isinstance(error, HyperscaleError):
            return
        world.fail("framework", f"{host.name} could not answer {task}: {error!r}")

    async def _client(self, world: World, host: SimHost) -> None:
        wishes = self._wishes[host.name]
        User(world, host, self._addresses, wishes, self._planted.picture).start()

    async def during(self, world: World) -> None:
        faults = ClusterFaults(world, self.truth, self.managers, self.workers)
        if self._only_cuts:
            await faults.cut()
        else:
            await faults.inject(self.safety_s, is_full=self._is_full)

    # -- the goal ----------------------------------------------------------------------------

    def goal(self, world: World) -> str:
        unfinished = self.truth.unfinished()
        if unfinished:
            return f"not over: {', '.join(unfinished)}"
        wishes = [wish for of_one in self._wishes.values() for wish in of_one]
        waiting = [wish.key for wish in wishes if not wish.told or wish.asks_again]
        return f"not answered to the end: {', '.join(waiting)}" if waiting else ""

    def _leading(self) -> str:
        leads = (name for name, one in self.managers.items() if one.leadership.leads())
        return next(leads, "")

    def _leftovers(self) -> list[str]:
        found = []
        for name, (worker, runner) in self.workers.items():
            cores = worker.parts.cores
            dead = runner.host.process.dead
            if not dead and (runner.busy or cores.free != cores.total):
                found.append(f"{name} has {runner.busy} parts and {cores.free}/{cores.total} free")
        for name, manager in self.managers.items():
            for worker_name, held in sorted(manager.jobs.replicated.by_worker.items()):
                if manager.leadership.leads() and held:
                    found.append(f"{name} believes that {worker_name} is at work")
        return found

    def _called_paused(self, node: str, part: Part, fence: Fence) -> bool:
        statuses = self.workers[node][0].parts.statuses()
        return any((s.part, s.fence, s.state) == (part, fence, "paused") for s in statuses)

    def _unheard(self, index: int, job_id: str) -> list[str]:
        """Workers that are up and hold parts of a job which were placed before who wrote this
        record led, and that have not spoken to it yet. Others may be the first to apply it."""
        term = self.truth.terms[index]
        wrote = [one for one in self.managers.values() if one.leadership.leads()]
        jobs = next((one.jobs for one in wrote if one.jobs.term == term), None)
        if jobs is None:
            return []
        job = jobs.job(job_id)
        live = [one for w in job.workflows.values() for one in w.live()] if job else []
        return sorted(
            {
                one.worker
                for one in live
                if one.fence.term != jobs.term and not self.workers[one.worker][1].host.process.dead
            }
            - {name for name, worker in jobs.pool.workers.items() if worker.registered}
        )

    def _remembered(self, world: World) -> dict[str, list[str]]:
        """What each manager that is up still knows of jobs."""
        return {
            name: sorted({*manager.records.jobs(), *(job.job_id for job in manager.jobs.jobs())})
            for name, manager in self.managers.items()
            if world.machines[name].up and manager.started
        }

    def forgives(self, task: str, error: BaseException) -> bool:
        """A manager whose disk failed gives up; a planted bug may trip the code's own checks."""
        if isinstance(error, InvariantBroken):
            return bool(self.planted_bug)
        if task in ("main", LEAVE) and isinstance(error, HyperscaleError):
            return True
        return super().forgives(task, error)


def _same(applied: bytes, again: bytes) -> bool:
    """Who is sent a job that is over gets less of its records."""
    return condensed_record(decode_record(applied)) == condensed_record(decode_record(again))

"""Three datacenters behind gates: real gates, managers, workers and clients, with virtual load.

People submit jobs to gates, watch and steer them, while machines crash, stand still and lose each
other. Every job that was accepted comes to one end, which everybody is told alike, with numbers
that are those of the load; nothing runs once that end was told.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from hyperscale.cluster.datacenters.settings import ProbeSettings
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.picture import Picture
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.settings import GateSettings, LedgerSettings
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
from hyperscale.sim.scenarios.cluster_shapes import STALLED_S, STUCK_S
from hyperscale.sim.scenarios.cluster_truth import ObservedRunner, Truth
from hyperscale.sim.scenarios.cluster_users import User, Wish, draw_long_wishes, draw_wishes
from hyperscale.sim.scenarios.gates_bugs import PLANTED_BUGS, PlantedGates
from hyperscale.sim.scenarios.gates_checkers import all_checkers
from hyperscale.sim.scenarios.gates_faults import GatesFaults
from hyperscale.sim.scenarios.gates_lines import line_checkers, look_at_lines, observe_losses
from hyperscale.sim.world import World

PORT: Final = 7_000
DATACENTERS: Final = ("dc1", "dc2", "dc3")
CORES: Final = 2
REPORTED_EVERY_S: Final = 0.25
SHOWN_EVERY_S: Final = 0.5
LOAD_LOOKED_AT_S: Final = 0.5
LOST_S: Final = 8.0  # shorter than cuts last
PROBES: Final = ProbeSettings(
    interval_s=0.5,
    timeout_s=1.5,
    failures=4,
    suspicion_s=4.0,
    together_s=3.0,
    hold_s=30.0,
    stale_s=6.0,
    witness_s=3.0,
)
BEGIN_WITHIN_S: Final = 20.0
LINES_ALONE_S: Final = 60.0
TOTALS_S: Final = 1.0
LEDGER: Final = LedgerSettings(lease_s=3.0, heartbeat_s=0.8, retry_s=0.4, view_change_s=3.0)


def _knowledge(job: GateJob) -> int:
    return len(job.ends) + len(job.withdrawn) + job.is_over


class GatesScenario(Scenario):
    name = "gates"
    summary = "gates and three datacenters: every job has one end with true numbers"
    nodes_default = 3  # gates
    planted_bugs = PLANTED_BUGS
    lines_alone_share = 0.25
    """Worlds in which nothing else is wrong than a line now and then."""

    faults = (*ORDINARY_FAULTS, *TRANSPORT_FAULTS)
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
        self.gates: dict[str, Gate] = {}
        self.managers: dict[str, Manager] = {}
        self._wishes: dict[str, list[Wish]] = {}
        self._addresses: dict[str, Address] = {}
        self._planted = PlantedGates(planted_bug)

    async def setup(self, world: World) -> None:
        gates = self.add_nodes(world)
        lines_alone = world.random_stream("lines alone").random() < self.lines_alone_share
        if lines_alone:
            world.coverage["lines alone"] += 1
            self.faults, self.safety_s = (), LINES_ALONE_S
        dice = world.random
        for number in range(1, dice.randint(1, 2) + 1):
            client = f"c{number}"
            if lines_alone:
                self._wishes[client] = draw_long_wishes(dice, client)
            else:
                self._wishes[client] = draw_wishes(dice, client, self.safety_s * 0.8)
            world.add(client, partial(self._client, world, [self._addresses[g] for g in gates]))
        hosts = {dc: [f"{dc}-m1", f"{dc}-w1"] for dc in DATACENTERS}
        self._faults = GatesFaults(world, gates, hosts, self._owners)
        self._faults.place_apart()
        self._faults.always = lines_alone

    def add_nodes(self, world: World) -> list[str]:
        """The names of the gates."""
        gates = [f"g{number}" for number in range(1, self.nodes + 1)]
        managers = [f"{dc}-m1" for dc in DATACENTERS]
        workers = [f"{dc}-w1" for dc in DATACENTERS]
        names = [*gates, *managers, *workers]
        for number, name in enumerate(names, 1):
            self._addresses[name] = Address(f"10.0.0.{number}", PORT)
        for name in gates:
            world.add(name, partial(self._gate, world, tuple(gates)))
        for name in managers:
            world.add(name, partial(self._manager, world))
        for name in workers:
            world.add(name, partial(self._worker, world))
        return gates

    async def during(self, world: World) -> None:
        await asyncio.gather(self._faults.inject(), look_at_lines(world), self._note(world))

    async def _note(self, world: World) -> None:
        while True:
            world.observe("noted")
            await world.sleep(TOTALS_S / 2)

    def checkers(self) -> list[Checker]:
        gates = [f"g{number}" for number in range(1, self.nodes + 1)]
        managers = {dc: f"{dc}-m1" for dc in DATACENTERS}
        return [
            *all_checkers(self.truth, self._jobs),
            *line_checkers(gates, managers, PROBES, LOST_S),
        ]

    def _jobs(self) -> dict[str, list[GateJob]]:
        found: dict[str, list[GateJob]] = {}
        for gate in self.gates.values():
            for job in gate.ledger.jobs.jobs():
                found.setdefault(job.job_id, []).append(job)
        return found

    def _owners(self) -> list[str]:
        return [
            name
            for name, gate in self.gates.items()
            if any(gate.owner.owned(job.job_id) for job in gate.ledger.jobs.unsettled())
        ]

    def _known(self) -> list[GateJob]:
        """Each job as the gate knows it that knows most of it."""
        return [max(known, key=_knowledge) for known in self._jobs().values()]

    def _node(
        self, host: SimHost, role: str, dc: str, seeds: list[str], voters: tuple[str, ...] = ()
    ) -> NodeSettings:
        addresses = [self._addresses[name] for name in seeds]
        return NodeSettings(
            id=host.name,
            bind=Address(host.ip, PORT),
            data=Path("unused"),
            seeds=tuple((one.host, one.port) for one in addresses),
            dc=dc,
            role=role,
            voters=voters,
            plaintext="anywhere",
        )

    async def _gate(self, world: World, gates: tuple[str, ...], host: SimHost) -> None:
        dc = DATACENTERS[gates.index(host.name) % len(DATACENTERS)]
        settings = GateSettings(
            node=self._node(host, "gate", dc, list(gates)),
            gates=gates,
            datacenters={name: (self._addresses[f"{name}-m1"],) for name in DATACENTERS},
            ledger=LEDGER,
            probes=PROBES,
            window_s=SHOWN_EVERY_S,
            datacenter_lost_s=LOST_S,
            begin_within_s=BEGIN_WITHIN_S,
            totals_s=TOTALS_S,
        )
        gate = self._planted.gate(host, settings)
        gate.node.admission.sample_every_s = LOAD_LOOKED_AT_S
        observe_losses(gate, world)
        self.gates[host.name] = gate
        await gate.start()
        gate.node.endpoint.report = partial(self._handler_failed, world, host)
        await gate.over.wait()
        raise gate.failure or RuntimeError(f"{host.name} is over without a reason")

    async def _manager(self, world: World, host: SimHost) -> None:
        dc = host.name.partition("-")[0]
        settings = ManagerSettings(
            node=self._node(host, "manager", dc, [host.name], (host.name,)),
            jobs=JobSettings(stuck_s=STUCK_S, stalled_s=STALLED_S),
            window_s=SHOWN_EVERY_S,
        )
        manager = Manager(host, settings)
        manager.node.admission.sample_every_s = LOAD_LOOKED_AT_S
        self.managers[host.name] = manager
        await manager.start()
        manager.node.endpoint.report = partial(self._handler_failed, world, host)
        await manager.over.wait()
        raise manager.failure or RuntimeError(f"{host.name} is over without a reason")

    async def _worker(self, world: World, host: SimHost) -> None:
        dc = host.name.partition("-")[0]
        node = self._node(host, "worker", dc, [f"{dc}-m1"])
        settings = WorkerSettings(node=node, cores=CORES, flush_s=REPORTED_EVERY_S)
        runner = ObservedRunner(self.truth, world, host, CORES)
        worker = Worker(host, settings, runner)
        worker.node.admission.sample_every_s = LOAD_LOOKED_AT_S
        await worker.start()
        worker.node.endpoint.report = partial(self._handler_failed, world, host)

    def _handler_failed(
        self, world: World, host: SimHost, task: str, error: BaseException | None
    ) -> None:
        if error is None or self.planted_bug or isinstance(error, HyperscaleError):
            return
        world.fail("framework", f"{host.name} could not answer {task}: {error!r}")

    async def _client(self, world: World, gates: list[Address], host: SimHost) -> None:
        User(world, host, gates, self._wishes[host.name], Picture).start()

    def goal(self, world: World) -> str:
        world.observe("looked")
        if lost := [job.job_id for job in self._known() if job.to_withdraw]:
            return f"lost and not withdrawn: {', '.join(lost)}"
        wishes = [wish for of_one in self._wishes.values() for wish in of_one]
        waiting = [wish.key for wish in wishes if not wish.told or wish.asks_again]
        return f"not answered to the end: {', '.join(waiting)}" if waiting else ""

    def forgives(self, task: str, error: BaseException) -> bool:
        if task in ("main", "ledger") and isinstance(error, HyperscaleError):
            return True
        return super().forgives(task, error)

"""Three gates and three datacenters, real nodes in a simulated world without faults, and clients
that the test plays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from hyperscale.cluster.overload import LoadLevel, OverloadDetector
from hyperscale.nodes.client.managers import endpoint_of
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.protocol.jobs import Body, JobAck, SubmitJob
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenarios.gates import GatesScenario
from hyperscale.sim.world import World
from hyperscale.wire.identity import Identity
from hyperscale.wire.peer import Peer
from hyperscale.workload.facts import StepFacts, WorkflowFacts
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import ClosedVUs

Story = Callable[["QuietWorld"], Awaitable[None]]


class Forced(OverloadDetector):
    """As loaded as the test says."""

    level = LoadLevel.HEALTHY

    @property
    def load(self) -> LoadLevel:
        return self.level


class QuietWorld:
    def __init__(self, clients: Sequence[str]) -> None:
        self.world = World(7)
        self.scenario = GatesScenario()
        self.scenario.add_nodes(self.world)
        self.hosts: dict[str, SimHost] = {}
        for name in clients:
            self.world.add(name, self._client)

    async def _client(self, host: SimHost) -> None:
        self.hosts[host.name] = host
        await host.clock.sleep(1_000)

    def gate(self, name: str) -> Gate:
        return self.scenario.gates[name]

    def manager(self, name: str) -> Manager:
        return self.scenario.managers[name]

    def peer(self, client: str, gate: str) -> Peer:
        identity = Identity(
            node_id=client, incarnation=1, role="client", cluster_id="default",
            environment_id="dev", datacenter="local",
        )  # fmt: skip
        endpoint = endpoint_of(self.hosts[client], identity, plaintext="anywhere")
        return Peer(endpoint, self.scenario._addresses[gate])

    def owner(self, job_id: str) -> str:
        return next(n for n, gate in self.scenario.gates.items() if gate.ledger.owns(job_id))

    async def until(self, holds: Callable[[], object], within_s: float = 60.0) -> None:
        for _ in range(int(within_s / 0.1)):
            if holds():
                return
            await self.world.sleep(0.1)
        raise AssertionError("it never came true")

    async def ready(self) -> None:
        def all_reached() -> bool:
            gates = self.scenario.gates.values()
            return len(gates) == 3 and all(
                gate.node.started and self._all_well(gate) for gate in gates
            )

        await self.until(all_reached)

    @staticmethod
    def _all_well(gate: Gate) -> bool:
        return {one.state for one in gate.datacenters.states().datacenters} == {"healthy"}


def submission(job_id: str, seconds: float = 10.0, **given: object) -> SubmitJob:
    load = ClosedVUs(vus=2, duration_s=seconds, graceful_stop_s=1.0)
    step = StepFacts(name="get", hook_type=HookType.TEST)
    facts = WorkflowFacts(name="W", is_test=True, priority="auto", load=load, steps=(step,))
    body = Body(workflows=(facts,), source=b"", overrides=b"", name="W")
    return SubmitJob(job_id=job_id, body=msgspec.msgpack.encode(body), **given)  # type: ignore[arg-type]


async def accepted(peer: Peer, message: SubmitJob) -> JobAck:
    ack = await peer.request(message, JobAck, 10)
    assert ack.accepted, ack.error
    return ack


def play(story: Story, clients: Sequence[str] = ("c1", "c2")) -> None:
    quiet = QuietWorld(clients)
    over: list[bool] = []

    async def tell(host: SimHost) -> None:
        await quiet.ready()
        await story(quiet)
        over.append(True)

    quiet.world.add("teller", partial(tell))

    async def wait() -> None:
        while not over and not quiet.world.failures and quiet.world.now < 300:
            await quiet.world.sleep(0.5)

    try:
        quiet.world.run(wait())
        assert not quiet.world.failures, quiet.world.failures[0]
    finally:
        quiet.world.close()
    assert over, "the story never ended"

"""One node, flooded by all the others with more than it has slots for, under ordinary faults.

What must hold: nothing critical is ever refused, no class works on more than its ceiling, and
once the world is calm every slot is free again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from hyperscale.cluster.overload import Admission, AdmissionResult, AdmissionSettings, LoadLevel
from hyperscale.cluster.overload import Priority as Class
from hyperscale.nodes.member.admission import NodeAdmission
from hyperscale.runtime.host import Address
from hyperscale.sim.checkers import Checker
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.world import World
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call

PORT = 9_000
SETTINGS = AdmissionSettings(total=20, high=10, normal=6, low=4)
# Per second and caller; with work of half a second that is twice the slots from one caller alone.
BURST = {Class.LOW: 20, Class.NORMAL: 12, Class.HIGH: 12}
WORK_S = 0.5


class Ping(msgspec.Struct, frozen=True, tag="flood.ping"):
    number: int


class High(msgspec.Struct, frozen=True, tag="flood.high"):
    number: int


class Normal(msgspec.Struct, frozen=True, tag="flood.normal"):
    number: int


class Low(msgspec.Struct, frozen=True, tag="flood.low"):
    number: int


STRUCTS: Mapping[Class, type[msgspec.Struct]] = {
    Class.CRITICAL: Ping,
    Class.HIGH: High,
    Class.NORMAL: Normal,
    Class.LOW: Low,
}
KINDS = Registry()
for _class, _struct in STRUCTS.items():
    KINDS.add(_struct, priority=Priority(_class))


class ShedsCritical(Admission):
    """Planted: CRITICAL takes the slots of NORMAL."""

    def try_acquire(
        self, priority: Class, source: str = "", load: LoadLevel = LoadLevel.HEALTHY
    ) -> AdmissionResult:
        return super().try_acquire(max(priority, Class.NORMAL), source, load)

    def release(self, priority: Class, source: str = "") -> None:
        super().release(max(priority, Class.NORMAL), source)


class ForgetsCeilings(Admission):
    """Planted: LOW may take what HIGH may."""

    def try_acquire(
        self, priority: Class, source: str = "", load: LoadLevel = LoadLevel.HEALTHY
    ) -> AdmissionResult:
        return super().try_acquire(min(priority, Class.HIGH), source, load)

    def release(self, priority: Class, source: str = "") -> None:
        super().release(min(priority, Class.HIGH), source)


class KeepsSlots(Admission):
    """Planted: a slot is not always given back."""

    def release(self, priority: Class, source: str = "") -> None:
        if sum(counts.acquired for counts in self.counts().values()) % 10:
            super().release(priority, source)


PLANTED: Mapping[str, type[Admission]] = {
    "": Admission,
    "shed-critical": ShedsCritical,
    "forget-ceilings": ForgetsCeilings,
    "keep-slots": KeepsSlots,
}


class CriticalServed(Checker):
    def on_turned_away(self, _at: float, rank: str) -> None:
        if rank == Class.CRITICAL.name:
            self.fail("a critical message was refused for want of room")


class BoundedWork(Checker):
    """Counts what is being worked on by itself, not by what the admission says."""

    def __init__(self) -> None:
        self._working: Counter[Class] = Counter()

    def on_began(self, _at: float, rank: str) -> None:
        self._working[Class[rank]] += 1
        taken = 0
        for each in (Class.LOW, Class.NORMAL, Class.HIGH):
            taken += self._working[each]
            if taken > SETTINGS.ceiling(each):
                self.fail(f"{taken} messages of class {each.name} or below at once")

    def on_ended(self, _at: float, rank: str) -> None:
        self._working[Class[rank]] -= 1

    def on_crashed(self, _at: float, node: str, disk: str) -> None:
        if node == "n1":
            self._working.clear()


class Flood(Scenario):
    name = "flood"
    summary = "a flooded node refuses what it may refuse, never what is critical"
    nodes_default = 4
    safety_s = 20.0
    liveness_s = 30.0
    canaries: ClassVar[Mapping[str, str]] = {
        "shed-critical": "CriticalServed",
        "forget-ceilings": "BoundedWork",
        "keep-slots": "liveness",
    }

    def __init__(self, nodes: int | None = None, canary: str = "") -> None:
        super().__init__(nodes, canary)
        self._admission: NodeAdmission | None = None
        self._flooding = True
        self._answered: Counter[str] = Counter()

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            body = self._node if name == "n1" else self._caller
            world.add(name, lambda host, body=body: body(world, host))  # type: ignore[misc]

    def checkers(self) -> list[Checker]:
        return [CriticalServed(), BoundedWork()]

    def goal(self, world: World) -> str:
        if self._flooding:
            self._flooding = False
            self._answered.clear()
        callers = [name for name in self.node_names()[1:] if not self._answered[name]]
        if callers:
            return f"{', '.join(callers)} got no answer yet"
        assert self._admission is not None
        if self._admission.slots.in_flight:
            return f"{self._admission.slots.in_flight} slots are still taken"
        return ""

    def figures(self, world: World) -> dict[str, float]:
        assert self._admission is not None
        counts = self._admission.slots.counts()
        return {f"{kind.name.lower()}_shed": float(counts[kind].shed) for kind in Class}

    async def _node(self, world: World, host: SimHost) -> None:
        async def work(call: Call, message: msgspec.Struct) -> msgspec.Struct:
            kind = Class(call.kind.priority).name
            world.observe("began", rank=kind)
            try:
                await host.clock.sleep(WORK_S * host.random.random())
            finally:
                world.observe("ended", rank=kind)
            return message

        self._admission = NodeAdmission(host, PLANTED[self.canary](SETTINGS))
        self._admission.watch()
        endpoint = Endpoint(
            host,
            Introduction(_identity(host)),
            KINDS,
            dict.fromkeys(STRUCTS.values(), work),
            plaintext="anywhere",
            admission=self._admission,
        )
        await Server(endpoint).start(Address("", PORT))

    async def _caller(self, world: World, host: SimHost) -> None:
        endpoint = Endpoint(host, Introduction(_identity(host)), KINDS, plaintext="anywhere")
        peer = Peer(endpoint, Address("n1", PORT))
        host.tasks.spawn("critical", self._ask_critical(world, host, peer))
        number = 0
        while True:
            await host.clock.sleep(1.0)
            if not self._flooding:
                continue
            for kind, count in BURST.items():
                for _ in range(count):
                    number += 1
                    message = STRUCTS[kind](number)
                    host.tasks.spawn(f"ask {number}", self._ask(world, peer, kind, message))

    async def _ask_critical(self, world: World, host: SimHost, peer: Peer) -> None:
        number = 0
        while True:
            await host.clock.sleep(0.2)
            if not self._flooding and self._answered[host.name]:
                continue  # the goal looks for a node without work
            number += 1
            if await self._ask(world, peer, Class.CRITICAL, Ping(number)):
                self._answered[host.name] += 1

    async def _ask(self, world: World, peer: Peer, kind: Class, message: msgspec.Struct) -> bool:
        try:
            await peer.request(message, STRUCTS[kind], 3.0)
        except Refused as refused:
            if refused.code == Reason.OVERLOADED:
                world.coverage[f"shed-{kind.name.lower()}"] += 1
                world.observe("turned_away", rank=kind.name)
            return False
        except WireError:
            return False
        return True


def _identity(host: SimHost) -> Identity:
    return Identity(
        node_id=host.name,
        incarnation=host.generation,
        role="probe",
        cluster_id="sim",
        environment_id="sim",
        datacenter="dc1",
    )

"""A replicated log by Viewstamped Replication: crashes, torn and lost disks, cuts, slow clocks,
groups that change while all of this happens.

Clients on every host append and read at random replicas, and ask again with the same request when
no answer comes. What they saw must be explained by one log to which everything happened at one
moment.
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

import msgspec

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.vsr import Entry, Group, NotPrimary, Unknown, VsrSettings
from hyperscale.ledger.vsr.messages import decode_message
from hyperscale.ledger.vsr.states import Status
from hyperscale.ledger.wal import LogFailed, WalSettings
from hyperscale.runtime.host import Address, Datagrams
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.vsr_bugs import PLANTED_BUGS, plant
from hyperscale.sim.scenarios.vsr_checkers import all_checkers
from hyperscale.sim.world import World

PORT = 7_200
HOSTS = 5
GROUP = 3
THINK_S_MAX = 1.0
TRY_S = 0.5
GIVE_UP_S = 4.0
SETTINGS = VsrSettings(
    lease_s=1.0, heartbeat_s=0.25, retry_s=0.2, view_change_s=1.0, batch_entries_max=4
)
WAL = WalSettings(segment_bytes_max=6_000, batch_entries_max=8, read_bytes=1_000)


class Packet(msgspec.Struct, array_like=True):
    """Between replicas (`number` 0), or a question of a client and its answer."""

    sender: str
    number: int
    body: bytes = b""
    verb: str = ""
    request: str = ""
    members: tuple[str, ...] = ()
    answer: list[str] | None = None
    op: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Packet).decode


class VsrScenario(Scenario):
    name = "vsr"
    summary = "what a client was told of a replicated log stays true, whoever keeps it"
    nodes_default = HOSTS
    planted_bugs = PLANTED_BUGS
    safety_s = 40.0
    liveness_s = 60.0
    limits = Limits(cut_max_s=4.0, down_max_s=3.0, pause_max_s=3.0, gap_s_max=4.0, error_max=0.02)

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self.running: dict[str, VsrNode] = {}
        self.born: set[str] = set()
        self.lost_disk: str = ""
        self._acked_at = 0.0

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, partial(self._node, world))

    async def _node(self, world: World, host: SimHost) -> None:
        node = VsrNode(self, world, host)
        self.running[host.name] = node
        await node.run()

    async def during(self, world: World) -> None:
        dice = world.random_stream("operator")
        while True:
            await asyncio.sleep(dice.expovariate(1 / 4))
            deed = dice.choice(("lose a disk", "reconfigure", "resign", "nothing"))
            if deed == "lose a disk":
                await self._lose_disk(world, dice)
            elif deed == "reconfigure":
                members = tuple(dice.sample(self.node_names(), GROUP))
                self._post(world, dice, VsrNode.reconfigure, members)
            elif deed == "resign":
                self._post(world, dice, VsrNode.resign)

    def _post(self, world: World, dice: Random, deed: object, *given: object) -> None:
        for name in world.up():
            node = self.running.get(name)
            if node is not None and node.group is not None and node.group.replica.is_primary:
                world.loop.post(node.host.process, deed, node, *given)  # type: ignore[arg-type]

    async def _lose_disk(self, world: World, dice: Random) -> None:
        """One at a time: a group of three is safe while two remember."""
        if self.lost_disk:
            return
        name = self.lost_disk = dice.choice(self.node_names())
        world.crash(name)
        disk = world.machines[name].disk
        for path, _ in list(disk.files()):
            disk.remove(path)
        if list(disk.files()) or disk.durable("ledger") is not None:
            world.fail("framework", "a disk that was lost has files")
        world.coverage["vsr lost disk"] += 1
        world.observe("disk_lost", node=name)
        world.restart_after(name, dice.uniform(0.1, 3.0))

    def recovered(self, name: str) -> None:
        if self.lost_disk == name:
            self.lost_disk = ""

    def acked(self, at: float) -> None:
        self._acked_at = at

    def checkers(self) -> list[Checker]:
        return all_checkers()

    def goal(self, world: World) -> str:
        """A primary answers reads, and an operation was committed after everything healed."""
        groups = [node.group for node in self.running.values() if node.group is not None]
        tokens = {group.replica.state.token for group in groups if group.replica.is_primary}
        if not tokens:
            return "there is no primary"
        newest = max(tokens)
        current = [group.replica for group in groups if group.replica.state.token == newest]
        members = current[0].state.members
        normal = [one for one in current if one.me in members and one.status is Status.NORMAL]
        if len(normal) < len(members):
            return f"{len(normal)} of {len(members)} replicas are in the normal case"
        return "" if self._acked_at > world.healed_at else "nothing was committed"

    def forgives(self, task: str, error: BaseException) -> bool:
        if isinstance(error, InvariantBroken):
            return PLANTED_BUGS.get(self.planted_bug, "framework") != "framework"
        return isinstance(error, LogFailed) or super().forgives(task, error)

    def describe(self, data: bytes) -> str:
        packet = _decode(data)
        if packet.number == 0:
            return f"{packet.sender}: {type(decode_message(packet.body)).__name__}"
        return f"{packet.sender}: {packet.verb or 'answer'} {packet.request}"


class VsrNode:
    """One life of a host: a replica, and a client."""

    def __init__(self, scenario: VsrScenario, world: World, host: SimHost) -> None:
        self._scenario = scenario
        self._world = world
        self.host = host
        self.group: Group | None = None
        self._port: Datagrams | None = None
        self._addresses: dict[str, Address] = {}
        self._waiting: dict[int, asyncio.Future[Packet]] = {}
        self._number = 0

    async def run(self) -> None:
        name, scenario = self.host.name, self._scenario
        self._port = await self.host.network.bind(Address("0.0.0.0", PORT), self._received)
        for peer in scenario.node_names():
            self._addresses[peer] = (await self.host.network.resolve(peer, PORT))[0]
        group = await Group.open(
            *(self.host, "ledger", name, tuple(scenario.node_names()[:GROUP])),
            *(self._send, self._applied, SETTINGS, WAL),
            disk_lost=name in scenario.born,
        )
        scenario.born.add(name)
        plant(group, scenario.planted_bug)
        self.group = group
        self._observe("opened", life=self.host.generation)
        self.host.tasks.spawn("client", self._use())
        self.host.tasks.spawn("watch", self._watch(group))
        await group.run()

    async def _watch(self, group: Group) -> None:
        while True:
            if group.replica.status is not Status.RECOVERING:
                self._scenario.recovered(self.host.name)
            self._world.coverage[f"vsr {group.replica.status.value}"] += 1
            await self.host.clock.sleep(0.2)

    def reconfigure(self, members: tuple[str, ...]) -> None:
        self.host.tasks.spawn("reconfigure", self._ask_for("reconfigure", members))

    def resign(self) -> None:
        if self.group is not None:
            self.group.resign()

    # -- the client ---------------------------------------------------------------------------

    async def _use(self) -> None:
        while True:
            await self.host.clock.sleep(self.host.random.random() * THINK_S_MAX)
            await self._ask_for(self.host.random.choice(("append", "read")))

    async def _ask_for(self, verb: str, members: tuple[str, ...] = ()) -> None:
        self._number += 1
        request = f"{self.host.name}.{self.host.generation}.{self._number}"
        began = self.host.clock.now()
        self._observe("asked", verb=verb, request=request)
        while self.host.clock.now() - began < GIVE_UP_S:
            answer = await self._try(verb, request, members)
            if answer is not None and answer.answer is not None:
                self._observe("told", verb=verb, request=request, op=answer.op, log=answer.answer)
                if verb != "read":
                    self._scenario.acked(self._world.now)
                return

    async def _try(self, verb: str, request: str, members: tuple[str, ...]) -> Packet | None:
        self._number += 1
        number = self._number
        waiter: asyncio.Future[Packet] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiter
        # Often at home: there, a primary that is cut off from the others still has a client.
        dice = self.host.random
        peer = self.host.name if dice.random() < 0.5 else dice.choice(self._scenario.node_names())
        packet = Packet(self.host.name, number, verb=verb, request=request, members=members)
        self._put(peer, packet)
        try:
            async with asyncio.timeout(TRY_S):
                return await waiter
        except TimeoutError:
            return None
        finally:
            del self._waiting[number]

    # -- the replica --------------------------------------------------------------------------

    async def _serve(self, packet: Packet) -> None:
        if self.group is None:
            return
        reply = Packet(self.host.name, packet.number, request=packet.request)
        try:
            if packet.verb == "read":
                reply.answer = [entry.request for entry in self.group.read()]
                reply.op = len(reply.answer)
            else:
                mark = f"<{packet.request}>".encode()
                members = packet.members
                reply.op = await self.group.append(packet.request, mark, TRY_S, members)
                reply.answer = []
        except (NotPrimary, Unknown):
            reply.answer = None
        self._put(packet.sender, reply)

    def _applied(self, entry: Entry) -> None:
        life = self.host.generation
        self._observe("applied", life=life, op=entry.op, request=entry.request)

    def _send(self, peer: str, body: bytes) -> None:
        self._world.coverage[f"vsr {type(decode_message(body)).__name__}"] += 1
        self._put(peer, Packet(self.host.name, 0, body))

    def _put(self, peer: str, packet: Packet) -> None:
        assert self._port is not None
        self._port.send(self._addresses[peer], _encode(packet))

    def _received(self, data: bytes, _sender: Address) -> None:
        packet = _decode(data)
        if packet.number == 0:
            if self.group is not None:
                self.group.receive(packet.sender, packet.body)
        elif packet.verb:
            self.host.tasks.spawn(f"serve {packet.sender}", self._serve(packet))
        elif (waiter := self._waiting.get(packet.number)) is not None and not waiter.done():
            waiter.set_result(packet)

    def _observe(self, kind: str, **facts: object) -> None:
        self._world.observe(kind, node=self.host.name, **facts)

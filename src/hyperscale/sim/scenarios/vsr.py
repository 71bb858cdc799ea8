"""Logs replicated by Viewstamped Replication: crashes, torn and lost disks, cuts, slow clocks,
groups that change while all of this happens.

Every host has replicas of several groups. Clients on every host append and read at random replicas,
and ask again with the same request when no answer comes. What they saw of a group must be explained
by one log to which everything happened at one moment.
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

import msgspec

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.vsr import Entry, Groups, NotPrimary, Unknown, VsrSettings
from hyperscale.ledger.vsr.messages import DoViewChange, decode_bundle
from hyperscale.ledger.vsr.states import Status
from hyperscale.ledger.wal import LogFailed, WalSettings
from hyperscale.runtime.host import Address, Datagrams
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.vsr_bugs import PLANTED_BUGS, AnswerBeforeSync, planted
from hyperscale.sim.scenarios.vsr_checkers import all_checkers
from hyperscale.sim.world import World

PORT = 7_200
HOSTS = 5
GROUP = 3
GROUPS = 3
THINK_S_MAX = 1.0
READ_S_MAX = 0.2  # often enough to meet a lease that should have ended
TRY_S = 0.5
LEAVES = 0.4  # of the primaries that were told to change their group
SHORT_GROUPS = tuple(f"k{number}" for number in range(6))  # they end while others go on
POLICY = Policy(records=60, seconds=5.0)
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
    group: str = ""
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
        # A bug is looked for in plain histories, where few things hide it.
        self.is_plain = planted_bug not in ("", "forget-at-once", "leave-within-lease")
        self.running: dict[str, VsrNode] = {}
        self.born: set[str] = set()
        self.lost_disk: str = ""
        self.short: dict[str, tuple[str, ...]] = {}
        self.closed: set[str] = set()  # of these, those whose end was confirmed or seen
        self._acked_at: dict[str, float] = {}

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, partial(self._node, world))

    def first_members(self) -> dict[str, tuple[str, ...]]:
        names = self.node_names()
        turned = {f"j{at}": names[at:] + names[:at] for at in range(GROUPS)}
        return {group: tuple(members[:GROUP]) for group, members in turned.items()}

    async def _node(self, world: World, host: SimHost) -> None:
        node = VsrNode(self, world, host)
        self.running[host.name] = node
        await node.run()

    async def during(self, world: World) -> None:
        dice, leaving = world.random_stream("operator"), world.random_stream("leaving")
        if self.is_plain:
            return await self._operate(world, dice, leaving)
        short_groups = asyncio.create_task(self._short_groups(world))
        try:
            await self._operate(world, dice, leaving)
        finally:
            short_groups.cancel()

    async def _operate(self, world: World, dice: Random, leaving: Random) -> None:
        while True:
            await asyncio.sleep(dice.expovariate(1 / 4))
            deed = dice.choice(("lose a disk", "reconfigure", "resign", "nothing"))
            if deed == "lose a disk":
                await self._lose_disk(world, dice)
            elif deed == "reconfigure":
                members = tuple(dice.sample(self.node_names(), GROUP))
                group = self._post(world, dice, VsrNode.reconfigure, members)
                if leaving.random() < LEAVES and not self.is_plain:
                    await asyncio.sleep(leaving.choice((0.0, leaving.uniform(0.0, 0.05))))
                    self._to_primary(world, group, VsrNode.resign)
            elif deed == "resign":
                self._post(world, dice, VsrNode.resign)

    async def _short_groups(self, world: World) -> None:
        """Each is made by one node, used by it, and closed by whoever leads it then."""
        dice = world.random_stream("short groups")
        for group in SHORT_GROUPS:
            await asyncio.sleep(dice.uniform(0.5, self.safety_s / len(SHORT_GROUPS)))
            members = tuple(dice.sample(self.node_names(), GROUP))
            self.short[group] = members
            node = self.running.get(members[0])
            if node is not None and members[0] in world.up():
                world.loop.post(node.host.process, VsrNode.live_and_close, node, group)

    def _post(self, world: World, dice: Random, deed: object, *given: object) -> str:
        group = dice.choice(sorted(self.first_members()))
        self._to_primary(world, group, deed, *given)
        return group

    def _to_primary(self, world: World, group: str, deed: object, *given: object) -> None:
        for name in world.up():
            node = self.running.get(name)
            if node is not None and node.leads(group):
                world.loop.post(node.host.process, deed, node, group, *given)  # type: ignore[arg-type]

    async def _lose_disk(self, world: World, dice: Random) -> None:
        """One at a time: a group of three is safe while two remember."""
        if self.lost_disk:
            return
        name = self.lost_disk = dice.choice(self.node_names())
        world.crash(name)
        disk = world.machines[name].disk
        for path, _ in list(disk.files()):
            disk.remove(path)
            disk.sync_directory(path.rpartition("/")[0])
        world.coverage["vsr lost disk"] += 1
        world.observe("disk_lost", node=name)
        world.restart_after(name, dice.uniform(0.1, 3.0))

    def recovered(self, name: str) -> None:
        if self.lost_disk == name:
            self.lost_disk = ""

    def acked(self, group: str, at: float) -> None:
        self._acked_at[group] = at

    def checkers(self) -> list[Checker]:
        return all_checkers([*self.first_members(), *SHORT_GROUPS])

    def goal(self, world: World) -> str:
        """A primary answers reads, and an operation was committed after everything healed."""
        missing = [self._missing(world, group) for group in self.first_members()]
        missing += [self._remembered(group) for group in sorted(self.closed)]
        return next(filter(None, missing), "")

    def _remembered(self, group: str) -> str:
        """What is over is forgotten, everywhere."""
        for name, node in self.running.items():
            if node.groups is not None and node.groups.node.remembers(group):
                return f"{group} is over, and {name} remembers it"
        return ""

    def _missing(self, world: World, group: str) -> str:
        nodes = [one.groups.node.replicas for one in self.running.values() if one.groups]
        replicas = [known[group] for known in nodes if group in known]
        tokens = {replica.state.token for replica in replicas if replica.is_primary}
        if not tokens:
            return f"{group}: there is no primary"
        current = [replica for replica in replicas if replica.state.token == max(tokens)]
        members = current[0].state.members
        normal = [one for one in current if one.me in members and one.status is Status.NORMAL]
        if len(normal) < len(members):
            return f"{group}: {len(normal)} of {len(members)} replicas are in the normal case"
        acked = self._acked_at.get(group, 0.0) > world.healed_at
        return "" if acked else f"{group}: nothing was committed"

    def forgives(self, task: str, error: BaseException) -> bool:
        if isinstance(error, InvariantBroken):
            return PLANTED_BUGS.get(self.planted_bug, "framework") != "framework"
        return isinstance(error, LogFailed) or super().forgives(task, error)

    def describe(self, data: bytes) -> str:
        packet = _decode(data)
        if packet.number == 0:
            bundle = decode_bundle(packet.body)
            said = [f"{type(item.message).__name__} {item.group}" for item in bundle.items]
            said += ["beat"] if bundle.beat else []
            said += ["promise"] if bundle.answer else []
            return f"{packet.sender}: {', '.join(said)}"
        return f"{packet.sender}: {packet.verb or 'answer'} {packet.group} {packet.request}"


class VsrNode:
    """One life of a host: replicas, and a client."""

    def __init__(self, scenario: VsrScenario, world: World, host: SimHost) -> None:
        self._scenario = scenario
        self._world = world
        self.host = host
        self.groups: Groups | None = None
        self._port: Datagrams | None = None
        self._addresses: dict[str, Address] = {}
        self._waiting: dict[int, asyncio.Future[Packet]] = {}
        self._number = host.generation * 1_000_000  # nobody answers to a life before

    async def run(self) -> None:
        name, scenario = self.host.name, self._scenario
        self._port = await self.host.network.bind(Address("0.0.0.0", PORT), self._received)
        for peer in scenario.node_names():
            self._addresses[peer] = (await self.host.network.resolve(peer, PORT))[0]
        groups = await Groups.open(
            *(self.host, "ledger", name, self._send, self._applied, SETTINGS, WAL),
            closed=self._closed,
            policy=None if scenario.is_plain else POLICY,
            disk_lost=name in scenario.born,
            node_class=planted(scenario.planted_bug),
        )
        scenario.born.add(name)
        if scenario.planted_bug == "answer-before-sync":
            groups.__class__ = AnswerBeforeSync
        for group, members in scenario.first_members().items():
            groups.create(group, members)
        self.groups = groups
        self._observe("opened", life=self.host.generation)
        self.host.tasks.spawn("client", self._use(("append", "read"), THINK_S_MAX))
        self.host.tasks.spawn("reader", self._use(("read",), READ_S_MAX))
        self.host.tasks.spawn("watch", self._watch(groups))
        await groups.run()

    async def _watch(self, groups: Groups) -> None:
        while True:
            statuses = [replica.status for replica in groups.node.replicas.values()]
            if Status.RECOVERING not in statuses:
                self._scenario.recovered(self.host.name)
            for status in statuses:
                self._world.coverage[f"vsr {status.value}"] += 1
            await self.host.clock.sleep(0.2)

    def leads(self, group: str) -> bool:
        known = None if self.groups is None else self.groups.node.replicas.get(group)
        return known is not None and known.is_primary

    def reconfigure(self, group: str, members: tuple[str, ...]) -> None:
        self.host.tasks.spawn("reconfigure", self._ask_for("reconfigure", group, members))

    def live_and_close(self, group: str) -> None:
        if self.groups is not None:
            self.host.tasks.spawn("short group", self._live_and_close(group))

    async def _live_and_close(self, group: str) -> None:
        for verb in ("append", "append", "read", "close", "append", "read"):
            if self.groups is not None:  # whoever wants to use it is ready to begin it
                self.groups.create(group, self._scenario.short[group])
            await self._ask_for(verb, group)
            await self.host.clock.sleep(self.host.random.random() * THINK_S_MAX)

    def resign(self, group: str) -> None:
        if self.groups is not None:
            self.groups.resign((group,))

    # -- the client ---------------------------------------------------------------------------

    async def _use(self, verbs: tuple[str, ...], think_s_max: float) -> None:
        while True:
            await self.host.clock.sleep(self.host.random.random() * think_s_max)
            dice = self.host.random
            group = dice.choice(sorted(self._scenario.first_members()))
            await self._ask_for(dice.choice(verbs), group)

    async def _ask_for(self, verb: str, group: str, members: tuple[str, ...] = ()) -> None:
        self._number += 1
        request = f"{self.host.name}.{self.host.generation}.{self._number}"
        began = self.host.clock.now()
        self._observe("asked", group=group, verb=verb, request=request)
        while self.host.clock.now() - began < GIVE_UP_S:
            answer = await self._try(verb, group, request, members)
            if answer is not None and answer.answer is not None:
                told = {"request": request, "op": answer.op, "log": answer.answer}
                self._observe("told", group=group, verb=verb, **told)
                if verb != "read":
                    self._scenario.acked(group, self._world.now)
                return

    async def _try(
        self, verb: str, group: str, request: str, members: tuple[str, ...]
    ) -> Packet | None:
        self._number += 1
        number = self._number
        waiter: asyncio.Future[Packet] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiter
        # Often at home: there, a primary that is cut off from the others still has a client.
        dice = self.host.random
        peer = self.host.name if dice.random() < 0.5 else dice.choice(self._scenario.node_names())
        packet = Packet(self.host.name, number, b"", verb, group, request, members)
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
        if self.groups is None:
            return
        reply = Packet(self.host.name, packet.number, request=packet.request)
        try:
            if packet.verb == "read":
                reply.answer = [entry.request for entry in self.groups.read(packet.group)]
                reply.op = len(reply.answer)
            else:
                mark = f"<{packet.request}>".encode()
                asked = (packet.group, packet.request, mark, TRY_S, packet.members)
                closes = packet.verb == "close"
                reply.op = await self.groups.append(*asked, closes=closes)
                reply.answer = []
        except (NotPrimary, Unknown):
            reply.answer = None
        self._put(packet.sender, reply)

    def _applied(self, group: str, entry: Entry) -> None:
        life, op = self.host.generation, entry.op
        self._observe("applied", group=group, life=life, op=op, request=entry.request)

    def _closed(self, group: str) -> None:
        self._scenario.closed.add(group)
        self._observe("closed", group=group)

    def _send(self, peer: str, body: bytes) -> None:
        for item in decode_bundle(body).items:
            message = item.message
            self._world.coverage[f"vsr {type(message).__name__}"] += 1
            if isinstance(message, DoViewChange) and any(
                entry.members for entry in message.log[message.commit :]
            ):
                self._world.coverage["vsr reconfiguration in a view change"] += 1
        self._put(peer, Packet(self.host.name, 0, body))

    def _put(self, peer: str, packet: Packet) -> None:
        assert self._port is not None
        self._port.send(self._addresses[peer], _encode(packet))

    def _received(self, data: bytes, _sender: Address) -> None:
        packet = _decode(data)
        if packet.number == 0:
            if self.groups is not None:
                self.groups.receive(packet.sender, packet.body)
        elif packet.verb:
            self.host.tasks.spawn(f"serve {packet.sender}", self._serve(packet))
        elif (waiter := self._waiting.get(packet.number)) is not None and not waiter.done():
            waiter.set_result(packet)

    def _observe(self, kind: str, **facts: object) -> None:
        self._world.observe(kind, node=self.host.name, **facts)

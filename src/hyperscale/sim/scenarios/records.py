"""Job records among three or five voters: crashes, torn disks, partitions, lost and late messages.

The scenario names the leaders and keeps only one promise: no term has two leaders. Old leaders are
told late or never, so the records must defend themselves without the help of leases. Writers append
to jobs that stay and to jobs that end and are forgotten; small checkpoints make voters that were
away need the state.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.errors import BadInput
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import (
    NotLeader,
    PeerUnreachable,
    QuorumRecords,
    QuorumUnavailable,
    Record,
    RecordsError,
    RecordsSettings,
)
from hyperscale.ledger.records.messages import decode_request
from hyperscale.ledger.wal import LogClosed, LogFailed, WalSettings
from hyperscale.runtime.host import Address, Datagrams
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.records_bugs import PLANTED_BUGS, plant
from hyperscale.sim.scenarios.records_checkers import all_checkers
from hyperscale.sim.world import World

PORT = 7_100
WRITERS = 3
STAYING_JOBS = 4
THINK_S_MAX = 0.25
PAYLOAD_BYTES_MAX = 400
LEADS_S_MAX = 5.0
STUCK_S = 4.0

SETTINGS = RecordsSettings(
    quorum_timeout_s=2.0,
    request_timeout_s=0.5,
    retry_s=0.1,
    ping_s=0.3,
    reachable_s=1.0,
    batch_records_max=5,
    batch_bytes_max=4_000,
    pipeline_max=3,
    part_bytes=1_500,
    checkpoint=Policy(records=15, seconds=3.0),
    log_bytes_max=20_000,
    entries_kept=6,
    tidy_s=0.2,
    wal=WalSettings(segment_bytes_max=6_000, batch_entries_max=8, read_bytes=1_000),
)
"""Small enough that a minute of work meets every limit."""


class Call(msgspec.Struct, array_like=True):
    number: int
    sender: str
    reply: bool
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Call).decode


class RecordsScenario(Scenario):
    name = "records"
    summary = "job records on a majority survive whatever a minority and the network do"
    nodes_default = 0  # the seed draws three or five
    planted_bugs = PLANTED_BUGS
    safety_s = 40.0
    liveness_s = 60.0
    limits = Limits(cut_max_s=8.0, down_max_s=6.0, pause_max_s=5.0, gap_s_max=10.0, error_max=0.02)
    core = "majority"

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self.term = 0
        self._running: dict[str, RecordsNode] = {}
        self._elected_at = 0.0
        self._acked_at = 0.0

    async def setup(self, world: World) -> None:
        self.nodes = self.nodes or world.random.choice((3, 5))
        for name in self.node_names():
            world.add(name, partial(self._node, world))

    async def _node(self, world: World, host: SimHost) -> None:
        node = RecordsNode(self, world, host)
        self._running[host.name] = node
        await node.run()

    async def during(self, world: World) -> None:
        dice = world.random_stream("elections")
        while True:
            await asyncio.sleep(dice.random() ** 2 * LEADS_S_MAX)
            self._elect(world, dice.choice(self.node_names()))
            if dice.random() < 0.5:
                for name in world.up():
                    node = self._running[name]
                    world.loop.post(node.host.process, node.step_down, self.term - 1)

    def _elect(self, world: World, name: str) -> None:
        if world.machines[name].up and name in self._running:
            self.term += 1
            self._elected_at = world.now
            node = self._running[name]
            world.observe("elected", node=name, term=self.term)
            world.loop.post(node.host.process, node.elected, self.term)

    def acked(self, at: float) -> None:
        self._acked_at = at

    def checkers(self) -> list[Checker]:
        return all_checkers()

    def goal(self, world: World) -> str:
        """A leader in the core takes records, and everybody in the core has them. Excused is a core
        in which too few remember: a voter that was never up to date may have lost its disk."""
        nodes = [self._running[name] for name in world.core if world.machines[name].up]
        new = sum(node.opened and node.records.status().newcomer for node in nodes)
        if max(new, len(nodes) - new) < self.nodes // 2 + 1 and len(nodes) == len(world.core):
            return ""
        leading = [node for node in nodes if node.opened and node.records.status().ready]
        newest = max(leading, key=lambda node: node.records.status().term, default=None)
        if newest is None or newest.records.status().term < self.term:
            if world.now - self._elected_at > STUCK_S:
                self._elect(world, world.random.choice(world.core))
            return "nobody leads"
        if self._acked_at < world.healed_at:
            return "no record was confirmed"
        status = newest.records.status()
        behind = [
            node.host.name
            for node in nodes
            if not node.opened or node.records.status().applied_index < status.commit_index - 20
        ]
        return f"{', '.join(behind)} are behind" if behind or len(nodes) < len(world.core) else ""

    def forgives(self, task: str, error: BaseException) -> bool:
        """A planted bug may trip the code's own checks before a checker sees what it did."""
        if isinstance(error, InvariantBroken):
            return PLANTED_BUGS.get(self.planted_bug, "framework") != "framework"
        return isinstance(error, LogFailed) or super().forgives(task, error)

    def describe(self, data: bytes) -> str:
        call = _decode(data)
        return f"{'reply' if call.reply else 'request'} {call.number} of {call.sender}"


class RecordsNode:
    """One generation of a voter."""

    def __init__(self, scenario: RecordsScenario, world: World, host: SimHost) -> None:
        self._scenario = scenario
        self._world = world
        self.host = host
        self._peers = scenario.node_names()
        self._port: Datagrams | None = None
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._calls = 0
        self._tokens = 0
        self.opened = False
        self.records = QuorumRecords(host, "records", host.name, self._peers, self._send, SETTINGS)

    async def run(self) -> None:
        self._port = await self.host.network.bind(Address("0.0.0.0", PORT), self._received)
        await self.records.open()
        plant(self.records, self._scenario.planted_bug)
        self._observe("opened", rows=self._rows())
        self.records.on_applied.append(self._applied)
        self.records.on_forgotten.append(lambda job_id: self._observe("dropped", job=job_id))
        self.opened = True
        raise await self.records.failed()

    # -- leading ------------------------------------------------------------------------------

    def elected(self, term: int) -> None:
        self.host.tasks.spawn(f"lead {term}", self._lead(term))

    def step_down(self, term: int) -> None:
        if self.opened:
            self.records.follow(term)

    async def _lead(self, term: int) -> None:
        while not self.opened:
            await self.host.clock.sleep(0.05)
        for _ in range(3):
            try:
                await self.records.lead(term)
                break
            except QuorumUnavailable:
                continue
            except (NotLeader, LogFailed):
                return
        else:
            return
        self._observe("leads", term=term, rows=self._rows())
        for writer in range(WRITERS):
            self.host.tasks.spawn(f"writer {term}.{writer}", self._write(term, writer))

    async def _write(self, term: int, writer: int) -> None:
        dice = self.host.random
        while self.records.status().ready and self.records.status().term == term:
            await self.host.clock.sleep(dice.random() ** 3 * THINK_S_MAX)
            self._tokens += 1
            token = f"{self.host.name}.{self.host.generation}.{self._tokens}"
            job, keep_s = f"stays {dice.randrange(STAYING_JOBS)}", None
            if dice.random() < 0.4:
                job, keep_s = f"ends {token}", dice.uniform(0.1, 3.0)
            try:
                await self._append(job, token, term, keep_s)
            except (NotLeader, LogFailed):
                return
            except RecordsError:
                continue

    async def _append(self, job: str, token: str, term: int, keep_s: float | None) -> None:
        padding = bytes(int(self.host.random.random() ** 4 * PAYLOAD_BYTES_MAX))
        payload = f"<{token}>".encode() + padding
        self._observe("appending", token=token)
        index = await self.records.append(job, 1, payload, Fence(term), keep_s)
        self._observe("acked", index=index, token=token, job=job, term=term)
        self._scenario.acked(self._world.now)

    # -- what is seen -------------------------------------------------------------------------

    def _applied(self, record: Record) -> None:
        life = self.host.generation
        self._observe("applied", life=life, index=record.index, token=token_of(record))

    def _rows(self) -> list[tuple[int, str]]:
        records = self.records
        return sorted(
            (record.index, token_of(record))
            for job in records.jobs()
            for record in records.records(job)
        )

    def _observe(self, kind: str, **facts: object) -> None:
        self._world.observe(kind, node=self.host.name, **facts)

    # -- requests over datagrams --------------------------------------------------------------

    async def _send(self, peer: str, body: bytes) -> bytes:
        assert self._port is not None
        self._calls += 1
        number = self._calls
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            address = (await self.host.network.resolve(peer, PORT))[0]
            self._port.send(address, _encode(Call(number, self.host.name, False, body)))
            return await answer
        finally:
            del self._waiting[number]

    def _received(self, data: bytes, sender: Address) -> None:
        call = _decode(data)
        if not call.reply:
            self.host.tasks.spawn(f"answer {call.sender}", self._answer(call, sender))
        elif (waiting := self._waiting.get(call.number)) is not None and not waiting.done():
            waiting.set_result(call.body)

    async def _answer(self, call: Call, sender: Address) -> None:
        if not self.opened:
            return
        self._world.coverage[f"records {type(decode_request(call.body)).__name__}"] += 1
        try:
            body = await self.records.handle(call.sender, call.body)
        except (BadInput, LogFailed, LogClosed, PeerUnreachable):
            return
        assert self._port is not None
        self._port.send(sender, _encode(Call(call.number, self.host.name, True, body)))


def token_of(record: Record) -> str:
    return record.payload[1 : record.payload.index(b">")].decode()

"""Replicas joined to a host: effects are carried out in order, and nothing is said before it is on
disk. All groups of a node share one log on disk and, between two nodes, one message at a time.

    groups = await Groups.open(host, "ledger", "g1", send, apply)
    host.tasks.spawn("ledger", groups.run())
    groups.create("job-7", ("g1", "g2", "g3"))
    op = await groups.append("job-7", "event 7", b"...", within_s=5.0)     # Unknown, NotPrimary
    entries = groups.read("job-7")                                         # NotPrimary
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.vsr.core import Committed, Save, Send
from hyperscale.ledger.vsr.messages import (
    Bundle,
    Entry,
    Item,
    OfGroup,
    Opened,
    decode_bundle,
    decode_record,
    encode,
)
from hyperscale.ledger.vsr.replica import NotPrimary
from hyperscale.ledger.vsr.replica_set import Beat, Created, NodeEffect, OfReplica, ReplicaSet
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.wal import Record, WalSettings, WriteAheadLog
from hyperscale.runtime.host import Host

TICKS_IN_A_RETRY = 10


class Unknown(HyperscaleError):
    """The operation was not committed in time. It may be committed later, or never."""


class Groups:
    def __init__(
        self,
        host: Host,
        log: WriteAheadLog,
        node: ReplicaSet,
        settings: VsrSettings,
        send: Callable[[str, bytes], None],
        apply: Callable[[str, Entry], None],
    ) -> None:
        self.node = node
        self._host = host
        self._log = log
        self._settings = settings
        self._send = send
        self._apply = apply
        self._effects: deque[NodeEffect] = deque()
        self._work = asyncio.Event()
        self._applied: defaultdict[str, list[Entry]] = defaultdict(list)
        self._waiting: defaultdict[tuple[str, int], set[asyncio.Future[Entry]]] = defaultdict(set)

    @classmethod
    async def open(
        cls,
        host: Host,
        directory: str,
        me: str,
        send: Callable[[str, bytes], None],
        apply: Callable[[str, Entry], None],
        settings: VsrSettings | None = None,
        wal: WalSettings | None = None,
        *,
        disk_lost: bool = False,
        node_class: type[ReplicaSet] = ReplicaSet,
    ) -> Groups:
        """`disk_lost`: this node was in groups before, should the disk be empty."""
        settings = settings or VsrSettings()
        states: dict[str, ReplicaState] = {}
        forgetful = disk_lost

        def replay(records: Sequence[Record]) -> None:
            nonlocal forgetful
            for record in records:
                match decode_record(record.payload):
                    case Opened() as opened:
                        forgetful = opened.forgetful
                    case OfGroup(group=group) as saved:
                        state = states.setdefault(group, ReplicaState(saved.members))
                        state.apply(saved.record)

        log = await WriteAheadLog.open(host, directory, settings=wal, deliver=replay)
        if log.last_lsn == 0:
            await log.append(encode(Opened(disk_lost)))
        now = host.clock.now()
        node = node_class(me, now, settings, host.random, forgetful=forgetful)
        for group, state in states.items():
            node.restore(now, group, state)
        return cls(host, log, node, settings, send, apply)

    # -- what its user asks --------------------------------------------------------------------

    def create(self, group: str, members: tuple[str, ...]) -> None:
        self._do(self.node.create(self._now(), group, members))

    async def append(
        self,
        group: str,
        request: str,
        payload: bytes,
        within_s: float,
        members: tuple[str, ...] = (),
    ) -> int:
        """Its op number, when it is committed. Raises NotPrimary, Unknown."""
        op, effects = self.node.submit(self._now(), group, request, payload, members)
        self._do(effects)
        entry = await self._committed(group, op, within_s)
        if entry.request != request:
            raise Unknown("another operation took this one's place", "ask again")
        return op

    async def _committed(self, group: str, op: int, within_s: float) -> Entry:
        applied = self._applied[group]
        if op <= len(applied):
            return applied[op - 1]
        waiter: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[group, op]
        waiting.add(waiter)
        try:
            async with asyncio.timeout(within_s):
                return await waiter
        except TimeoutError as error:
            raise Unknown(
                f"operation {op} is not committed after {within_s:g} s",
                "it may be committed later: ask again with the same request",
            ) from error
        finally:
            waiting.discard(waiter)
            if not waiting:
                self._waiting.pop((group, op), None)

    def read(self, group: str) -> tuple[Entry, ...]:
        """Everything that was committed before this call. Raises NotPrimary."""
        replica = self.node.replicas[group]
        if not replica.may_read(self._now()):
            primary = replica.primary
            raise NotPrimary(primary if primary != replica.me else None)
        return tuple(replica.state.log[: replica.commit])

    def resign(self, groups: Iterable[str] | None = None) -> None:
        """All of them: before this node stops."""
        self._do(self.node.resign(self._now(), groups))

    # -- the world -----------------------------------------------------------------------------

    def receive(self, sender: str, data: bytes) -> None:
        self._do(self.node.receive(self._now(), sender, decode_bundle(data)))

    async def run(self) -> None:
        """Until it is cancelled. Raises LogFailed: then everything must be opened anew."""
        ticking = self._host.tasks.spawn("vsr ticks", self._tick())
        try:
            await self._carry_out()
        finally:
            ticking.cancel()

    async def close(self) -> None:
        await self._log.close()

    # -- effects -------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._host.clock.now()

    def _do(self, effects: list[NodeEffect]) -> None:
        if effects:
            self._effects.extend(effects)
            self._work.set()

    async def _tick(self) -> None:
        every_s = self._settings.retry_s / TICKS_IN_A_RETRY
        while True:
            self._do(self.node.tick(self._now()))
            await self._host.clock.sleep(every_s)

    async def _carry_out(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._effects:
                batch = list(self._effects)
                self._effects.clear()
                await self._carry_out_batch(batch)

    async def _carry_out_batch(self, batch: list[NodeEffect]) -> None:
        """All that is to be saved is saved together, before anything of the batch is said."""
        records = [record for effect in batch if (record := self._record(effect)) is not None]
        if records:
            await self._log.append_many([encode(record) for record in records])
        self._say(batch)
        for effect in batch:
            match effect:
                case OfReplica(group=group, effect=Committed(entry=entry)):
                    self._commit(group, entry)
        numbers = {
            one.group: one.effect.number
            for one in batch
            if isinstance(one, OfReplica) and isinstance(one.effect, Save)
        }
        for group, number in numbers.items():
            self._do(self.node.saved(self._now(), group, number))

    def _record(self, effect: NodeEffect) -> OfGroup | None:
        match effect:
            case Created(group=group, record=record):
                return OfGroup(group, self.node.first_members(group), record)
            case OfReplica(group=group, effect=Save(record=saved)):
                return OfGroup(group, self.node.first_members(group), saved)
        return None

    def _say(self, batch: list[NodeEffect]) -> None:
        items: defaultdict[str, list[Item]] = defaultdict(list)
        beats: dict[str, Beat] = {}
        for effect in batch:
            match effect:
                case OfReplica(group=group, effect=Send(to=to, message=message)):
                    items[to].append(Item(group, self.node.first_members(group), message))
                case Beat(to=to):
                    before = beats.get(to, effect)
                    beats[to] = Beat(to, effect.beat or before.beat, effect.answer or before.answer)
        for to in sorted({*items, *beats}):
            beat = beats.get(to, Beat(to))
            self._send(to, encode(Bundle(tuple(items[to]), beat.beat, beat.answer)))

    def _commit(self, group: str, entry: Entry) -> None:
        self._applied[group].append(entry)
        self._apply(group, entry)
        for waiter in self._waiting.get((group, entry.op), ()):
            if not waiter.done():
                waiter.set_result(entry)

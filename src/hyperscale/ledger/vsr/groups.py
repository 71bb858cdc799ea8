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
from collections.abc import Callable, Iterable

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.vsr.core import Committed, Save, Send
from hyperscale.ledger.vsr.images import Images, OnDisk
from hyperscale.ledger.vsr.messages import (
    Adopted,
    Bundle,
    Buried,
    Entry,
    Item,
    OfGroup,
    Opened,
    decode_bundle,
    encode,
)
from hyperscale.ledger.vsr.replica import NotPrimary
from hyperscale.ledger.vsr.replica_set import (
    Beat,
    Bury,
    Created,
    NodeEffect,
    OfReplica,
    ReplicaSet,
)
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.wal import WalSettings, WriteAheadLog
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
        closed: Callable[[str], None],
        images: Images,
    ) -> None:
        self.node = node
        self._closed = closed
        self._images = images
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
        closed: Callable[[str], None] = lambda group: None,
        disk_lost: bool = False,
        node_class: type[ReplicaSet] = ReplicaSet,
        policy: Policy | None = None,
    ) -> Groups:
        """`disk_lost`: this node was in groups before, should the disk be empty. `closed` is told
        of groups that are over."""
        settings = settings or VsrSettings()
        found = OnDisk(disk_lost)
        images = Images(host, directory, policy or Policy())
        log = await images.restore(found, wal)
        if log.last_lsn == 0:
            await log.append(encode(Opened(disk_lost)))
        now = host.clock.now()
        node = node_class(me, now, settings, host.random, forgetful=found.forgetful)
        for group, state in found.states.items():
            node.restore(now, group, state)
        for group, untold in found.over.items():
            node.restore_over(now, group, untold)
        return cls(host, log, node, settings, send, apply, closed, images)

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
        *,
        closes: bool = False,
    ) -> int:
        """Its op number, when it is committed. Raises NotPrimary, Unknown. With `closes` the group
        is over then."""
        asked = (group, request, payload, members)
        op, effects = self.node.submit(self._now(), *asked, closes=closes)
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
        replica = self.node.replicas.get(group)
        if replica is None or not replica.may_read(self._now()):
            primary = None if replica is None else replica.primary
            raise NotPrimary(primary if primary != self.node.me else None)
        return tuple(replica.state.log[: replica.commit])

    def condense(self, group: str, less: Callable[[bytes], bytes]) -> None:
        """Of everything that is committed, keep less, here and for whoever gets it from here."""
        applied = self._applied[group]
        state = self.node.replicas[group].state
        for entry in applied:
            payload = less(entry.payload)
            if payload != entry.payload:
                state.condense(entry.op, payload)
        applied[:] = state.log[: len(applied)]

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
        await self._images.idle()
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
            # Now what replicas remember is what is on disk.
            self._images.save_if_due(self._log, self.node)

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
                case Bury(record=Buried(group=group)):
                    self._forget(group)
        numbers = {
            one.group: one.effect.number
            for one in batch
            if isinstance(one, OfReplica) and isinstance(one.effect, Save)
        }
        for group, number in numbers.items():
            self._do(self.node.saved(self._now(), group, number))

    def _record(self, effect: NodeEffect) -> OfGroup | Buried | None:
        match effect:
            case Bury(record=buried):
                return buried
            case Created(group=group, members=members):
                return OfGroup(group, members, Adopted(0, 0, members, 0, ()))
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

    def _forget(self, group: str) -> None:
        if self._applied.pop(group, None) is not None:
            self._closed(group)

    def _commit(self, group: str, entry: Entry) -> None:
        self._applied[group].append(entry)
        self._apply(group, entry)
        for waiter in self._waiting.get((group, entry.op), ()):
            if not waiter.done():
                waiter.set_result(entry)

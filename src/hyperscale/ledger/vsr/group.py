"""A replica joined to a host: effects are carried out in order, and nothing is said before it is
on disk.

    group = await Group.open(host, "ledger", "g1", ("g1", "g2", "g3"), send, apply)
    host.tasks.spawn("ledger", group.run())
    op = await group.append("event 7", b"...", within_s=5.0)       # Unknown, NotPrimary
    entries = group.read()                                         # NotPrimary
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.vsr.core import Committed, Effect, Save, Send
from hyperscale.ledger.vsr.messages import Adopted, Entry, decode_message, decode_saved, encode
from hyperscale.ledger.vsr.replica import NotPrimary, Replica
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import Status
from hyperscale.ledger.wal import Record, WalSettings, WriteAheadLog
from hyperscale.runtime.host import Host

TICKS_IN_A_RETRY = 10


class Unknown(HyperscaleError):
    """The operation was not committed in time. It may be committed later, or never."""


class Group:
    def __init__(
        self,
        host: Host,
        log: WriteAheadLog,
        replica: Replica,
        send: Callable[[str, bytes], None],
        apply: Callable[[Entry], None],
    ) -> None:
        self._host = host
        self._log = log
        self.replica = replica
        self._send = send
        self._apply = apply
        self._effects: deque[Effect] = deque()
        self._work = asyncio.Event()
        self._applied: list[Entry] = []
        self._waiting: defaultdict[int, set[asyncio.Future[Entry]]] = defaultdict(set)

    @classmethod
    async def open(
        cls,
        host: Host,
        directory: str,
        me: str,
        members: tuple[str, ...],
        send: Callable[[str, bytes], None],
        apply: Callable[[Entry], None],
        settings: VsrSettings | None = None,
        wal: WalSettings | None = None,
        *,
        disk_lost: bool = False,
    ) -> Group:
        """`members`: of the first epoch. `disk_lost`: this replica was in the group before, and
        must ask the others what it knew."""
        settings = settings or VsrSettings()
        state = ReplicaState(members)

        def replay(records: Sequence[Record]) -> None:
            for record in records:
                state.apply(decode_saved(record.payload))

        log = await WriteAheadLog.open(host, directory, settings=wal, deliver=replay)
        status = Status.NORMAL
        if log.last_lsn == 0 and disk_lost:
            status = Status.RECOVERING
        elif log.last_lsn == 0:
            # Whoever finds nothing on a disk has lost it.
            await log.append(encode(Adopted(0, 0, members, 0, ())))
        now = host.clock.now()
        return cls(
            host,
            log,
            Replica(me, state, now, settings, host.random, status=status),
            send,
            apply,
        )

    async def append(
        self, request: str, payload: bytes, within_s: float, members: tuple[str, ...] = ()
    ) -> int:
        """Its op number, when it is committed. Raises NotPrimary, Unknown."""
        op, effects = self.replica.submit(self._now(), request, payload, members)
        self._do(effects)
        entry = await self._committed(op, within_s)
        if entry.request != request:
            raise Unknown("another operation took this one's place", "ask again")
        return op

    async def _committed(self, op: int, within_s: float) -> Entry:
        if op <= len(self._applied):
            return self._applied[op - 1]
        waiter: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self._waiting[op].add(waiter)
        try:
            async with asyncio.timeout(within_s):
                return await waiter
        except TimeoutError as error:
            raise Unknown(
                f"operation {op} is not committed after {within_s:g} s",
                "it may be committed later: ask again with the same request",
            ) from error
        finally:
            self._waiting[op].discard(waiter)
            if not self._waiting[op]:
                del self._waiting[op]

    def read(self) -> tuple[Entry, ...]:
        """Everything that was committed before this call. Raises NotPrimary."""
        if not self.replica.may_read(self._now()):
            primary = self.replica.primary
            raise NotPrimary(primary if primary != self.replica.me else None)
        return tuple(self.replica.state.log[: self.replica.commit])

    def resign(self) -> None:
        self._do(self.replica.resign(self._now()))

    def receive(self, sender: str, data: bytes) -> None:
        self._do(self.replica.receive(self._now(), sender, decode_message(data)))

    async def run(self) -> None:
        """Until it is cancelled. Raises LogFailed: then this replica must be opened anew."""
        ticking = self._host.tasks.spawn("vsr ticks", self._tick())
        try:
            await self._carry_out()
        finally:
            ticking.cancel()

    async def close(self) -> None:
        await self._log.close()

    # -- effects ------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._host.clock.now()

    def _do(self, effects: list[Effect]) -> None:
        if effects:
            self._effects.extend(effects)
            self._work.set()

    async def _tick(self) -> None:
        every_s = self.replica.settings.retry_s / TICKS_IN_A_RETRY
        while True:
            self._do(self.replica.tick(self._now()))
            await self._host.clock.sleep(every_s)

    async def _carry_out(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._effects:
                batch = list(self._effects)
                self._effects.clear()
                await self._carry_out_batch(batch)

    async def _carry_out_batch(self, batch: list[Effect]) -> None:
        """All that is to be saved is saved together, before anything of the batch is said."""
        saves = [effect for effect in batch if isinstance(effect, Save)]
        if saves:
            await self._log.append_many([encode(save.record) for save in saves])
        for effect in batch:
            match effect:
                case Send(to=to, message=message):
                    self._send(to, encode(message))
                case Committed(entry=entry):
                    self._commit(entry)
        if saves:
            self._do(self.replica.saved(self._now(), saves[-1].number))

    def _commit(self, entry: Entry) -> None:
        self._applied.append(entry)
        self._apply(entry)
        for waiter in self._waiting.get(entry.op, ()):
            if not waiter.done():
                waiter.set_result(entry)

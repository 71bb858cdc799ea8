"""What a node has on disk of its groups: a log of all, and checkpoints that keep it short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from hyperscale.ledger.checkpoints import Checkpoints, Policy, restore
from hyperscale.ledger.vsr.messages import (
    Buried,
    GroupImage,
    OfGroup,
    Opened,
    decode_record,
    encode,
)
from hyperscale.ledger.vsr.replica_set import ReplicaSet
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import Status
from hyperscale.ledger.wal import Record, WalSettings, WriteAheadLog
from hyperscale.runtime.host import Host, Task

ENCODED_AT_ONCE = 200
_encoder = msgspec.msgpack.Encoder()
_images = msgspec.msgpack.Decoder(Opened | Buried | GroupImage)


class OnDisk:
    """The fold of a checkpoint and of what follows it in the log."""

    def __init__(self, disk_lost: bool) -> None:
        self.forgetful = disk_lost
        self.states: dict[str, ReplicaState] = {}
        self.over: dict[str, tuple[str, ...]] = {}

    def load(self, data: bytes) -> None:
        for part in msgspec.msgpack.decode(data, type=list[msgspec.Raw]):
            match _images.decode(part):
                case GroupImage() as image:
                    self.states[image.group] = ReplicaState.of(image)
                case Opened() | Buried() as record:
                    self._take(record)

    def apply(self, records: Sequence[Record]) -> None:
        for record in records:
            self._take(decode_record(record.payload))

    def _take(self, record: Opened | Buried | OfGroup) -> None:
        match record:
            case Opened(forgetful=forgetful):
                self.forgetful = forgetful
            case Buried(group=group, untold=untold):
                self.states.pop(group, None)
                self.over.pop(group, None)
                if untold:
                    self.over[group] = untold
            case OfGroup(group=group, members=members, record=saved):
                state = self.states.setdefault(group, ReplicaState(members))
                state.apply(saved)


class Images:
    def __init__(self, host: Host, directory: str, policy: Policy) -> None:
        self._host = host
        self._directory = directory
        self._policy = policy
        self._checkpoints = Checkpoints(host, f"{directory}-checkpoints")
        self._saved_at = host.clock.now()
        self._saved_lsn = 0
        self._saving: Task | None = None

    async def restore(self, found: OnDisk, wal: WalSettings | None) -> WriteAheadLog:
        restored = await restore(
            self._host, self._directory, self._checkpoints, found.load, found.apply, wal
        )
        self._saved_lsn = restored.checkpoint.lsn if restored.checkpoint is not None else 0
        return restored.log

    def save_if_due(self, log: WriteAheadLog, node: ReplicaSet) -> None:
        """To be called when all that replicas remember is on disk."""
        now, lsn = self._host.clock.now(), log.last_lsn
        busy = self._saving is not None and not self._saving.done()
        if not busy and self._policy.due(now, self._saved_at, self._saved_lsn, lsn):
            self._saved_at, self._saved_lsn = now, lsn
            parts = list(_parts(node))
            self._saving = self._host.tasks.spawn("ledger checkpoint", self._save(log, lsn, parts))

    async def idle(self) -> None:
        if self._saving is not None:
            self._saving.cancel()

    async def _save(self, log: WriteAheadLog, lsn: int, parts: list[msgspec.Struct]) -> None:
        encoded: list[msgspec.Raw] = []
        for at in range(0, len(parts), ENCODED_AT_ONCE):
            encoded += [msgspec.Raw(encode(part)) for part in parts[at : at + ENCODED_AT_ONCE]]
            await self._host.clock.sleep(0)
        # The checkpoints there were, and the log behind them, are as good as before.
        with suppress(OSError):
            await self._checkpoints.save(lsn, _encoder.encode(encoded))
            await log.compact(self._checkpoints.safe_lsn)


def _parts(node: ReplicaSet) -> Iterator[msgspec.Struct]:
    yield Opened(node.forgetful)
    for group, untold in node.graves.untold.items():
        yield Buried(group, tuple(sorted(untold)))
    for group, replica in node.replicas.items():
        if replica.status is not Status.RECOVERING:  # of that one nothing is on disk
            yield replica.state.image(group)

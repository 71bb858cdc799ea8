"""Checkpoints: a state with the LSN it was built from, so that a start need not replay everything.

A file is: magic with version, CRC-32 of the rest, two lengths, the facts as MessagePack, the state
as the owner encoded it. It is written under another name, synced, renamed, and the directory
synced: whatever bears a checkpoint's name was whole once. One that has rotted since is passed over
for the next older, which is why three are kept and the log is compacted only up to the oldest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from zlib import crc32

import msgspec

from hyperscale.ledger.wal.errors import LogFailed
from hyperscale.ledger.wal.inspection import Deliver
from hyperscale.ledger.wal.log import WriteAheadLog
from hyperscale.ledger.wal.record import Record
from hyperscale.ledger.wal.segment import join
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Disk, Host

MAGIC = b"HsCKP\x00\x01\n"
_START = Struct("<8sIIQ")
_NAME = re.compile(r"checkpoint_(\d{20})\.ckpt")
_UNFINISHED = ".new"
_CHECKED_FROM = 12
BITE_BYTES = 1 << 20
"""Checksummed and written at a time: about a millisecond of the event loop."""
KEPT = 3


class CheckpointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """New fields get a default, so that old files open for ever."""

    lsn: int
    """The state holds every record up to this one and none after it."""
    replicated_lsn: int
    """Up to here everything has reached the level it needs; later records are still owed to
    replication and stay in the log."""
    stamp_us: int
    """A label for people."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    facts: CheckpointFacts
    state: bytes


@dataclass(frozen=True, slots=True)
class Policy:
    """When a checkpoint is due: after so many records, or so long after the first new one."""

    records: int = 100_000
    seconds: float = 300.0

    def due(self, now: float, last_at: float, last_lsn: int, lsn: int) -> bool:
        """Never for a state that has not changed."""
        behind = lsn - last_lsn
        return behind > 0 and (behind >= self.records or now - last_at >= self.seconds)


class Checkpoints:
    """The checkpoints of one owner, in a directory of their own."""

    def __init__(self, host: Host, directory: str, kept: int = KEPT) -> None:
        assert kept >= 1
        self._disk: Disk = host.disk
        self._clock = host.clock
        self._directory = directory
        self._kept = kept
        self.passed_over: list[str] = []
        """Files that `load` found unreadable."""
        self._safe_lsn: dict[str, int] = {}
        self._saving = asyncio.Lock()

    async def save(
        self, lsn: int, state: bytes | bytearray, replicated_lsn: int | None = None
    ) -> None:
        """Write a checkpoint; older ones beyond those kept are removed. Raises OSError, and then
        the checkpoints there were are still there. One at a time: tidying up would take another's
        unfinished file away."""
        async with self._saving:
            await self._save(lsn, state, replicated_lsn)

    async def _save(self, lsn: int, state: bytes | bytearray, replicated_lsn: int | None) -> None:
        await self._make_directory()
        replicated_lsn = lsn if replicated_lsn is None else replicated_lsn
        stamp_us = int(self._clock.wall() * 1e6)
        facts = CheckpointFacts(lsn=lsn, replicated_lsn=replicated_lsn, stamp_us=stamp_us)
        name = f"checkpoint_{lsn:020d}.ckpt"
        path = join(self._directory, name)
        try:
            await self._write(path + _UNFINISHED, msgspec.msgpack.encode(facts), state)
            await self._disk.rename(path + _UNFINISHED, path)
        except BaseException:
            with suppress(OSError):  # it may have taken the last room that the log needs
                await self._disk.remove(path + _UNFINISHED)
            raise
        await self._disk.sync_directory(self._directory)
        self._safe_lsn[name] = min(lsn, replicated_lsn)
        await self._remove_old()

    async def load(self) -> Checkpoint | None:
        """The newest that is whole, by LSN. Remembers what it passed over, and takes away what was
        never finished."""
        self.passed_over = []
        self._safe_lsn = {}
        for name in await self._all_names():
            if name.endswith(_UNFINISHED):
                await self._disk.remove(join(self._directory, name))
        newest: Checkpoint | None = None
        for name in reversed(await self._names()):
            path = join(self._directory, name)
            checkpoint = await self._read(path)
            if checkpoint is None:
                self.passed_over.append(path)
                continue
            self._safe_lsn[name] = min(checkpoint.facts.lsn, checkpoint.facts.replicated_lsn)
            newest = newest or checkpoint
        return newest

    @property
    def safe_lsn(self) -> int:
        """The log may be compacted up to here: any of the checkpoints kept can still be used. 0
        until as many were kept as there should be."""
        if len(self._safe_lsn) < self._kept:
            return 0
        return min(self._safe_lsn.values())

    async def _write(self, path: str, facts: bytes, state: bytes | bytearray) -> None:
        start = _START.pack(MAGIC, 0, len(facts), len(state))[_CHECKED_FROM:] + facts
        checksum = crc32(start)
        view = memoryview(state)
        for at in range(0, len(state), BITE_BYTES):
            checksum = crc32(view[at : at + BITE_BYTES], checksum)
            await self._clock.sleep(0)
        if path in [join(self._directory, name) for name in await self._all_names()]:
            await self._disk.remove(path)
        file = await self._disk.open(path)
        try:
            await file.append(_START.pack(MAGIC, checksum, 0, 0)[:_CHECKED_FROM] + start)
            for at in range(0, len(state), BITE_BYTES):
                await file.append(bytes(view[at : at + BITE_BYTES]))
            await file.sync()
        finally:
            await file.close()

    async def _read(self, path: str) -> Checkpoint | None:
        """None when it is not what was written."""
        data = await self._disk.read(path)
        if len(data) < _START.size:
            return None
        magic, stored, facts_bytes, state_bytes = _START.unpack_from(data)
        state_at = _START.size + facts_bytes
        if magic != MAGIC or state_at + state_bytes != len(data):
            return None
        checksum, view = 0, memoryview(data)
        for at in range(_CHECKED_FROM, len(data), BITE_BYTES):
            checksum = crc32(view[at : at + BITE_BYTES], checksum)
            await self._clock.sleep(0)
        if checksum != stored:
            return None
        facts = msgspec.msgpack.decode(data[_START.size : state_at], type=CheckpointFacts)
        return Checkpoint(facts, data[state_at:])

    async def _remove_old(self) -> None:
        old = (await self._names())[: -self._kept]
        unfinished = [name for name in await self._all_names() if name.endswith(_UNFINISHED)]
        for name in [*old, *unfinished]:
            self._safe_lsn.pop(name, None)
            await self._disk.remove(join(self._directory, name))
        if old or unfinished:
            await self._disk.sync_directory(self._directory)

    async def _names(self) -> list[str]:
        """Of the checkpoints, oldest first; the digits make them sort by LSN."""
        return sorted(name for name in await self._all_names() if _NAME.fullmatch(name))

    async def _all_names(self) -> list[str]:
        return await self._disk.list(self._directory)

    async def _make_directory(self) -> None:
        await self._disk.make_directory(self._directory)
        parts = self._directory.split("/")
        for depth in range(len(parts)):
            await self._disk.sync_directory("/".join(parts[:depth]))


@dataclass(frozen=True, slots=True)
class Restored:
    log: WriteAheadLog
    checkpoint: CheckpointFacts | None
    replayed: int
    passed_over: tuple[str, ...]


async def restore(
    host: Host,
    log_directory: str,
    checkpoints: Checkpoints,
    load: Callable[[bytes], None],
    apply: Deliver,
    settings: WalSettings | None = None,
) -> Restored:
    """The start of a node: the newest whole checkpoint into `load`, the records after it into
    `apply`, and an open log. A node is ready only after this. Raises what opening raises."""
    try:
        checkpoint = await checkpoints.load()
    except OSError as error:
        raise LogFailed(log_directory, error) from error
    after_lsn = 0
    if checkpoint is not None:
        after_lsn = checkpoint.facts.lsn
        load(checkpoint.state)
    replayed = 0

    def counted(records: Sequence[Record]) -> None:
        nonlocal replayed
        replayed += len(records)
        apply(records)

    log = await WriteAheadLog.open(
        host, log_directory, settings, after_lsn=after_lsn, deliver=counted
    )
    facts = checkpoint.facts if checkpoint else None
    return Restored(log, facts, replayed, tuple(checkpoints.passed_over))

"""Disks, logs and nodes with the bugs that real journals have had; a checker must catch each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from hyperscale.ledger.wal import WriteAheadLog
from hyperscale.ledger.wal.inbox import QueuedWrite
from hyperscale.runtime.host import Disk, File, Host


class _Wrapped:
    """Everything as the original does it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _NeverSynced(_Wrapped):
    async def append_and_sync(self, data: bytes) -> None:
        await self._inner.append(data)

    async def sync(self) -> None:
        return None


class _SyncedLater(_Wrapped):
    """Only the first bytes, the segment's header, get their name before they are durable."""

    async def append_and_sync(self, data: bytes) -> None:
        await self._inner.append(data)
        self.append_and_sync = self._inner.append_and_sync  # type: ignore[method-assign]


class _SyncedAgain(_Wrapped):
    """Believes the kernel, which calls the pages of a failed sync clean."""

    def __init__(self, inner: Any, disk: Disk, path: str) -> None:
        super().__init__(inner)
        self._disk = disk
        self._path = path

    async def append_and_sync(self, data: bytes) -> None:
        await self._inner.append(data)
        try:
            await self._inner.sync()
        except OSError:
            self._inner = await self._disk.open(self._path)
            await self._inner.sync()


class _BrokenDisk(_Wrapped):
    def __init__(self, inner: Disk, bug: str) -> None:
        super().__init__(inner)
        self._bug = bug

    async def open(self, path: str) -> File:
        file = await self._inner.open(path)
        if self._bug == "ack-before-sync":
            return cast(File, _NeverSynced(file))
        if self._bug == "name-before-sync" and path.endswith(".wal.new"):
            return cast(File, _SyncedLater(file))
        if self._bug == "sync-again":
            return cast(File, _SyncedAgain(file, self._inner, path))
        return cast(File, file)

    async def sync_directory(self, path: str) -> None:
        if self._bug != "forget-directory":
            await self._inner.sync_directory(path)


class _BrokenHost(_Wrapped):
    def __init__(self, inner: Host, bug: str) -> None:
        super().__init__(inner)
        self.disk = _BrokenDisk(inner.disk, bug)


DISK_BUGS = ("ack-before-sync", "name-before-sync", "sync-again", "forget-directory")


def broken_host(host: Host, bug: str) -> Host:
    return cast(Host, _BrokenHost(host, bug)) if bug in DISK_BUGS else host


class AnswersBackwards(WriteAheadLog):
    """Tells the last caller of a batch first."""

    def _tell(self, batch: list[QueuedWrite], lsn: int) -> None:
        for entry in reversed(batch):
            later = sum(len(other.payloads) for other in batch[batch.index(entry) :])
            total = sum(len(other.payloads) for other in batch)
            super()._tell([entry], lsn + total - later)


class ForgivesTheDisk(WriteAheadLog):
    """Answers as if nothing had happened."""

    async def append(self, payload: bytes, kind: int = 1, level: int = 0) -> int:
        if self.failure is not None:
            return self.last_lsn + 1
        return await super().append(payload, kind, level)


class LosesWaiters(WriteAheadLog):
    """Forgets the last of a large batch."""

    def _tell(self, batch: list[QueuedWrite], lsn: int) -> None:
        super()._tell(batch[:-1] if len(batch) > 2 else batch, lsn)


LOG_BUGS: dict[str, type[WriteAheadLog]] = {
    "answer-backwards": AnswersBackwards,
    "forgive-the-disk": ForgivesTheDisk,
    "lose-waiters": LosesWaiters,
}


def plant(log: WriteAheadLog, bug: str) -> None:
    """Make a log a wrong one."""
    if bug in LOG_BUGS:
        log.__class__ = LOG_BUGS[bug]
    elif bug == "number-again":
        log._writer._next_lsn = max(1, log._writer._next_lsn - 2)


def applied(rows: Sequence[Any], bug: str) -> Sequence[Any]:
    """The records of a replay as a careless node applies them."""
    return [row for row in rows for _ in range(2)] if bug == "replay-twice" else rows

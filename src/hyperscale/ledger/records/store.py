"""The records on disk: a write-ahead log of what the replica did, and checkpoints of the state.

Writes and captures of the state pass through one queue, in order. So a checkpoint holds exactly
what the log held up to its LSN: nothing of it is replayed twice, and nothing after it is missing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.checkpoints import Checkpoints, restore
from hyperscale.ledger.records.entries import Entry, EntryLog
from hyperscale.ledger.records.replica import DiskWrite, NewcomerMark, Promise, Write
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.snapshots import Captured, Snapshot, decode
from hyperscale.ledger.unreadable import NEWER_HINT, UnreadableRecord
from hyperscale.ledger.wal import LogFailed, WriteAheadLog
from hyperscale.ledger.wal.record import Record as WalRecord
from hyperscale.ledger.wal.repair import REPAIRED_MARK
from hyperscale.ledger.wal.writer import Stats
from hyperscale.runtime.host import Host

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DiskWrite).decode


class Found:
    """What a start finds: the checkpoint, and the log as the writes after it left it."""

    def __init__(self) -> None:
        self.term = 0
        self.commit_index = 0
        self.base_index = 0
        self.base_term = 0
        self.entries: list[Entry] = []
        self.jobs: list[msgspec.Raw] = []
        self.newcomer = False

    def load(self, state: bytes) -> None:
        snapshot: Snapshot = decode(state)
        self.term = snapshot.term
        self.commit_index = snapshot.commit_index
        self.base_index, self.base_term = snapshot.index, snapshot.index_term
        self.entries = list(snapshot.tail)
        self.jobs = snapshot.jobs
        self.newcomer = snapshot.newcomer

    def replay(self, records: Sequence[WalRecord]) -> None:
        for record in records:
            try:
                write = _decode(record.payload)
            except msgspec.DecodeError as error:
                raise UnreadableRecord(
                    f"record {record.lsn} of the job records cannot be read: {error}.", NEWER_HINT
                ) from None
            match write:
                case Promise(term=term):
                    self.term = max(self.term, term)
                case Write(entry=entry, commit_index=commit_index):
                    self._put(record.lsn, entry)
                    self.commit_index = max(self.commit_index, commit_index)
                case NewcomerMark(newcomer=newcomer):
                    self.newcomer = newcomer

    def log(self) -> EntryLog:
        return EntryLog(self.base_index, self.base_term, self.entries)

    def _put(self, lsn: int, entry: Entry) -> None:
        at = entry.index - self.base_index - 1
        if not self.commit_index < entry.index <= self.base_index + len(self.entries) + 1:
            raise UnreadableRecord(
                f"record {lsn} of the job records does not follow what is before it.",
                "A checkpoint is missing or from elsewhere: empty the directory and start again;"
                " the other managers bring it up to date.",
            )
        del self.entries[at:]
        self.entries.append(entry)


@dataclass(slots=True)
class _Writes:
    payloads: list[bytes]
    write: int


@dataclass(slots=True)
class _Mark:
    captured: Captured
    number: int
    first: bool
    """Nothing is written behind it before it is saved."""
    saved: asyncio.Future[bool]


class Store:
    def __init__(self, host: Host, directory: str, settings: RecordsSettings) -> None:
        self._host = host
        self._directory = f"{directory}/wal"
        self._settings = settings
        self._checkpoints = Checkpoints(host, f"{directory}/checkpoints")
        self._queue: deque[_Writes | _Mark] = deque()
        self._more = asyncio.Event()
        self._saving = asyncio.Lock()
        self._marks = self._newest_saved = 0
        self._log: WriteAheadLog | None = None
        self._closing = False
        self._repaired = False
        self._ended = asyncio.Event()
        self.failure: HyperscaleError | None = None
        """Why nothing can be written any more."""
        self.checkpoints_failed = 0
        self.on_written: Callable[[int], None] = lambda write: None
        self.on_failed: Callable[[], None] = lambda: None

    async def open(self) -> Found:
        found = Found()
        restored = await restore(
            self._host,
            self._directory,
            self._checkpoints,
            found.load,
            found.replay,
            self._settings.wal,
        )
        self._log = restored.log
        self._repaired = REPAIRED_MARK in await self._host.disk.list(self._directory)
        nothing = restored.checkpoint is None and not restored.replayed
        if nothing or self._repaired or restored.log.recovered.case == "empty":
            found.newcomer = True
        self._host.tasks.spawn(f"records {self._directory}", self._run())
        return found

    def put(self, writes: Sequence[DiskWrite], write: int) -> None:
        """Write these, the last of which has this number; `on_written` tells when it is done."""
        if writes and self.failure is None:
            self._queue.append(_Writes([_encode(one) for one in writes], write))
            self._more.set()

    def save(self, captured: Captured, first: bool = False) -> asyncio.Future[bool]:
        """Checkpoint a state that holds exactly what was put before; whether it is on stable
        storage. Not to get an ordinary checkpoint is no failure: the log still has everything."""
        saved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self.failure is not None or self._closing:
            saved.set_result(False)
            return saved
        self._marks += 1
        self._queue.append(_Mark(captured, self._marks, first, saved))
        self._more.set()
        return saved

    @property
    def stats(self) -> Stats:
        return Stats() if self._log is None else self._log.stats

    @property
    def log_bytes(self) -> int:
        return 0 if self._log is None else self._log.size_bytes

    async def close(self) -> None:
        """Write what was put, and close the log."""
        if self._log is None:
            return
        self._closing = True
        self._more.set()
        await self._ended.wait()

    async def _run(self) -> None:
        assert self._log is not None
        try:
            while await self._wait():
                await self._step(self._log)
            await self._log.close()
        except HyperscaleError as error:
            self._fail(error)
        except OSError as error:
            self._fail(LogFailed(self._directory, error))
        finally:
            self._settle()
            self._ended.set()

    async def _wait(self) -> bool:
        while not self._queue:
            if self._closing:
                return False
            self._more.clear()
            await self._more.wait()
        return True

    async def _step(self, log: WriteAheadLog) -> None:
        payloads: list[bytes] = []
        write = 0
        while self._queue and isinstance(self._queue[0], _Writes):
            writes = self._queue.popleft()
            assert isinstance(writes, _Writes)
            payloads += writes.payloads
            write = writes.write
        if payloads:
            await log.append_many(payloads)
            if self._repaired:  # the first thing written says so by itself
                await self._host.disk.remove(f"{self._directory}/{REPAIRED_MARK}")
                await self._host.disk.sync_directory(self._directory)
                self._repaired = False
            self.on_written(write)
            return
        mark = self._queue.popleft()
        assert isinstance(mark, _Mark)
        if mark.first:
            await self._save(log, log.last_lsn, mark)
        else:
            save = self._save_aside(log, log.last_lsn, mark)
            self._host.tasks.spawn(f"checkpoint {self._directory}", save)

    async def _save_aside(self, log: WriteAheadLog, lsn: int, mark: _Mark) -> None:
        try:
            await self._save(log, lsn, mark)
        except OSError:
            self.checkpoints_failed += 1

    async def _save(self, log: WriteAheadLog, lsn: int, mark: _Mark) -> None:
        saved = False
        try:
            async with self._saving:
                if mark.number < self._newest_saved:
                    return  # with the same LSN it would take the newer one's place
                await self._checkpoints.save(lsn, await mark.captured.encode())
                self._newest_saved, saved = mark.number, True
                await log.compact(self._checkpoints.safe_lsn)
        finally:
            if not mark.saved.done():
                mark.saved.set_result(saved)

    def _fail(self, error: HyperscaleError) -> None:
        if self.failure is None:
            self.failure = error
            self._closing = True
            self._settle()
            self._more.set()
            self.on_failed()

    def _settle(self) -> None:
        """Nobody is left waiting for a checkpoint that will not come."""
        for item in self._queue:
            if isinstance(item, _Mark) and not item.saved.done():
                item.saved.set_result(False)
        self._queue.clear()

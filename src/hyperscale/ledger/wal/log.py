"""The log: many callers, one writer.

A caller hands over bytes and awaits the LSN. One task takes what has gathered, appends it with one
write and one sync on the thread that owns the file, and then tells every caller. What arrives
meanwhile is the next batch, so a busy log syncs once for hundreds of records and an idle one
answers after a single sync.

A failed write or sync ends the log: everyone who waits gets the error, and nothing is accepted
any more. States: open -> closing -> closed, or -> failed from the first two.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.wal.errors import LogClosed, LogFailed, LogFull, RecordTooLarge
from hyperscale.ledger.wal.inbox import Entry, Inbox
from hyperscale.ledger.wal.inspection import Deliver
from hyperscale.ledger.wal.opening import Opened, Recovered, open_directory
from hyperscale.ledger.wal.reader import Reader
from hyperscale.ledger.wal.record import (
    COVERED_FROM,
    KIND_CLOSE,
    KIND_PLAIN,
    Record,
    checksum_of_last,
    encode_batch,
)
from hyperscale.ledger.wal.segment import Header, Segment, create, join, name_of, seed_of
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import File, Host, Task


@dataclass(slots=True)
class Stats:
    records: int = 0
    batches: int = 0
    bytes: int = 0
    batch_records_max: int = 0
    commit_s_max: float = 0.0

    @property
    def batch_records_mean(self) -> float:
        return self.records / self.batches if self.batches else 0.0


class WriteAheadLog:
    """Made by `open`. Its directory belongs to it alone."""

    def __init__(
        self, host: Host, directory: str, settings: WalSettings, opened: Opened
    ) -> None:
        self._host = host
        self._directory = directory
        self._settings = settings
        self._segments = opened.segments
        self._file: File = opened.file
        self._next_lsn = opened.next_lsn
        self._inbox = Inbox(settings)
        self._failure: HyperscaleError | None = None
        self._closing = False
        self._compacting = asyncio.Lock()
        self._reader = Reader(host.disk, settings, opened.segments)
        self._recovered = opened.recovered
        self.stats = Stats()
        self._writer: Task = host.tasks.spawn(f"log {directory}", self._write())

    @classmethod
    async def open(
        cls,
        host: Host,
        directory: str,
        settings: WalSettings | None = None,
        *,
        after_lsn: int = 0,
        deliver: Deliver | None = None,
    ) -> WriteAheadLog:
        """Recover the log in a directory of the host's disk, or begin one.

        Every record is checked. Those after `after_lsn` (the checkpoint's) go to `deliver`, some
        at a time and in order; when this raises, what was delivered must be thrown away. Raises
        LogDamaged, LogCompacted when records after `after_lsn` are gone, LogFailed.
        """
        settings = settings or WalSettings()
        try:
            opened = await open_directory(
                host.disk, host.clock, directory, settings, after_lsn, deliver
            )
        except OSError as error:
            raise LogFailed(directory, error) from error
        return cls(host, directory, settings, opened)

    # -- writing ------------------------------------------------------------------------------

    async def append(self, payload: bytes, kind: int = KIND_PLAIN, level: int = 0) -> int:
        """Return the record's LSN when it is on stable storage.

        Waits while the queue is full. A caller cancelled before the writer took the record leaves
        nothing behind; after that the record is written like any other. Raises LogFailed (the
        record may or may not be there after a restart), LogClosed, RecordTooLarge.
        """
        entry = self._entry((payload,), kind, level)
        self._inbox.put(entry)
        return await self._result(entry)

    async def append_many(
        self, payloads: Sequence[bytes], kind: int = KIND_PLAIN, level: int = 0
    ) -> range:
        """As `append`, for records that follow each other without a stranger between them. They
        are not atomic: a crash may leave the first few of those that were not acknowledged."""
        entries = [self._entry(group, kind, level) for group in self._groups(payloads)]
        if not entries:
            return range(0)
        for entry in entries:
            self._inbox.put(entry)
        first = -1
        try:
            for entry in entries:
                lsn = await self._result(entry)
                first = lsn if first < 0 else first
        except BaseException:
            for entry in entries:
                entry.done.cancel()
                self._inbox.withdraw(entry)
            raise
        return range(first, first + len(payloads))

    def append_nowait(
        self, payload: bytes, kind: int = KIND_PLAIN, level: int = 0
    ) -> asyncio.Future[int]:
        """Hand a record over without waiting; the future tells its LSN when it is durable.
        Raises LogFull, and then nothing was accepted."""
        entry = self._entry((payload,), kind, level)
        if not self._inbox.offer(entry):
            raise LogFull(f"the queue of the log in {self._directory or '.'} is full")
        return entry.done

    async def flush(self) -> None:
        """Return when everything accepted before this call is on stable storage."""
        entry = self._entry((), KIND_PLAIN, 0)
        self._inbox.put(entry)
        await self._result(entry)

    async def close(self) -> None:
        """Accept no more, write what was accepted, mark the log as closed, release the file.
        Raises LogFailed when that did not succeed and nobody had been told before."""
        told = self._failure is not None
        self._closing = True
        self._inbox.close()
        await asyncio.shield(_ended(self._writer))
        if self._failure is not None and not told and not isinstance(self._failure, LogClosed):
            raise self._failure

    # -- reading ------------------------------------------------------------------------------

    def read(self, from_lsn: int = 0, to_lsn: int | None = None) -> AsyncIterator[Record]:
        """Durable records from one LSN to another, both included; to the end as it is now when
        `to_lsn` is None. 0 is the oldest there is. Raises LogCompacted, LogDamaged."""
        return self._reader.read(from_lsn, self.last_lsn if to_lsn is None else to_lsn)

    async def follow(self, from_lsn: int = 0) -> AsyncIterator[Record]:
        """Durable records from an LSN on, and then each one as it becomes durable. Ends when the
        log is closed, raises LogFailed when it fails."""
        while True:
            advanced = self._reader.advanced
            ended, last_lsn = self._writer.done(), self.last_lsn
            async for record in self._reader.read(from_lsn, last_lsn):
                yield record
                from_lsn = record.lsn + 1
            if ended:
                break
            await advanced.wait()
        if self._failure is not None:
            raise self._failure

    async def compact(self, safe_lsn: int) -> int:
        """Remove whole segments, oldest first, that hold nothing after `safe_lsn`; how many. The
        newest always stays. Each removal is durable before the next: a gap is never a crash's."""
        removed = 0
        async with self._compacting:
            while len(self._segments) > 1 and self._segments[0].last_lsn <= safe_lsn:
                segment = self._segments.pop(0)
                await self._host.disk.remove(segment.path)
                await self._host.disk.sync_directory(self._directory)
                removed += 1
        return removed

    # -- facts --------------------------------------------------------------------------------

    @property
    def last_lsn(self) -> int:
        """Of the newest durable record; the one before the first for an empty log."""
        return self._segments[-1].last_lsn

    @property
    def first_lsn(self) -> int:
        """From where on records can be read."""
        return self._segments[0].header.previous_last_lsn + 1

    @property
    def size_bytes(self) -> int:
        return sum(segment.end for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def recovered(self) -> Recovered:
        return self._recovered

    @property
    def failure(self) -> HyperscaleError | None:
        """Why nothing is accepted any more; None while all is well."""
        return self._failure

    # -- the writer ---------------------------------------------------------------------------

    async def _write(self) -> None:
        try:
            while await self._inbox.wait():
                await self._gather()
                await self._commit(self._inbox.take())
            await self._mark_closed()
        except OSError as error:
            self._fail(LogFailed(self._directory, error))
        except BaseException:
            self._fail(LogClosed(f"the log in {self._directory or '.'} was stopped"))
            raise
        finally:
            with contextlib.suppress(OSError):
                await self._file.close()
            self._reader.wake()

    async def _gather(self) -> None:
        """Let callers that are about to append do so: as long as each turn of the event loop
        brings more, and no longer than the batch may wait."""
        clock, inbox = self._host.clock, self._inbox
        deadline = clock.now() + self._settings.batch_wait_us / 1e6
        seen = 0
        while inbox.count > seen and not inbox.batch_is_full() and clock.now() < deadline:
            seen = inbox.count
            await clock.sleep(0)

    async def _commit(self, batch: list[Entry]) -> None:
        size = sum(entry.size for entry in batch)
        try:
            if size:
                await self._append(batch, size)
        except BaseException as error:
            cause = LogFailed(self._directory, error)
            self._fail(cause if isinstance(error, OSError) else self._stopped(), batch)
            raise
        lsn = self._next_lsn
        for entry in reversed(batch):
            lsn -= len(entry.payloads)
            if not entry.done.done():
                entry.done.set_result(lsn)
        self._reader.wake()

    async def _append(self, batch: list[Entry], size: int) -> None:
        segment = self._segments[-1]
        if segment.end + size > self._settings.segment_bytes_max and not segment.empty:
            segment = await self._rotate(segment)
        began = self._host.clock.now()
        records = self._records(batch)
        data = encode_batch(records, segment.seed)
        await self._file.append_and_sync(data)
        segment.mark(records[0].lsn, segment.end, self._settings.read_bytes)
        segment.end += len(data)
        segment.last_lsn = records[-1].lsn
        segment.last_crc = checksum_of_last(data, records[-1])
        self._next_lsn = records[-1].lsn + 1
        self._count(records, data, self._host.clock.now() - began)

    def _records(self, batch: list[Entry]) -> list[Record]:
        stamp_us = int(self._host.clock.wall() * 1e6)
        lsn, records = self._next_lsn, []
        for entry in batch:
            for payload in entry.payloads:
                records.append(Record(lsn, payload, entry.kind, entry.level, stamp_us))
                lsn += 1
        return records

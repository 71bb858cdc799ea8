"""The log: many callers, one writer.

A caller hands over bytes and awaits the LSN. One task takes what has gathered, appends it with one
write and one sync on the thread that owns the file, and then tells every caller. What arrives
meanwhile is the next batch, so a busy log syncs once for hundreds of records and an idle one
answers after a single sync.

A failed write or sync ends the log: everyone who waits gets the error, and nothing is accepted
any more. States: open -> closing -> closed, and -> failed from the first two.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.wal.errors import LogClosed, LogFailed, LogFull, RecordTooLarge
from hyperscale.ledger.wal.inbox import Inbox, QueuedWrite
from hyperscale.ledger.wal.inspection import Deliver
from hyperscale.ledger.wal.opening import Opened, Recovered, open_directory
from hyperscale.ledger.wal.reader import Reader
from hyperscale.ledger.wal.record import HEADER_BYTES, KIND_CLOSE, KIND_PLAIN, Record
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.ledger.wal.writer import Stats, Writer
from hyperscale.runtime.host import Host


class WriteAheadLog:
    """Made by `open`. Its directory belongs to it alone."""

    def __init__(self, host: Host, directory: str, settings: WalSettings, opened: Opened) -> None:
        self._host = host
        self._directory = directory
        self._settings = settings
        self._inbox = Inbox(settings)
        self._writer = Writer(host, directory, settings, opened)
        self._segments = self._writer.segments
        self._reader = Reader(host.disk, settings, self._segments)
        self._recovered = opened.recovered
        self._cause: OSError | None = None
        self._stopped = False
        self._closing = False
        self._ended = asyncio.Event()
        self._advanced = asyncio.Event()
        self._compacting = asyncio.Lock()
        host.tasks.spawn(f"log {directory}", self._write())

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
        try:
            return await entry.done
        except asyncio.CancelledError:
            self._abandon(entry)
            raise

    async def append_many(
        self, payloads: Sequence[bytes], kind: int = KIND_PLAIN, level: int = 0
    ) -> range:
        """As `append`, for records that follow each other without a stranger between them; their
        LSNs. They are not atomic: of those not acknowledged a crash may leave the first few."""
        entries = [self._entry(group, kind, level) for group in self._groups(payloads)]
        if not entries:
            return range(0)
        for entry in entries:
            self._inbox.put(entry)
        try:
            firsts = [await entry.done for entry in entries]
        except BaseException:
            for entry in entries:
                self._abandon(entry)
            raise
        return range(firsts[0], firsts[0] + len(payloads))

    def append_nowait(
        self, payload: bytes, kind: int = KIND_PLAIN, level: int = 0
    ) -> asyncio.Future[int]:
        """Hand a record over without waiting; the future tells its LSN when it is durable.
        Raises LogFull, and then nothing was accepted."""
        entry = self._entry((payload,), kind, level)
        if not self._inbox.offer(entry):
            raise LogFull(
                f"the queue of the log in {self._directory or '.'} is full",
                "wait until the disk has caught up, or let `append` do the waiting",
            )
        return entry.done

    async def flush(self) -> None:
        """Return when everything handed over before this call is on stable storage."""
        entry = self._entry((), KIND_PLAIN, 0)
        self._inbox.put(entry)
        try:
            await entry.done
        except asyncio.CancelledError:
            self._abandon(entry)
            raise

    async def close(self) -> None:
        """Accept no more, write what was handed over, leave the mark of a clean close, release
        the file. Raises LogFailed when that fails and nobody was told before."""
        told = self.failure
        self._closing = True
        self._inbox.close()
        await self._ended.wait()
        if told is None and self.failure is not None:
            raise self.failure

    # -- reading ------------------------------------------------------------------------------

    async def read(self, from_lsn: int = 0, to_lsn: int | None = None) -> AsyncIterator[Record]:
        """Durable records from one LSN to another, both included; to the end as it is now when
        `to_lsn` is None. 0 is the oldest there is. Raises LogCompacted, LogDamaged."""
        last_lsn = self.last_lsn if to_lsn is None else min(to_lsn, self.last_lsn)
        async for records in self._reader.read(from_lsn, last_lsn):
            for record in records:
                yield record

    async def follow(self, from_lsn: int = 0) -> AsyncIterator[Record]:
        """Durable records from an LSN on, and then each one as it becomes durable. Ends when the
        log is closed; raises LogFailed when it has failed, after the last durable record."""
        while True:
            advanced, ended, last_lsn = self._advanced, self._ended.is_set(), self.last_lsn
            async for records in self._reader.read(from_lsn, last_lsn):
                for record in records:
                    yield record
            from_lsn = max(from_lsn, last_lsn + 1)
            if ended:
                break
            await advanced.wait()
        if self.failure is not None:
            raise self.failure

    async def compact(self, safe_lsn: int) -> int:
        """Remove whole segments, oldest first, that hold nothing after `safe_lsn`; how many. The
        newest always stays. Each removal is durable before the next, so that a gap between two
        segments is never the work of a crash. Raises OSError; the segment that could not be removed
        is then the first to be tried again, because removing its successor would leave a gap."""
        removed = 0
        async with self._compacting:
            while len(self._segments) > 1 and self._segments[0].last_lsn <= safe_lsn:
                segment = self._segments.pop(0)
                try:
                    await self._remove(segment.path)
                except BaseException:
                    self._segments.insert(0, segment)
                    raise
                removed += 1
        return removed

    async def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # an earlier try got this far
            await self._host.disk.remove(path)
        await self._host.disk.sync_directory(self._directory)

    # -- facts --------------------------------------------------------------------------------

    @property
    def last_lsn(self) -> int:
        """Of the newest durable record; in an empty log, the number before the first."""
        return self._segments[-1].last_lsn

    @property
    def first_lsn(self) -> int:
        """From here on records can be read."""
        return self._segments[0].header.previous_last_lsn + 1

    @property
    def size_bytes(self) -> int:
        return sum(segment.end for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def recovered(self) -> Recovered:
        """What the start found."""
        return self._recovered

    @property
    def stats(self) -> Stats:
        return self._writer.stats

    @property
    def closed(self) -> bool:
        """It takes no more records, for whatever reason."""
        return self._closing

    @property
    def failure(self) -> HyperscaleError | None:
        """Why nothing is accepted any more; None while all is well."""
        return self._refusal() if self._cause is not None or self._stopped else None

    # -- inside -------------------------------------------------------------------------------

    async def _write(self) -> None:
        """The writer's task. Whatever ends it, nobody is left waiting."""
        batch: list[QueuedWrite] = []
        try:
            while await self._inbox.wait():
                await self._gather()
                batch = self._inbox.take()
                self._tell(batch, await self._writer.commit(batch))
                batch = []
            await self._writer.finish()
        except OSError as error:
            self._cause = error
        except BaseException:
            self._stopped = True
            raise
        finally:
            self._closing = True
            self._refuse([*batch, *self._inbox.empty()])
            try:
                await self._writer.release()
            finally:
                self._ended.set()
                self._advanced.set()

    async def _gather(self) -> None:
        """Let callers that are about to append do so: as long as each turn of the event loop
        brings more, and no longer than a batch may wait."""
        clock, inbox = self._host.clock, self._inbox
        deadline = clock.now() + self._settings.batch_wait_us / 1e6
        seen = 0
        while inbox.count > seen and not inbox.batch_is_full() and clock.now() < deadline:
            seen = inbox.count
            await clock.sleep(0)

    def _tell(self, batch: list[QueuedWrite], lsn: int) -> None:
        for entry in batch:
            if not entry.done.done():
                entry.done.set_result(lsn)
            lsn += len(entry.payloads)
        self._advanced.set()
        self._advanced = asyncio.Event()

    def _refuse(self, entries: list[QueuedWrite]) -> None:
        for entry in entries:
            if not entry.done.done():
                entry.done.set_exception(self._refusal())

    def _refusal(self) -> HyperscaleError:
        """A new one for everybody: an exception that is raised collects its raiser's frames."""
        where = self._directory or "."
        if self._cause is not None:
            return LogFailed(self._directory, self._cause)
        if self._stopped:
            return LogClosed(f"the log in {where} was stopped before it was closed")
        return LogClosed(f"the log in {where} is closed")

    def _abandon(self, entry: QueuedWrite) -> None:
        """Nobody waits for it any more: take it back if there is still time, and let an error
        that came meanwhile not be reported as one that nobody has seen."""
        self._inbox.withdraw(entry)
        if not entry.done.cancel() and not entry.done.cancelled():
            entry.done.exception()

    def _entry(self, payloads: Sequence[bytes], kind: int, level: int) -> QueuedWrite:
        if self._closing:
            raise self._refusal()
        assert KIND_CLOSE < kind < 256, f"{kind} is not a kind of record"
        assert 0 <= level < 256, f"{level} is not a level"
        for payload in payloads:
            if len(payload) > self._settings.payload_bytes_max:
                raise RecordTooLarge(
                    f"a record of {len(payload):,} bytes is more than the log takes",
                    f"the limit is {self._settings.payload_bytes_max:,} bytes; split it",
                )
        return QueuedWrite(payloads, kind, level)

    def _groups(self, payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """Parts that fit into a batch each; more than that would wait for the last for long."""
        settings, start, size = self._settings, 0, 0
        for index, payload in enumerate(payloads):
            size += len(payload) + HEADER_BYTES
            full = index - start == settings.batch_entries_max or size > settings.batch_bytes_max
            if full and index > start:
                yield payloads[start:index]
                start, size = index, len(payload) + HEADER_BYTES
        if start < len(payloads):
            yield payloads[start:]

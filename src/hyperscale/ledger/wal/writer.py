"""The one who writes: turns batches into bytes at the end of the newest segment.

It owns the open file and the numbering. Every method that touches the disk raises OSError when
that fails, after which the writer must not be used again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.wal.inbox import QueuedWrite
from hyperscale.ledger.wal.opening import Opened
from hyperscale.ledger.wal.record import KIND_CLOSE, Record, encode_batch, last_checksum
from hyperscale.ledger.wal.segment import HEADER_BYTES, Header, Segment, create, join, name_of
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Host
from hyperscale.runtime.latency import Latency


@dataclass(slots=True)
class Stats:
    """Since the log was opened."""

    records: int = 0
    batches: int = 0
    bytes: int = 0
    batch_records_max: int = 0
    commits: Latency = field(default_factory=Latency)
    """Of each batch, written and synced."""
    commit_s_max: float = 0.0
    """The slowest write with its sync; above a second the disk is ill or overloaded."""

    @property
    def batch_records_mean(self) -> float:
        return self.records / self.batches if self.batches else 0.0


class Writer:
    def __init__(self, host: Host, directory: str, settings: WalSettings, opened: Opened) -> None:
        self._host = host
        self._directory = directory
        self._settings = settings
        self._file = opened.file
        self._next_lsn = opened.next_lsn
        self.segments = opened.segments
        self.stats = Stats()

    async def commit(self, batch: Sequence[QueuedWrite]) -> int:
        """Make a batch durable; the LSN of its first record."""
        size = sum(entry.size for entry in batch)
        first_lsn = self._next_lsn
        if not size:
            return first_lsn
        segment = self.segments[-1]
        if segment.end + size > self._settings.segment_bytes_max and not segment.empty:
            segment = await self._rotate(segment)
        records = self._records(batch)
        invariant(records[0].lsn == first_lsn, "records follow each other")
        began = self._host.clock.now()
        data = await self._append(segment, records)
        stats = self.stats
        took_s = self._host.clock.now() - began
        stats.commits.add(took_s)
        stats.commit_s_max = max(stats.commit_s_max, took_s)
        stats.records += len(records)
        stats.batches += 1
        stats.bytes += len(data)
        stats.batch_records_max = max(stats.batch_records_max, len(records))
        segment.mark(first_lsn, segment.end, self._settings.read_bytes)
        segment.end += len(data)
        segment.last_lsn = records[-1].lsn
        segment.last_crc = last_checksum(data, len(records[-1].payload))
        self._next_lsn = segment.last_lsn + 1
        invariant(self._next_lsn == first_lsn + len(records), "every record has its number")
        return first_lsn

    async def finish(self) -> None:
        """Leave the mark of a clean close, unless there is nothing in doubt before it."""
        segment = self.segments[-1]
        if not segment.fresh:
            mark = Record(self._next_lsn, b"", KIND_CLOSE, 0, self._stamp())
            await self._append(segment, [mark])

    async def release(self) -> None:
        with contextlib.suppress(OSError):
            await self._file.close()

    async def _append(self, segment: Segment, records: Sequence[Record]) -> bytes:
        data = encode_batch(records, segment.seed)
        await self._file.append_and_sync(data)
        return data

    async def _rotate(self, old: Segment) -> Segment:
        """Everything in the old segment was synced batch by batch; its end is known for good."""
        header = Header(
            number=old.header.number + 1,
            carried_bytes=0,
            cut_bytes=0,
            previous_crc=old.last_crc,
            first_lsn=self._next_lsn,
            resume_lsn=self._next_lsn,
            previous_last_lsn=old.last_lsn,
            previous_end=old.end,
            stamp_us=self._stamp(),
        )
        file = await create(self._host.disk, self._directory, header, b"")
        await self.release()
        self._file = file
        path = join(self._directory, name_of(header.number))
        new = Segment(path, header, HEADER_BYTES, old.last_lsn, old.last_crc)
        self.segments.append(new)
        return new

    def _records(self, batch: Sequence[QueuedWrite]) -> list[Record]:
        stamp_us, lsn = self._stamp(), self._next_lsn
        records: list[Record] = []
        for entry in batch:
            for payload in entry.payloads:
                records.append(Record(lsn, payload, entry.kind, entry.level, stamp_us))
                lsn += 1
        return records

    def _stamp(self) -> int:
        return int(self._host.clock.wall() * 1e6)

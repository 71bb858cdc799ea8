"""Records by LSN from a log that is being written.

Nothing is shown that is not durable: a reader goes up to the end the writer has confirmed, never
to the end of the file. The marks of each segment, left by the recovery scan and by the writer,
tell where to start; they live in memory, so there is no index on disk that could be stale.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from hyperscale.ledger.wal.errors import LogCompacted, LogDamaged
from hyperscale.ledger.wal.record import Flaw, Record, Scanner
from hyperscale.ledger.wal.segment import Segment
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Disk


class Reader:
    def __init__(self, disk: Disk, settings: WalSettings, segments: Sequence[Segment]) -> None:
        """`segments` is the writer's own list: it grows and is compacted under a running read."""
        self._disk = disk
        self._settings = settings
        self._segments = segments

    async def read(self, from_lsn: int, to_lsn: int) -> AsyncIterator[list[Record]]:
        """Some records at a time, in order; `from_lsn` 0 is the oldest there is."""
        from_lsn = from_lsn or self._first_lsn()
        self._check(from_lsn)
        while from_lsn <= to_lsn:
            segment = self._holding(from_lsn)
            if segment is None:
                return
            last_lsn = min(to_lsn, segment.last_lsn)
            async for records in self._in_segment(segment, from_lsn, last_lsn):
                yield records
            from_lsn = last_lsn + 1

    def _first_lsn(self) -> int:
        return self._segments[0].header.previous_last_lsn + 1

    def _check(self, from_lsn: int) -> None:
        if from_lsn < self._first_lsn():
            raise LogCompacted(
                f"records up to LSN {self._first_lsn() - 1} were compacted, and {from_lsn} is"
                " asked for",
                "start from a checkpoint",
            )

    def _holding(self, lsn: int) -> Segment | None:
        """The first segment that ends at or after an LSN. Numbers may be missing between two."""
        for segment in self._segments:
            if segment.last_lsn >= lsn:
                return segment
        return None

    async def _in_segment(
        self, segment: Segment, from_lsn: int, to_lsn: int
    ) -> AsyncIterator[list[Record]]:
        header, end = segment.header, segment.end
        start_lsn, start = segment.start_for(from_lsn)
        scanner = Scanner(segment.seed, start, start_lsn, header.carried_end, header.resume_lsn)
        wanted, rest, read_to = self._settings.read_bytes, b"", start
        while read_to < end:
            data = await self._bite(segment, read_to, min(wanted, end - read_to), from_lsn)
            read_to += len(data)
            data = rest + data if rest else data
            records: list[Record] = []
            taken = scanner.feed(data, 0, records)
            if scanner.flaw not in (Flaw.NONE, Flaw.SHORT) or not data:
                raise LogDamaged(segment.path, scanner.at, scanner.flaw.value, scanner.last_lsn)
            rest = data[taken:]
            wanted = max(self._settings.read_bytes, len(rest))
            if records and (records[0].lsn < from_lsn or records[-1].lsn > to_lsn):
                records = [record for record in records if from_lsn <= record.lsn <= to_lsn]
            if records:
                yield records
            if scanner.last_lsn >= to_lsn:
                return
        raise LogDamaged(segment.path, scanner.at, Flaw.SHORT.value, scanner.last_lsn)

    async def _bite(self, segment: Segment, offset: int, limit: int, from_lsn: int) -> bytes:
        try:
            return await self._disk.read(segment.path, offset, limit)
        except FileNotFoundError:
            self._check(from_lsn)
            raise

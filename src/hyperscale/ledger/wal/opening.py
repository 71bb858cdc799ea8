"""Carries out what `recovery` decided, and leaves a log that can be appended to.

Nothing is taken away before what replaces it is durable, so a crash in here at any point leads to
the same end the next time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.ledger.wal.errors import LogCompacted, LogDamaged
from hyperscale.ledger.wal.inspection import Deliver, Inspected, Inspection, inspect, scanner_for
from hyperscale.ledger.wal.record import HEADER_BYTES as RECORD_BYTES
from hyperscale.ledger.wal.record import KIND_CLOSE, Record, Scanner, encode_batch
from hyperscale.ledger.wal.recovery import Decision
from hyperscale.ledger.wal.segment import (
    HEADER_BYTES,
    Header,
    Segment,
    create,
    first_header,
    join,
    name_of,
    seed_of,
)
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Clock, Disk, File


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a start found, for the log and for whoever has to look after it."""

    records: int
    last_lsn: int
    next_lsn: int
    case: str
    """The label of the last segment's case in `recovery.CASES`; "empty" for a new log."""
    cut_path: str = ""
    cut_bytes: int = 0
    """A torn tail that was removed; what it held was never acknowledged, unless it rotted. Told
    at every start until a record is appended."""

    def __str__(self) -> str:
        cut = f", {self.cut_bytes:,} torn bytes cut from {self.cut_path}" if self.cut_bytes else ""
        return f"{self.records:,} records up to LSN {self.last_lsn} ({self.case}){cut}"


@dataclass(slots=True)
class Opened:
    segments: list[Segment]
    file: File
    next_lsn: int
    recovered: Recovered


async def open_directory(
    disk: Disk,
    clock: Clock,
    directory: str,
    settings: WalSettings,
    after_lsn: int = 0,
    deliver: Deliver | None = None,
) -> Opened:
    """Recover. Raises LogDamaged, LogCompacted, or OSError when the disk fails."""
    await _make(disk, directory)
    found = await inspect(disk, directory, settings, after_lsn, deliver)
    if (damage := found.damage()) is not None:
        raise damage
    _reaches_back_to(found, directory, after_lsn)
    for path in found.unfinished:
        await disk.remove(path)
    opening = _Opening(disk, clock, directory, found)
    if not found.segments:
        return await opening.start(after_lsn + 1)
    await opening.trim()
    return await opening.resume(after_lsn)


async def _make(disk: Disk, directory: str) -> None:
    if not directory:
        return
    await disk.make_directory(directory)
    parts = directory.split("/")
    for depth in range(len(parts)):
        await disk.sync_directory("/".join(parts[:depth]))


def _reaches_back_to(found: Inspection, directory: str, after_lsn: int) -> None:
    first = found.segments[0].header if found.segments else None
    if first is not None and first.previous_last_lsn > after_lsn:
        raise LogCompacted(
            f"the log in {directory or '.'} begins after LSN {first.previous_last_lsn}, and"
            f" records from {after_lsn + 1} on are asked for",
            "restore the newest checkpoint, or the segments that were removed",
        )


class _Opening:
    def __init__(self, disk: Disk, clock: Clock, directory: str, found: Inspection) -> None:
        self._disk = disk
        self._clock = clock
        self._directory = directory
        self._found = found

    async def start(self, first_lsn: int) -> Opened:
        header = first_header(first_lsn, self._stamp())
        file = await create(self._disk, self._directory, header, b"")
        segment = Segment(self._path(1), header, HEADER_BYTES, first_lsn - 1, 0)
        recovered = Recovered(0, first_lsn - 1, first_lsn, "empty")
        return Opened([segment], file, first_lsn, recovered)

    async def trim(self) -> None:
        """Remove what a crash between two steps of an earlier opening left behind."""
        for seen, successor in zip(self._found.segments, self._found.segments[1:], strict=False):
            if seen.case.decision is Decision.TRIM:
                assert successor.header is not None
                await self._truncate(seen.path, successor.header.previous_end)

    async def resume(self, after_lsn: int) -> Opened:
        last = self._found.segments[-1]
        assert last.header is not None
        assert last.scanner is not None
        segments = [_sealed(seen) for seen in self._found.segments[:-1]]
        scanner = last.scanner
        if last.case.decision is Decision.CONTINUE and scanner.next_lsn > after_lsn:
            # The start that made it may have died before its name was durable.
            await self._disk.sync_directory(self._directory)
            segments.append(last.as_segment(scanner.at, scanner.last_lsn, scanner.last_crc))
            file = await self._disk.open(last.path)
            return self._opened(segments, file, scanner.next_lsn)
        return await self._succeed(segments, last, last.header, scanner, after_lsn)

    async def _succeed(
        self,
        segments: list[Segment],
        last: Inspected,
        before: Header,
        scanner: Scanner,
        after_lsn: int,
    ) -> Opened:
        """A new segment takes over from the point up to which the last one is beyond doubt."""
        end, end_lsn, end_crc = scanner.batch_at, scanner.before_lsn, scanner.before_crc
        if end < before.carried_end:
            end, end_lsn, end_crc = scanner.at, scanner.last_lsn, scanner.last_crc
        records = await self._reread(last, scanner, end)
        cut_bytes = last.size - scanner.at
        last_lsn = records[-1].lsn if records else end_lsn
        next_lsn = scanner.next_lsn - scanner.closed + -(-cut_bytes // RECORD_BYTES)
        next_lsn = max(next_lsn, after_lsn + 1)
        first_lsn = records[0].lsn if records else next_lsn
        header = Header(
            number=before.number + 1,
            carried_bytes=sum(RECORD_BYTES + len(record.payload) for record in records),
            cut_bytes=cut_bytes,
            previous_crc=end_crc,
            first_lsn=first_lsn,
            resume_lsn=next_lsn,
            previous_last_lsn=end_lsn,
            previous_end=end,
            stamp_us=self._stamp(),
        )
        carried = encode_batch(records, seed_of(header))
        file = await create(self._disk, self._directory, header, carried)
        try:
            await self._truncate(last.path, end)
        except BaseException:
            await file.close()
            raise
        segments.append(last.as_segment(end, end_lsn, end_crc))
        scanner = scanner_for(header)
        scanner.feed(carried)
        new = Segment(
            self._path(header.number),
            header,
            header.carried_end,
            last_lsn,
            scanner.last_crc,
        )
        return self._opened([*segments, new], file, next_lsn)

    async def _reread(self, last: Inspected, scanner: Scanner, start: int) -> list[Record]:
        """The records in doubt, without the mark of a close."""
        if start == scanner.at:
            return []
        assert last.header is not None
        data = await self._disk.read(last.path, start, scanner.at - start)
        again = Scanner(seed_of(last.header), start, scanner.last_lsn - scanner.position)
        records: list[Record] = []
        again.feed(data, 0, records)
        if again.at != scanner.at:
            raise LogDamaged(last.path, again.at, again.flaw.value, again.last_lsn)
        return [record for record in records if record.kind != KIND_CLOSE]

    def _opened(self, segments: list[Segment], file: File, next_lsn: int) -> Opened:
        """A cut is told from the header that notes it: the start that made it may have died
        before it could tell."""
        header = segments[-1].header
        recovered = Recovered(
            records=self._found.records,
            last_lsn=segments[-1].last_lsn,
            next_lsn=next_lsn,
            case=self._found.segments[-1].case.label,
            cut_path=self._path(header.number - 1) if header.cut_bytes else "",
            cut_bytes=header.cut_bytes,
        )
        return Opened(segments, file, next_lsn, recovered)

    async def _truncate(self, path: str, size: int) -> None:
        file = await self._disk.open(path)
        try:
            await file.truncate(size)
            await file.sync()
        finally:
            await file.close()

    def _path(self, number: int) -> str:
        return join(self._directory, name_of(number))

    def _stamp(self) -> int:
        return int(self._clock.wall() * 1e6)


def _sealed(seen: Inspected) -> Segment:
    assert seen.scanner is not None
    return seen.as_segment(seen.scanner.at, seen.scanner.last_lsn, seen.scanner.last_crc)

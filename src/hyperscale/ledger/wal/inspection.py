"""Reads a log from the first byte to the last and finds out the facts that `recovery` decides on.

It changes nothing, so `wal verify` uses it too. Reading is the disk thread's work; checking is
done in bites of about a millisecond, between which the event loop has its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hyperscale.ledger.wal.errors import LogDamaged
from hyperscale.ledger.wal.record import KIND_CLOSE, Flaw, Record, Scanner, later_batch
from hyperscale.ledger.wal.recovery import Case, Decision, ScanFacts, decide
from hyperscale.ledger.wal.segment import (
    HEADER_BYTES,
    Header,
    Segment,
    decode_header,
    is_unfinished,
    join,
    name_of,
    number_of,
    seed_of,
)
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Disk

Deliver = Callable[[Sequence[Record]], None]
"""Takes records in order, some at a time; must not keep the event loop long."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """One segment: what it holds and what is decided about it."""

    path: str
    size: int
    header: Header | None
    facts: ScanFacts
    case: Case
    scanner: Scanner | None
    flaw_at: int
    what: str
    marks: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last_lsn(self) -> int:
        if self.scanner is None:
            return 0
        return self.scanner.before_lsn if self.scanner.closed else self.scanner.last_lsn

    @property
    def records(self) -> int:
        return self.scanner.records - self.scanner.closed if self.scanner else 0

    def as_segment(self, end: int, last_lsn: int, last_crc: int) -> Segment:
        assert self.header is not None
        marks = [mark for mark in self.marks if mark[1] < end]
        return Segment(self.path, self.header, end, last_lsn, last_crc, marks)


@dataclass(slots=True)
class Inspection:
    segments: list[Inspected] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    """Segments that never got their name."""
    records: int = 0

    def damage(self) -> LogDamaged | None:
        """The first, if any."""
        good_lsn = 0
        for segment in self.segments:
            if segment.case.decision is Decision.REFUSE:
                good_lsn = max(good_lsn, segment.last_lsn)
                return LogDamaged(segment.path, segment.flaw_at, segment.what, good_lsn)
            good_lsn = segment.last_lsn
        return None


async def inspect(
    disk: Disk,
    directory: str,
    settings: WalSettings,
    after_lsn: int = 0,
    deliver: Deliver | None = None,
) -> Inspection:
    """Read everything; records after `after_lsn` go to `deliver` until damage is met."""
    names = await disk.list(directory)
    numbers = sorted(number for name in names if (number := number_of(name)) is not None)
    found = Inspection(unfinished=[join(directory, name) for name in names if is_unfinished(name)])
    paths = [join(directory, name_of(number)) for number in numbers]
    headers = [decode_header(await disk.read(path, 0, HEADER_BYTES)) for path in paths]
    previous: Inspected | None = None
    for index, (number, path) in enumerate(zip(numbers, paths, strict=True)):
        sealed = index + 1 < len(numbers)
        follows = sealed and numbers[index + 1] == number + 1
        successor = headers[index + 1] if follows else None
        reading = _Reading(disk, path, settings, after_lsn, deliver)
        seen = await reading.segment(number, headers[index], previous, sealed, successor)
        found.segments.append(seen)
        if seen.case.decision is Decision.REFUSE:
            deliver = None
        found.records += seen.records
        previous = seen
    return found


class _Reading:
    """One pass over one segment."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        settings: WalSettings,
        after_lsn: int,
        deliver: Deliver | None,
    ) -> None:
        self._disk = disk
        self._path = path
        self._settings = settings
        self._after_lsn = after_lsn
        self._deliver = deliver
        self._marks: list[tuple[int, int]] = []

    async def segment(
        self,
        number: int,
        header: Header | None,
        previous: Inspected | None,
        sealed: bool,
        successor: Header | None,
    ) -> Inspected:
        size = await self._disk.size(self._path)
        if header is None:
            return self._refused(size, None, sealed, "the segment's header cannot be read")
        if wrong := _unchained(number, header, previous):
            return self._refused(size, header, sealed, wrong)
        end = successor.previous_end if successor else size
        scanner = scanner_for(header)
        await self._scan(scanner, min(end, size))
        return await self._judge(header, scanner, size, sealed, successor)

    async def _judge(
        self,
        header: Header,
        scanner: Scanner,
        size: int,
        sealed: bool,
        successor: Header | None,
    ) -> Inspected:
        proof: int | None = None
        flaw_at = scanner.at
        what = scanner.flaw.value
        if sealed:
            # A successor that is missing or unreadable is refused itself; this one is not blamed.
            good = successor is None or (
                scanner.at == successor.previous_end
                and scanner.last_lsn == successor.previous_last_lsn
                and scanner.last_crc == successor.previous_crc
            )
            surplus = successor is not None and size > successor.previous_end
            if not good and scanner.flaw is Flaw.NONE:
                what = "records that the next segment counts on are missing"
        else:
            good = scanner.at >= header.carried_end
            surplus = size > scanner.at
            if good and surplus:
                rest = await self._disk.read(self._path, scanner.at, size - scanner.at)
                proof = later_batch(rest, seed_of(header), scanner.next_lsn)
                if proof is not None:
                    what += f", and byte {scanner.at + proof} proves that it was good once"
        facts = ScanFacts(
            sealed=sealed,
            header_good=True,
            chained=True,
            durable_part_good=good,
            surplus=surplus,
            later_batch=proof is not None,
            fresh=size == header.carried_end,
            closed=scanner.closed,
        )
        case = decide(facts)
        return Inspected(self._path, size, header, facts, case, scanner, flaw_at, what, self._marks)

    def _refused(self, size: int, header: Header | None, sealed: bool, what: str) -> Inspected:
        facts = ScanFacts(
            sealed=sealed,
            header_good=header is not None,
            chained=False,
            durable_part_good=False,
            surplus=False,
            later_batch=False,
            fresh=False,
            closed=False,
        )
        return Inspected(self._path, size, header, facts, decide(facts), None, 0, what)

    async def _scan(self, scanner: Scanner, end: int) -> None:
        """Feed the scanner up to `end`, or until it stops for good."""
        wanted, rest = self._settings.read_bytes, b""
        read_to = scanner.at
        while read_to < end:
            data = await self._disk.read(self._path, read_to, min(wanted, end - read_to))
            if not data:
                return
            read_to += len(data)
            data = rest + data if rest else data
            self._marks.append((scanner.next_lsn, scanner.at))
            records: list[Record] | None = None if self._deliver is None else []
            taken = scanner.feed(data, 0, records)
            self._hand_over(records)
            if scanner.flaw is Flaw.NONE:
                wanted, rest = self._settings.read_bytes, b""
            elif scanner.flaw is Flaw.SHORT:
                rest = data[taken:]
                wanted = max(self._settings.read_bytes, len(rest))
            else:
                return

    def _hand_over(self, records: list[Record] | None) -> None:
        if self._deliver is None or not records or records[-1].lsn <= self._after_lsn:
            return
        if records[0].lsn <= self._after_lsn:
            records = [record for record in records if record.lsn > self._after_lsn]
        if records[-1].kind == KIND_CLOSE:
            records.pop()
        if records:
            self._deliver(records)


def scanner_for(header: Header) -> Scanner:
    return Scanner(
        seed_of(header),
        HEADER_BYTES,
        header.first_lsn,
        header.carried_end,
        header.resume_lsn,
        header.previous_last_lsn,
        header.previous_crc,
    )


def _unchained(number: int, header: Header, previous: Inspected | None) -> str:
    """Why a header does not belong where it is; "" when it does."""
    if header.number != number:
        return f"it is segment {header.number} under the name of {number}"
    if previous is None or previous.header is None:
        return ""
    if header.number != previous.header.number + 1:
        return f"segment {previous.header.number + 1} is missing"
    return ""

"""Records as bytes: encoding, and scanning bytes that may be torn or rotten. No I/O.

A record is 32 bytes of header and its payload, little-endian:

| at | bytes | field |
|---|---|---|
| 0 | 4 | magic, with the version of the format |
| 4 | 4 | CRC-32 of every byte after this field, started from the CRC of the segment's header |
| 8 | 4 | length of the payload |
| 12 | 8 | LSN, one more than that of the record before |
| 20 | 8 | wall time in microseconds, a label for people |
| 28 | 2 | position in its batch |
| 30 | 1 | kind: 0 is the log's own, the rest belongs to whoever writes |
| 31 | 1 | durability level asked for, see `durability` |

The CRC's start binds a record to its segment: bytes of another file never pass. The position
tells which records were written by one sync: a batch is begun only after the one before it was
durable, so a readable later batch proves that unreadable bytes before it are damage, not a torn
write. The magic is where a scan may find its feet again after unreadable bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from struct import Struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"HsR\x01"
_HEADER = Struct("<4sIIQQHBB")
_COVERED = Struct("<IQQHBB")
_START = Struct("<4sI")
HEADER_BYTES = _HEADER.size
COVERED_FROM = _START.size
PAYLOAD_BYTES_MAX = 16 << 20
POSITION_MAX = (1 << 16) - 1

KIND_CLOSE = 0
"""The log was closed after the record before: written last, alone in its batch."""
KIND_PLAIN = 1

assert HEADER_BYTES == 32
assert _START.size + _COVERED.size == HEADER_BYTES


class Record(NamedTuple):
    lsn: int
    payload: bytes
    kind: int = KIND_PLAIN
    level: int = 0
    stamp_us: int = 0


class Flaw(Enum):
    """Why a scan stopped, in words for people."""

    NONE = "nothing is wrong"
    SHORT = "the record is cut off"
    NO_RECORD = "no record starts here"
    LENGTH = "the length of the record is impossible"
    CHECKSUM = "the checksum does not match"
    ORDER = "the record is out of order"


def encode_batch(records: Iterable[Record], seed: int) -> bytes:
    """The records of one sync, in order."""
    parts: list[bytes] = []
    add, covered_pack, start_pack = parts.append, _COVERED.pack, _START.pack
    for position, (lsn, payload, kind, level, stamp_us) in enumerate(records):
        covered = covered_pack(len(payload), lsn, stamp_us, position, kind, level)
        add(start_pack(MAGIC, crc32(payload, crc32(covered, seed))))
        add(covered)
        add(payload)
    return b"".join(parts)


def last_checksum(batch: bytes, payload_bytes: int) -> int:
    """The checksum of the last record of an encoded batch, whose payload is this long."""
    checksum: int = _START.unpack_from(batch, len(batch) - payload_bytes - HEADER_BYTES)[1]
    return checksum


class Scanner:
    """Walks the bytes of one segment in bites, checking everything.

    Between two bites it holds: the offset and LSN that come next, the last good record's LSN and
    checksum, and where the last batch began with what came before it.
    """

    __slots__ = (
        "_jump_at",
        "_jump_lsn",
        "_seed",
        "at",
        "batch_at",
        "before_crc",
        "before_lsn",
        "closed",
        "flaw",
        "last_crc",
        "last_lsn",
        "next_lsn",
        "position",
        "records",
    )

    def __init__(
        self,
        seed: int,
        at: int,
        next_lsn: int,
        jump_at: int = -1,
        jump_lsn: int = 0,
        last_lsn: int = 0,
        last_crc: int = 0,
    ) -> None:
        """At the offset `jump_at` the LSN goes on with `jump_lsn` (see `segment`)."""
        self._seed = seed
        self._jump_at = jump_at
        self._jump_lsn = jump_lsn
        self.at = at
        self.next_lsn = next_lsn
        self.position = -1
        """Of the last record; -1 before the first, which may be inside a batch."""
        self.last_lsn = self.before_lsn = last_lsn
        self.last_crc = self.before_crc = last_crc
        self.batch_at = at
        self.records = 0
        self.closed = False
        """The last record is the mark of a clean close."""
        self.flaw = Flaw.NONE
        self._jump()

    def feed(self, data: bytes, start: int = 0, found: list[Record] | None = None) -> int:
        """Take every whole, good record from `data[start:]`, which stands at offset `at`; add it
        to `found` and return how many bytes were taken. `flaw` tells why it stopped: NONE when
        nothing is left, SHORT when more bytes may help."""
        view = memoryview(data)
        here = start
        while True:
            here = self._run(data, view, here, found)
            jumped = self._jump()
            if self.flaw is not Flaw.ORDER or not jumped:
                return here - start

    def _jump(self) -> bool:
        if self.at != self._jump_at or self.next_lsn == self._jump_lsn:
            return False
        self.next_lsn = self._jump_lsn
        return True

    def _run(self, data: bytes, view: memoryview, here: int, found: list[Record] | None) -> int:
        unpack, crc_of, seed, end = _HEADER.unpack_from, crc32, self._seed, len(data)
        lsn, position, crc, began = self.next_lsn, self.position, self.last_crc, here
        kind = KIND_CLOSE if self.closed else KIND_PLAIN
        last_lsn, count = self.last_lsn, 0
        flaw = Flaw.NONE
        while here != end:
            body = here + HEADER_BYTES
            if body > end:
                flaw = Flaw.SHORT if MAGIC.startswith(data[here : here + 4]) else Flaw.NO_RECORD
                break
            magic, stored, length, number, stamp, place, its_kind, level = unpack(data, here)
            if magic != MAGIC:
                flaw = Flaw.NO_RECORD
                break
            after = body + length
            if after > end:
                flaw = Flaw.SHORT if length <= PAYLOAD_BYTES_MAX else Flaw.LENGTH
                break
            if crc_of(view[here + COVERED_FROM : after], seed) != stored:
                flaw = Flaw.CHECKSUM
                break
            if number != lsn or (place and place != position + 1 and position >= 0):
                flaw = Flaw.ORDER
                break
            if not place:
                self.batch_at = self.at + here - began
                self.before_lsn, self.before_crc = last_lsn, crc
            if found is not None:
                found.append(Record(number, data[body:after], its_kind, level, stamp))
            here, position, crc, kind, last_lsn = after, place, stored, its_kind, number
            lsn += 1
            count += 1
        self.at += here - began
        self.next_lsn, self.position, self.last_crc = lsn, position, crc
        self.last_lsn, self.closed, self.flaw = last_lsn, kind == KIND_CLOSE, flaw
        self.records += count
        return here


def later_batch(data: bytes, seed: int, lost_lsn: int) -> int | None:
    """Where after unreadable bytes a good record stands whose batch began after the record with
    `lost_lsn`; None when there is none. It proves that the lost record was durable once."""
    view, at = memoryview(data), data.find(MAGIC, 1)
    # No record is shorter than its header, which bounds the numbers these bytes can hold.
    lsn_max = lost_lsn + len(data) // HEADER_BYTES + 1
    while at >= 0 and at + HEADER_BYTES <= len(data):
        _, stored, length, lsn, _, position, _, _ = _HEADER.unpack_from(data, at)
        after = at + HEADER_BYTES + length
        plausible = lost_lsn < lsn - position <= lsn_max and after <= len(data)
        if plausible and crc32(view[at + COVERED_FROM : after], seed) == stored:
            return at
        at = data.find(MAGIC, at + 1)
    return None

"""Segments: numbered files, each opened by a header that says what came before it.

A header is 64 bytes, little-endian: magic with version, CRC-32 of the rest, then the fields of
`Header`. It is written together with what recovery carried over into a file with another name,
synced, renamed and the directory synced; so whatever bears a segment's name has a durable header.

A segment does not know its own end. Its successor does: `previous_end` and the LSN and checksum
of the last record before it. Bytes beyond that end are what a crash left there; the records among
them that may have been acknowledged are the first `carried_bytes` of the successor, under their
old LSNs. After these the LSN goes on with `resume_lsn`, which leaves out every number that a torn
write may have held.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from hyperscale.runtime.host import Disk, File

MAGIC = b"HsWAL\x00\x01\n"
_START = Struct("<8sI")
_REST = Struct("<IIIIIQQQQ")
HEADER_BYTES = _START.size + _REST.size
SEGMENT_BYTES_MAX = 1 << 31  # offsets in a header have 32 bits
# No log reaches them, and a header that names more could have no successor.
LSN_MAX = 1 << 62
NUMBER_MAX = (1 << 32) - 1
_NAME = re.compile(r"segment_(\d{8,})\.wal")
UNFINISHED_SUFFIX = ".new"

assert HEADER_BYTES == 64


class Header(NamedTuple):
    number: int
    carried_bytes: int
    cut_bytes: int
    """What was unreadable at the end of the predecessor when this segment took over."""
    previous_crc: int
    previous_end: int
    previous_last_lsn: int
    first_lsn: int
    resume_lsn: int
    stamp_us: int

    @property
    def carried_end(self) -> int:
        return HEADER_BYTES + self.carried_bytes


def first_header(first_lsn: int, stamp_us: int) -> Header:
    """Of a log that nothing came before."""
    return Header(1, 0, 0, 0, 0, first_lsn - 1, first_lsn, first_lsn, stamp_us)


def encode_header(header: Header) -> bytes:
    rest = _REST.pack(*header)
    return _START.pack(MAGIC, crc32(rest)) + rest


def decode_header(data: bytes) -> Header | None:
    """None when these are not the first bytes of a segment."""
    if len(data) < HEADER_BYTES:
        return None
    magic, stored = _START.unpack_from(data)
    rest = data[_START.size : HEADER_BYTES]
    if magic != MAGIC or crc32(rest) != stored:
        return None
    header = Header(*_REST.unpack(rest))
    numbers = (header.previous_last_lsn, header.first_lsn, header.resume_lsn)
    return None if max(numbers) > LSN_MAX or header.number >= NUMBER_MAX else header


def seed_of(header: Header) -> int:
    """Where the checksums of a segment's records start."""
    return crc32(_REST.pack(*header))


def name_of(number: int) -> str:
    return f"segment_{number:08d}.wal"


def number_of(name: str) -> int | None:
    matched = _NAME.fullmatch(name)
    return int(matched[1]) if matched else None


def is_unfinished(name: str) -> bool:
    stem = name.removesuffix(UNFINISHED_SUFFIX)
    return stem != name and number_of(stem) is not None


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


@dataclass(slots=True)
class Segment:
    """What is known of a segment without reading it again."""

    path: str
    header: Header
    end: int
    """Of the durable, valid records."""
    last_lsn: int
    """Of the last record in it or before it."""
    last_crc: int
    marks: list[tuple[int, int]] = field(default_factory=list)
    """A sparse index: LSN and offset of a record every so many bytes."""

    seed: int = field(init=False)

    def __post_init__(self) -> None:
        self.seed = seed_of(self.header)

    @property
    def empty(self) -> bool:
        return self.end == HEADER_BYTES

    @property
    def fresh(self) -> bool:
        """It holds nothing but what was in it when it got its name."""
        return self.end == self.header.carried_end

    def mark(self, lsn: int, offset: int, distance: int) -> None:
        if not self.marks or offset - self.marks[-1][1] >= distance:
            self.marks.append((lsn, offset))

    def start_for(self, lsn: int) -> tuple[int, int]:
        """LSN and offset of a record at or before `lsn`, as near as the marks allow."""
        at = bisect_right(self.marks, (lsn, self.end))
        return self.marks[at - 1] if at else (self.header.first_lsn, HEADER_BYTES)


async def create(disk: Disk, directory: str, header: Header, carried: bytes) -> File:
    """Make a segment that exists either whole or not at all; the file, open for appending."""
    assert header.carried_bytes == len(carried)
    path = join(directory, name_of(header.number))
    file = await disk.open(path + UNFINISHED_SUFFIX)
    try:
        await file.append_and_sync(encode_header(header) + carried)
        await disk.rename(path + UNFINISHED_SUFFIX, path)
        await disk.sync_directory(directory)
    except BaseException:
        await file.close()
        raise
    return file

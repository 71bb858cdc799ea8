"""States as bytes: whole for a checkpoint, in parts for a voter that lacks too much.

A state is up to half a gigabyte, and the loop that encodes it has a lease to keep. So it is written
and read a few records at a time, and other work gets its turn in between; the bytes are those of
the encoder for a `Snapshot`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from struct import Struct

import msgspec

from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.messages import State
from hyperscale.ledger.unreadable import NEWER_HINT, UnreadableRecord

VERSION = 1
BITE_BYTES = 1 << 20
"""Encoded, or read back, before other work gets its turn: about a millisecond."""
RECORD_BYTES = 1 << 10
"""A record without any bytes takes the time of this many."""

_LENGTH = Struct(">BI")
_ARRAY_32, _BIN_32, _FIELDS = 0xDD, 0xC6, 0x90  # as MessagePack marks them
_encode = msgspec.msgpack.Encoder().encode


class LoopYield:
    """How much was done in one go."""

    def __init__(self) -> None:
        self._done_bytes = 0

    async def took(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes + RECORD_BYTES
        if self._done_bytes >= BITE_BYTES:
            self._done_bytes = 0
            await asyncio.sleep(0)


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """On disk and on the wire: new fields go to the end and have a default."""

    version: int
    index: int
    """The last entry applied."""
    index_term: int
    jobs: list[msgspec.Raw]
    """The records of each, as bytes."""
    term: int = 0
    """Promised; on disk only, like the rest."""
    commit_index: int = 0
    tail: tuple[Entry, ...] = ()
    """Entries after `index`."""
    newcomer: bool = False


@dataclass(frozen=True, slots=True)
class Captured:
    """A state at one moment; holds references only."""

    index: int
    index_term: int
    jobs: Sequence[Sequence[Record]]
    term: int = 0
    commit_index: int = 0
    tail: tuple[Entry, ...] = ()
    newcomer: bool = False

    async def encode(self) -> bytearray:
        """As a `Snapshot`."""
        loop_yield, out = LoopYield(), bytearray([_FIELDS | len(Snapshot.__struct_fields__)])
        for number in (VERSION, self.index, self.index_term):
            out += _encode(number)
        out += _LENGTH.pack(_ARRAY_32, len(self.jobs))
        for job in self.jobs:
            start = len(out)
            out += _LENGTH.pack(_BIN_32, 0)
            await _put(loop_yield, out, job)
            _LENGTH.pack_into(out, start, _BIN_32, len(out) - start - _LENGTH.size)
        for number in (self.term, self.commit_index):
            out += _encode(number)
        await _put(loop_yield, out, self.tail)
        out += _encode(self.newcomer)
        return out


async def _put(loop_yield: LoopYield, out: bytearray, items: Sequence[Record | Entry]) -> None:
    out += _LENGTH.pack(_ARRAY_32, len(items))
    for item in items:
        piece = _encode(item)
        out += piece
        await loop_yield.took(len(piece))


_decode = msgspec.msgpack.Decoder(Snapshot).decode
_decode_job = msgspec.msgpack.Decoder(memoryview).decode
_decode_records = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_record = msgspec.msgpack.Decoder(Record).decode


def decode(state: bytes | bytearray) -> Snapshot:
    """All but its jobs, which are left as they are: see `records_of`."""
    try:
        snapshot = _decode(state)
    except msgspec.DecodeError as error:
        raise _unreadable(error) from None
    if snapshot.version != VERSION:
        raise UnreadableRecord(f"the checkpoint has version {snapshot.version}.", NEWER_HINT)
    return snapshot


async def records_of(jobs: Iterable[msgspec.Raw]) -> AsyncIterator[Record]:
    """The records of a snapshot's jobs, one job after the other."""
    loop_yield = LoopYield()
    try:
        for job in jobs:
            for piece in _decode_records(_decode_job(job)):
                record = _decode_record(piece)
                yield record
                await loop_yield.took(len(record.payload))
    except msgspec.DecodeError as error:
        raise _unreadable(error) from None


def _unreadable(error: msgspec.DecodeError) -> UnreadableRecord:
    return UnreadableRecord(f"the checkpoint is not one of job records: {error}.")


@dataclass(frozen=True, slots=True)
class PackedState:
    """An encoded state, cut into parts on request."""

    index: int
    index_term: int
    data: bytearray

    def part(self, term: int, offset: int, part_bytes: int) -> State:
        data = bytes(memoryview(self.data)[offset : offset + part_bytes])
        return State(term, self.index, self.index_term, len(self.data), offset, data)


class PartialState:
    """A state arriving in parts. Only the next part is taken, so a repeated or an early one does
    no harm; a part of another state begins anew."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._of: tuple[str, int, int, int, int] | None = None
        self._data = bytearray()

    def take(self, peer: str, part: State) -> int:
        """How much of this state is here. Raises ValueError for one that is too large."""
        if part.total > self._bytes_max:
            raise ValueError(f"a state of {part.total:,} bytes is too large")
        of = (peer, part.term, part.index, part.index_term, part.total)
        if of != self._of:
            self._of, self._data = of, bytearray()
        if part.offset == len(self._data) and part.offset + len(part.data) <= part.total:
            self._data += part.data
        return len(self._data)

    def whole(self) -> bytearray | None:
        """The state, once; None while parts are missing."""
        if self._of is None or len(self._data) < self._of[-1]:
            return None
        data, self._of, self._data = self._data, None, bytearray()
        return data

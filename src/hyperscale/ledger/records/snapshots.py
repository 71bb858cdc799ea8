"""States as bytes: whole for a checkpoint, in parts for a voter that lacks too much."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.messages import State
from hyperscale.ledger.records.shelf import encode_job
from hyperscale.ledger.unreadable import NEWER_HINT, UnreadableRecord

VERSION = 1
JOBS_AT_ONCE = 50
"""Encoded, or read back, before other work gets its turn."""


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """On disk and on the wire: new fields go to the end and have a default."""

    version: int
    index: int
    """The last entry applied."""
    index_term: int
    jobs: list[bytes]
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

    async def encode(self) -> bytes:
        pieces: list[bytes] = []
        for job in self.jobs:
            pieces.append(encode_job(job))
            if len(pieces) % JOBS_AT_ONCE == 0:
                await asyncio.sleep(0)
        snapshot = Snapshot(
            VERSION,
            self.index,
            self.index_term,
            pieces,
            self.term,
            self.commit_index,
            self.tail,
            self.newcomer,
        )
        return msgspec.msgpack.encode(snapshot)


_decode = msgspec.msgpack.Decoder(Snapshot).decode


def decode(state: bytes) -> Snapshot:
    try:
        snapshot = _decode(state)
    except msgspec.DecodeError as error:
        raise UnreadableRecord(f"the checkpoint is not one of job records: {error}.") from None
    if snapshot.version != VERSION:
        raise UnreadableRecord(f"the checkpoint has version {snapshot.version}.", NEWER_HINT)
    return snapshot


@dataclass(frozen=True, slots=True)
class Parcel:
    """An encoded state, cut into parts on request."""

    index: int
    index_term: int
    data: bytes

    def part(self, term: int, offset: int, part_bytes: int) -> State:
        data = self.data[offset : offset + part_bytes]
        return State(term, self.index, self.index_term, len(self.data), offset, data)


class Assembly:
    """A state arriving in parts. Only the next part is taken, so a repeated or an early one does
    no harm; a part of another state begins anew."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._of: tuple[str, int, int, int, int] | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, peer: str, part: State) -> int:
        """How much of this state is here. Raises ValueError for one that is too large."""
        if part.total > self._bytes_max:
            raise ValueError(f"a state of {part.total:,} bytes is too large")
        of = (peer, part.term, part.index, part.index_term, part.total)
        if of != self._of:
            self._of, self._parts, self._size = of, [], 0
        if part.offset == self._size and self._size + len(part.data) <= part.total:
            self._parts.append(part.data)
            self._size += len(part.data)
        return self._size

    def whole(self) -> bytes | None:
        """The state, once; None while parts are missing."""
        if self._of is None or self._size < self._of[-1]:
            return None
        data = b"".join(self._parts)
        self._of, self._parts, self._size = None, [], 0
        return data

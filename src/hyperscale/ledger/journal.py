"""What the ledgers ask of a durable log, and the one pass that rebuilds them from it.

Several ledgers share a log, so that one sync serves them all: the first byte of every payload
names the family of records it belongs to. Rebuilding reads the log once and hands each record to
the ledger of its family.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from hyperscale.errors import RunFailed

NEWER_HINT = "It was written by a newer version of Hyperscale: start that version, or a newer one."


class Family(IntEnum):
    """On disk for ever: a number is never changed and never used again."""

    JOB = 1
    IDEMPOTENCY = 2


class Record(NamedTuple):
    lsn: int
    payload: bytes


class Journal(Protocol):
    async def append(self, payload: bytes) -> int:
        """Durable when it returns; the number of the record, higher than every one before."""
        ...

    def replay(self, after_lsn: int = 0) -> AsyncIterator[Record]:
        """Every durable record after `after_lsn`, in order, each once."""
        ...


class Book(Protocol):
    """A ledger that can be rebuilt from its records."""

    @property
    def family(self) -> Family: ...

    def apply(self, lsn: int, payload: bytes) -> None:
        """Take one record of this family. A record already taken changes nothing."""
        ...


class UnreadableRecord(RunFailed):
    """A record whose bytes are intact but mean nothing to this version."""


@dataclass(frozen=True, slots=True)
class Replayed:
    records: int
    lsn_last: int


async def rebuild(journal: Journal, books: Iterable[Book], after_lsn: int = 0) -> Replayed:
    """Feed the log to the ledgers. Every family must have a ledger: ignoring one would forget what
    was promised in it."""
    by_family = {int(book.family): book for book in books}
    records, lsn_last = 0, after_lsn
    async for lsn, payload in journal.replay(after_lsn):
        book = by_family.get(payload[0]) if payload else None
        if book is None:
            family = payload[0] if payload else "none"
            raise UnreadableRecord(
                f"record {lsn} of the log belongs to no known family ({family}).", NEWER_HINT
            )
        book.apply(lsn, payload)
        records, lsn_last = records + 1, lsn
    return Replayed(records, lsn_last)

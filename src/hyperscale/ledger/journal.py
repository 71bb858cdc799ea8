"""What the ledgers ask of a durable log, and the one pass that rebuilds them from it.

Several ledgers share a log, so that one sync serves them all: the first byte of every payload
names the family of records it belongs to. Rebuilding reads the log once and hands each record to
the ledger of its family.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from enum import IntEnum
from typing import Protocol

from hyperscale.errors import RunFailed

NEWER_HINT = "It was written by a newer version of Hyperscale: start that version, or a newer one."


class Family(IntEnum):
    """On disk for ever: a number is never changed and never used again."""

    JOB = 1
    IDEMPOTENCY = 2


class Record(Protocol):
    @property
    def lsn(self) -> int: ...

    @property
    def payload(self) -> bytes: ...


class Journal(Protocol):
    """What a ledger needs of `wal.WriteAheadLog`."""

    async def append(self, payload: bytes) -> int:
        """Durable when it returns; the record's number, higher than that of every record whose
        append was called before."""
        ...

    def read(self, from_lsn: int = 0) -> AsyncIterator[Record]:
        """Every durable record from there on, in order, each once."""
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


def distribute(books: Iterable[Book]) -> Callable[[Iterable[Record]], None]:
    """Takes records, in order, and hands each to the ledger of its family: what to `deliver` to
    when a log is opened. Every family must have a ledger: to ignore one would be to forget what was
    promised in it."""
    by_family = {int(book.family): book for book in books}

    def take(records: Iterable[Record]) -> None:
        for record in records:
            payload = record.payload
            book = by_family.get(payload[0]) if payload else None
            if book is None:
                family = payload[0] if payload else "none"
                raise UnreadableRecord(
                    f"record {record.lsn} of the log belongs to no known family ({family}).",
                    NEWER_HINT,
                )
            book.apply(record.lsn, payload)

    return take


async def rebuild(journal: Journal, books: Iterable[Book], after_lsn: int = 0) -> None:
    """Feed a log that is open already to its ledgers."""
    take = distribute(books)
    async for record in journal.read(after_lsn + 1):
        take((record,))


class JournalSlot:
    """The place of a log that is still being opened: its ledgers exist before it, because opening
    it delivers their records."""

    def __init__(self) -> None:
        self._journal: Journal | None = None

    def fill(self, journal: Journal) -> None:
        self._journal = journal

    async def append(self, payload: bytes) -> int:
        return await self._filled().append(payload)

    def read(self, from_lsn: int = 0) -> AsyncIterator[Record]:
        return self._filled().read(from_lsn)

    def _filled(self) -> Journal:
        if self._journal is None:
            raise RuntimeError("the log is not open yet")
        return self._journal


def plain_text(value: object) -> str:
    """For encoders: texts of a special kind (a key) are texts on disk; nothing else passes."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"a record cannot hold a {type(value).__name__}")

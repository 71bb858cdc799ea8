"""Job events made durable: judge, write, then believe.

Events of one job are written one after another, so each is judged against what is on disk; events
of different jobs share the log's group commit. A write goes on when its caller is cancelled: what
reaches the disk must reach the book too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from hyperscale.cluster.clocks import Stamp
from hyperscale.ledger.jobs.book import JobBook, JobSettings
from hyperscale.ledger.jobs.codec import decode, encode
from hyperscale.ledger.jobs.events import JobEvent
from hyperscale.ledger.jobs.history import Written
from hyperscale.ledger.jobs.state import JobState
from hyperscale.ledger.journal import Family, Journal
from hyperscale.ledger.waiting import promise_of
from hyperscale.runtime.host import Clock, Tasks


class _Turn:
    """The queue of writers of one job; it lives while somebody is in it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class JobLedger:
    family = Family.JOB

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        tasks: Tasks,
        settings: JobSettings | None = None,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._tasks = tasks
        self._book = JobBook(settings)
        self._turns: dict[str, _Turn] = {}
        self._under_way: dict[int, int] = {}
        self._tickets = 0
        self._lsn_last = 0
        self.skipped = 0
        """Records of a newer version that may be skipped."""

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._book

    @property
    def refused(self) -> int:
        return self._book.refused

    def state(self, job_id: str) -> JobState | None:
        return self._book.state(job_id)

    def states(self) -> Iterator[JobState]:
        return self._book.states()

    def history(self, job_id: str) -> list[Written]:
        return self._book.history(job_id)

    def as_of_lsn(self, job_id: str, lsn: int) -> JobState | None:
        return self._book.as_of_lsn(job_id, lsn)

    def as_of(self, job_id: str, moment: Stamp) -> JobState | None:
        return self._book.as_of(job_id, moment)

    async def record(self, event: JobEvent) -> int:
        """Write an event; its LSN when durable. Raises `EventRefused` or `TooManyJobs` with
        nothing written, or what the log raised, with the outcome unknown until a restart."""
        name = f"write {event.code.name} {event.job_id}"
        return await promise_of(self._tasks, name, lambda: self._record(event))

    @property
    def applied_lsn(self) -> int:
        """Every job event up to this record is in the book: what a checkpoint covers whose pieces
        are taken from now on. A write under way will get a higher number than any known when it
        began; writes began in order, so the first one tells the lowest."""
        return next(iter(self._under_way.values()), self._lsn_last)

    def resume_after(self, lsn: int) -> None:
        """The restored checkpoint covers everything up to this record."""
        self._lsn_last = lsn

    def apply(self, lsn: int, payload: bytes) -> None:
        if lsn <= self._lsn_last:
            return
        self._lsn_last = lsn
        event = decode(payload, lsn)
        if event is None:
            self.skipped += 1
        else:
            self._book.apply(self._clock.now(), lsn, event)

    def sweep(self, limit: int = 1_000) -> int:
        return self._book.sweep(self._clock.now(), limit)

    def pieces(self) -> Iterator[bytes]:
        return self._book.pieces()

    def restore(self, piece: bytes) -> None:
        self._book.restore(self._clock.now(), piece)

    async def _record(self, event: JobEvent) -> int:
        turn = self._turns.setdefault(event.job_id, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                self._book.check(event)
                return await self._write(event)
        finally:
            turn.users -= 1
            if turn.users == 0:
                del self._turns[event.job_id]

    async def _write(self, event: JobEvent) -> int:
        ticket, self._tickets = self._tickets, self._tickets + 1
        self._under_way[ticket] = self._lsn_last
        try:
            lsn = await self._journal.append(encode(event))
            self._lsn_last = max(self._lsn_last, lsn)
            self._book.apply(self._clock.now(), lsn, event)
            return lsn
        finally:
            del self._under_way[ticket]

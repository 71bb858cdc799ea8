"""The state: the committed records of every job, until the job is forgotten. No I/O.

Applying the same log gives the same table on every replica, except for the time at which an ended
job may go: each replica takes that from its own clock, and only the leader acts on it, by an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.entries import ENTRY_BYTES

Condense = Callable[[Sequence[Record]], Sequence[Record]]
"""What is kept of the records of a job that has ended: the same for the same records, and nothing
less when it is asked again about what it has left."""


class _Job:
    __slots__ = ("fence", "forget_at", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.fence = Fence(0)
        self.forget_at: float | None = None


class JobTable:
    def __init__(self, condense: Condense = tuple) -> None:
        self._condense = condense
        self._jobs: dict[str, _Job] = {}
        self._due: list[tuple[float, str]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def jobs(self) -> list[str]:
        return list(self._jobs)

    def records(self, job_id: str) -> tuple[Record, ...]:
        job = self._jobs.get(job_id)
        return () if job is None else tuple(job.records)

    def fence(self, job_id: str) -> Fence | None:
        """The highest under which something was written about a job."""
        job = self._jobs.get(job_id)
        return None if job is None else job.fence

    def add(self, now: float, record: Record) -> None:
        job = self._jobs.setdefault(record.job_id, _Job())
        job.records.append(record)
        job.fence = max(job.fence, record.fence)
        self.bytes += _size(record)
        if record.keep_s is not None:
            job.forget_at = now + record.keep_s
            heappush(self._due, (job.forget_at, record.job_id))
            self.bytes -= sum(map(_size, job.records))
            job.records = list(self._condense(job.records))
            self.bytes += sum(map(_size, job.records))

    def forget(self, job_id: str) -> bool:
        """False: there was nothing to forget."""
        job = self._jobs.pop(job_id, None)
        if job is None:
            return False
        self.bytes -= sum(map(_size, job.records))
        return True

    def due(self, now: float, limit: int) -> list[str]:
        """Ended jobs whose time is up. They are told once; one that is still here later was not
        forgotten by whoever asked, and `remind` brings it back."""
        found: list[str] = []
        while self._due and self._due[0][0] <= now and len(found) < limit:
            at, job_id = heappop(self._due)
            job = self._jobs.get(job_id)
            if job is not None and job.forget_at == at:
                found.append(job_id)
        return found

    def remind(self) -> None:
        """`due` tells of every ended job again."""
        self._due = sorted(
            (job.forget_at, job_id)
            for job_id, job in self._jobs.items()
            if job.forget_at is not None
        )

    def capture(self) -> list[tuple[Record, ...]]:
        """What a snapshot holds, as it is now; cheap, because records never change."""
        return [tuple(job.records) for job in self._jobs.values()]


def _size(record: Record) -> int:
    return ENTRY_BYTES + len(record.payload)

"""The records of a store as one atomic step sees them.

An operation is a function of `Records`: it reads, decides with the pure policies, and writes, or
raises before its first write. Stores differ only in how they give such a step its atomicity, so the
rules are written once and hold in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.history import Attempt, DeadLetter, Run
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.schedules.schedule import Schedule
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.store.types import Value
from hyperscale.scheduler.worker.registration import Worker

T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A table of records by key. `at` indexes them by the instant somebody must look again."""

    name: str
    type: type[T]
    at: Callable[[T], Instant | None] | None = None
    listed: bool = False
    """Can be paged through by key."""


class DedupEntry(msgspec.Struct, frozen=True, array_like=True):
    job_id: str
    digest: str
    until: Instant


class Log(msgspec.Struct, frozen=True, array_like=True):
    text: str
    ended_at: Instant


class Measured(msgspec.Struct, frozen=True, array_like=True):
    data: bytes
    ended_at: Instant


SCHEDULES: Final = Kind("schedules", Schedule, lambda s: s.next_at, listed=True)
LINES: Final = Kind("lines", int)
"""How many instances of a schedule wait for another; none: no record."""
DEDUPS: Final = Kind("dedups", DedupEntry, lambda d: d.until)
WORKERS: Final = Kind("workers", Worker, lambda w: w.seen_at, listed=True)
LETTERS: Final = Kind("letters", DeadLetter, lambda letter: letter.at, listed=True)
ATTEMPTS: Final = Kind("attempts", Attempt, lambda a: a.ended_at, listed=True)
LOGS: Final = Kind("logs", Log, lambda log: log.ended_at)
RESULTS: Final = Kind("results", Measured, lambda results: results.ended_at)
"""Of load tests, as their executor packed them."""
HISTORY: Final = Kind("history", Run, lambda run: run.ended_at, listed=True)
AUDITS: Final = Kind("audits", Audit, lambda row: row.at, listed=True)
AUDIT_HEAD: Final = Kind("audit_head", Audit)
VALUES: Final = Kind("values", Value)
EPOCHS: Final = Kind("epochs", int)

KINDS: Final[tuple[Kind[Any], ...]] = (
    SCHEDULES,
    LINES,
    DEDUPS,
    WORKERS,
    LETTERS,
    ATTEMPTS,
    LOGS,
    RESULTS,
    HISTORY,
    AUDITS,
    AUDIT_HEAD,
    VALUES,
    EPOCHS,
)


def attempt_key(job_id: str, token: int) -> str:
    return f"{job_id}/{token:016d}"


def audit_key(sequence: int) -> str:
    return f"{sequence:016d}"


class Records(Protocol):
    def expect(self, job_ids: Sequence[str]) -> None:
        """The step will ask for these jobs: they may be looked up together."""
        ...

    def job(self, job_id: str) -> Job | None: ...

    def put_job(self, before: Job | None, job: Job, now: Instant) -> None:
        """`before` is what `job()` gave in this step; None for a new one."""
        ...

    def drop_job(self, job: Job) -> None: ...

    def job_count(self) -> int:
        """Those that have not ended."""
        ...

    def live(self, schedule_id: str) -> list[Job]:
        """Instances that have not ended, in the order of (tick, created, id)."""
        ...

    def get(self, kind: Kind[T], key: str) -> T | None: ...

    def put(self, kind: Kind[T], key: str, value: T) -> None: ...

    def drop(self, kind: Kind[Any], key: str) -> None: ...

    def count(self, kind: Kind[Any]) -> int: ...

    def token(self) -> int:
        """The next number of the store's one counter."""
        ...


class Queue(Records, Protocol):
    """Records of a store whose steps exclude each other: they may also take from the queue."""

    def promote(self, now: Instant, limit: int) -> int:
        """Delayed jobs that are due become ready."""
        ...

    def ready(self, fits: Callable[[str], bool], limit: int) -> Iterable[Job]:
        """In the order of claims. A caller who needs no more stops asking."""
        ...


Operation = Callable[[Records], T]

"""The store on one SQLite file (WAL, synchronous=FULL): one thread writes, one thread looks."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue import operations as claims
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.store.sqlite.reader import Reader
from hyperscale.scheduler.store.sqlite.schema import connect, migrate
from hyperscale.scheduler.store.sqlite.writer import Writer
from hyperscale.scheduler.store.store import RecordStore
from hyperscale.scheduler.store.tables import Kind, Operation
from hyperscale.scheduler.store.types import (
    BATCH_MAX,
    DEFAULT_LIMITS,
    Claim,
    Counts,
    JobFilter,
    StoreLimits,
)
from hyperscale.scheduler.store.wakeups import Wakeups

T = TypeVar("T")


class SqliteStore(RecordStore):
    """Made by `open`."""

    def __init__(
        self,
        writing: sqlite3.Connection,
        reading: sqlite3.Connection,
        limits: StoreLimits,
    ) -> None:
        wakeups = Wakeups(self._sign)
        super().__init__(limits, wakeups)
        self._connections = (writing, reading)
        self._writer = Writer(writing, wakeups.wake)
        self._reader = Reader(reading)
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="job-store-reader")

    @classmethod
    async def open(cls, path: str | Path, limits: StoreLimits = DEFAULT_LIMITS) -> SqliteStore:
        """Makes the file if it is missing. Raises BadInput when it cannot be used."""
        return cls(*await asyncio.to_thread(_connections, Path(path)), limits)

    async def close(self) -> None:
        await self._writer.close()
        self._looking.shutdown(wait=True)
        for connection in self._connections:
            connection.close()

    async def claim(self, claim: Claim, now: Instant) -> list[Job]:
        taken: list[Job] = await self._writer.run_one(partial(claims.claim, wanted=claim, now=now))
        return taken

    async def promote(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int:
        step = partial(claims.promote, now=now, limit=min(limit, BATCH_MAX), epoch=epoch)
        promoted: int = await self._writer.run_one(step)
        return promoted

    async def counts(self) -> Counts:
        return await self._look(self._reader.counts)

    def _step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> Coroutine[Any, Any, T]:
        return self._writer.run_one(step, job_ids)

    def _write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> Coroutine[Any, Any, list[T | SchedulerError]]:
        return self._writer.run(steps, job_ids)

    async def _look(self, question: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._looking, question, *arguments)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"the job store did not answer: {error}") from error

    async def _sign(self) -> int:
        return await self._look(self._reader.sign)

    async def _get_many(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]:
        return await self._look(self._reader.get_many, kind, keys)

    async def _page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        return await self._look(self._reader.page, kind, prefix, behind, limit)

    async def _due(self, kind: Kind[Any], until: Instant | None, limit: int) -> list[str]:
        return await self._look(self._reader.due, kind, until, limit)

    async def _earliest(self, kind: Kind[Any]) -> Instant | None:
        return await self._look(self._reader.earliest, kind)

    async def _count(self, kind: Kind[Any]) -> int:
        return await self._look(self._reader.count, kind)

    async def _jobs_by_id(self, job_ids: Sequence[str]) -> list[Job | None]:
        return await self._look(self._reader.jobs_by_id, job_ids)

    async def _due_jobs(self, place: Place, until: Instant, limit: int) -> list[str]:
        return await self._look(self._reader.due_jobs, place, until, limit)

    async def _earliest_job(self, place: Place) -> Instant | None:
        return await self._look(self._reader.earliest_job, place)

    async def _held_by(self, worker_id: str, limit: int) -> list[str]:
        return await self._look(self._reader.held_by, worker_id, limit)

    async def _find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        return await self._look(self._reader.find, job_filter, behind, limit)


def _connections(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    writing = connect(path)
    try:
        migrate(writing, path)
        return writing, connect(path)
    except BaseException:
        writing.close()
        raise

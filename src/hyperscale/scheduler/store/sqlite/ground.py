"""A ground on one SQLite file (WAL, synchronous=FULL): one thread writes, one thread looks."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.operations import take
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.store.sqlite.reader import Reader
from hyperscale.scheduler.store.sqlite.schema import connect, migrate
from hyperscale.scheduler.store.sqlite.writer import Writer
from hyperscale.scheduler.store.tables import Kind, Operation
from hyperscale.scheduler.store.types import Claim, Counts, JobFilter, Taken
from hyperscale.scheduler.store.wakeups import Wakeups

T = TypeVar("T")


class SqliteGround:
    """Made by `open`."""

    def __init__(
        self, writing: sqlite3.Connection, reading: sqlite3.Connection, listing: sqlite3.Connection
    ) -> None:
        self.wakeups = Wakeups(self._sign)
        self._connections = (writing, reading, listing)
        self._writer = Writer(writing, self.wakeups.wake)
        self._reader = Reader(reading)
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="job-store-reader")
        # Lists may go through every job: what ticks and claims ask does not wait behind them.
        self._lister = Reader(listing)
        self._finding = ThreadPoolExecutor(1, thread_name_prefix="job-store-lists")

    @classmethod
    async def open(cls, path: str | Path) -> SqliteGround:
        """Makes the file if it is missing. Raises BadInput when it cannot be used."""
        return cls(*await asyncio.to_thread(_connections, Path(path)))

    async def close(self) -> None:
        await self._writer.close()
        self._looking.shutdown(wait=True)
        self._finding.shutdown(wait=True)
        for connection in self._connections:
            connection.close()

    async def time(self) -> None:
        """Everybody who uses it is on this machine."""

    def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> Awaitable[T]:
        return self._writer.run_one(step, job_ids)

    def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> Awaitable[list[T | SchedulerError]]:
        return self._writer.run(steps, job_ids)

    def take(self, claim: Claim, now: Instant, promote_max: int) -> Awaitable[Taken]:
        step = partial(take, wanted=claim, now=now, promote_max=promote_max)
        return self._writer.run_one(step)

    def _look(self, question: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        return self._ask(self._looking, question, *arguments)

    async def _ask(
        self, thread: ThreadPoolExecutor, question: Callable[..., T], *arguments: Any
    ) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(thread, question, *arguments)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"the job store did not answer: {error}") from error

    async def _sign(self) -> int:
        return await self._look(self._reader.sign)

    def get(self, kind: Kind[T], keys: Sequence[str]) -> Awaitable[list[T | None]]:
        return self._look(self._reader.get, kind, keys)

    def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> Awaitable[list[T]]:
        return self._look(self._reader.page, kind, prefix, behind, limit)

    def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> Awaitable[list[tuple[Instant, str]]]:
        return self._look(self._reader.due, index, until, limit)

    def jobs(self, job_ids: Sequence[str]) -> Awaitable[list[Job | None]]:
        return self._look(self._reader.jobs, job_ids)

    def held_by(self, worker_id: str, limit: int) -> Awaitable[list[str]]:
        return self._look(self._reader.held_by, worker_id, limit)

    def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> Awaitable[list[Job]]:
        return self._ask(self._finding, self._lister.find, job_filter, behind, limit)

    def counts(self) -> Awaitable[Counts]:
        return self._ask(self._finding, self._lister.counts)

    def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> Awaitable[list[int]]:
        return self._ask(self._finding, self._lister.sizes, indexes)


def _connections(
    path: Path,
) -> tuple[sqlite3.Connection, sqlite3.Connection, sqlite3.Connection]:
    """One that writes and two that read."""
    with ExitStack() as opened:
        writing = opened.enter_context(closing(connect(path)))
        migrate(writing, path)
        reading = opened.enter_context(closing(connect(path)))
        listing = connect(path)
        opened.pop_all()
    return writing, reading, listing

"""The one thread of this process that writes to the file: group commit.

Steps that arrive in one turn of the event loop, or while a commit syncs, form one transaction, so a
thousand concurrent callers share one sync, and a lone caller waits for nobody. A transaction begins
IMMEDIATE: it owns the file before it reads, so what a step decides is still true when it is
written.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.store.sqlite.transaction import SqliteRecords

REQUESTS_MAX: Final = 4096
"""Callers that may wait in the queue; more wait before it."""
STEPS_PER_COMMIT_MAX: Final = 4096
"""Keeps a commit, and the time other processes wait for the file, well below BUSY_TIMEOUT_S."""

Step = Callable[[SqliteRecords], Any]


class _Request:
    """`alone`: of one step, whose outcome is the answer and whose refusal is raised."""

    __slots__ = ("alone", "error", "job_ids", "outcomes", "steps", "waiting")

    def __init__(
        self,
        steps: Sequence[Step],
        job_ids: Sequence[str],
        waiting: asyncio.Future[Any],
        alone: bool,
    ) -> None:
        self.steps = steps
        self.job_ids = job_ids
        self.waiting = waiting
        self.alone = alone
        self.outcomes: list[Any] = []
        self.error: Exception | None = None

    def answer(self) -> None:
        if self.waiting.done():
            return
        error: Exception | None = self.error
        outcome: Any = self.outcomes
        if self.alone and error is None:
            (outcome,) = self.outcomes
            if isinstance(outcome, SchedulerError):
                error = outcome
        if error is None:
            self.waiting.set_result(outcome)
        else:
            self.waiting.set_exception(error)


class Writer:
    def __init__(self, connection: sqlite3.Connection, on_news: Callable[[int], None]) -> None:
        """`on_news` is called in the event loop after a commit that others should know of."""
        self._db = connection
        self._records = SqliteRecords(connection)
        self._on_news = on_news
        self._loop = asyncio.get_running_loop()
        self._unanswered = 0
        self._room = asyncio.Event()
        self._arrived: list[_Request] = []
        self._queue: SimpleQueue[list[_Request] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="job-store-writer", daemon=True)
        self._thread.start()

    def run(self, steps: Sequence[Step], job_ids: Sequence[str] = ()) -> Awaitable[list[Any]]:
        """`job_ids` are those the steps will ask for: all that wait are then looked up at once."""
        return self._ask(steps, job_ids, alone=False)

    def run_one(self, step: Step, job_ids: Sequence[str] = ()) -> Awaitable[Any]:
        """Raises what the step refuses with."""
        return self._ask((step,), job_ids, alone=True)

    def _ask(self, steps: Sequence[Step], job_ids: Sequence[str], alone: bool) -> Awaitable[Any]:
        if self._unanswered >= REQUESTS_MAX:
            return self._ask_later(steps, job_ids, alone)
        return self._asked(steps, job_ids, alone)

    async def _ask_later(self, steps: Sequence[Step], job_ids: Sequence[str], alone: bool) -> Any:
        while self._unanswered >= REQUESTS_MAX:
            self._room.clear()
            await self._room.wait()
        return await self._asked(steps, job_ids, alone)

    def _asked(
        self, steps: Sequence[Step], job_ids: Sequence[str], alone: bool
    ) -> asyncio.Future[Any]:
        if self._closed:
            raise StoreUnavailable("the job store is closed")
        waiting: asyncio.Future[Any] = self._loop.create_future()
        self._unanswered += 1
        if not self._arrived:
            self._loop.call_soon(self._hand_over)
        self._arrived.append(_Request(steps, job_ids, waiting, alone))
        return waiting

    def _hand_over(self) -> None:
        if self._arrived:
            self._queue.put(self._arrived)
            self._arrived = []

    async def close(self) -> None:
        """What was asked for before is still done."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (requests := self._queue.get()) is not None:
            self._commit(self._gather(requests))

    def _gather(self, batch: list[_Request]) -> list[_Request]:
        steps = sum(len(request.steps) for request in batch)
        while steps < STEPS_PER_COMMIT_MAX:
            try:
                requests = self._queue.get_nowait()
            except Empty:
                break
            if requests is None:
                self._queue.put(None)
                break
            batch += requests
            steps += sum(len(request.steps) for request in requests)
        return batch

    def _commit(self, batch: list[_Request]) -> None:
        sign = None
        try:
            sign = self._transact(batch)
        except sqlite3.OperationalError as error:
            failure = StoreUnavailable(f"the job store did not write: {error}")
            failure.__cause__ = error
            for request in batch:
                request.error = failure
        except Exception as error:  # noqa: BLE001  (a fault in one step must not fail the others)
            if len(batch) > 1:
                for request in batch:
                    self._commit([request])
                return
            batch[0].error = error
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch, sign)
        except RuntimeError:
            # A program that ended without closing its store: nobody waits for the answer any more.
            if not self._loop.is_closed():
                raise

    def _transact(self, batch: list[_Request]) -> int | None:
        records = self._records
        self._db.execute("BEGIN IMMEDIATE")
        try:
            records.begin()
            records.expect([job_id for request in batch for job_id in request.job_ids])
            for request in batch:
                request.outcomes = [self._step(step) for step in request.steps]
            sign = records.flush()
            self._db.execute("COMMIT")
        except BaseException:
            records.forget()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return sign

    def _step(self, step: Step) -> Any:
        changes = self._records.changes
        try:
            return step(self._records)
        except SchedulerError as refusal:
            assert self._records.changes == changes, "a step refuses before it writes"
            return refusal

    def _deliver(self, batch: list[_Request], sign: int | None) -> None:
        self._unanswered -= len(batch)
        self._room.set()
        for request in batch:
            request.answer()
        if sign is not None:
            self._on_news(sign)

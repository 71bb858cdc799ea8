"""What a leader does during one term: fires ticks, promotes, recovers, tidies.

Before every act it looks at the remaining lease on its own clock; every write carries the term's
token. Trouble with the store ends no term: the leader waits, and gives everybody grace afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from hyperscale.runtime.logs import logger
from hyperscale.scheduler.coordinator.firing import decide
from hyperscale.scheduler.coordinator.liveness import judge_workers
from hyperscale.scheduler.coordinator.settings import CoordinatorSettings
from hyperscale.scheduler.elections.contract import Term
from hyperscale.scheduler.model.errors import (
    NotFound,
    SchedulerError,
    StaleLeader,
    StoreUnavailable,
    VersionConflict,
)
from hyperscale.scheduler.model.instants import SECOND, Instant, after
from hyperscale.scheduler.model.worker import Worker, WorkerEvent
from hyperscale.scheduler.stores.contract import BATCH_MAX, PAGE_MAX, Store

RETRY_S: Final = 1.0
BREATH_S: Final = 0.005
"""Between two looks at the queue, when wake-ups come thick."""
ROUNDS_MAX: Final = 1000


@dataclass(slots=True)
class Figures:
    """Since the process started; read by status and metrics."""

    fired: int = 0
    promoted: int = 0
    expired: int = 0
    recovered: int = 0
    lateness_s: float = 0.0
    degraded: str = ""
    suspects: tuple[str, ...] = ()
    broken: dict[str, str] | None = None


class Deposed(Exception):
    """The term is over."""


class Leading:
    def __init__(
        self,
        store: Store,
        term: Term,
        settings: CoordinatorSettings,
        now: Callable[[], Instant],
        figures: Figures,
    ) -> None:
        self._store = store
        self._term = term
        self._settings = settings
        self._now = now
        self._figures = figures
        self._listening_since = now()
        self._log: Any = logger("scheduler.coordinator")

    async def run(self) -> None:
        """Until the term is over; then none of its loops runs any more."""
        loops = [
            self._forever(self._tick, 0.0),
            self._forever(self._sweep, self._settings.sweep_s),
            self._forever(self._scan, self._settings.scan_s),
            self._forever(self._tidy, self._settings.tidy_s),
            self._until_lost(),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, Deposed):
                raise error

    async def _until_lost(self) -> None:
        while (left_s := self._term.remaining_s) > 0:
            try:
                async with asyncio.timeout(left_s):
                    await self._term.lost.wait()
            except TimeoutError:
                continue

    async def _forever(self, act: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            try:
                self._require_lease()
                await act()
            except StaleLeader as error:
                raise Deposed(str(error)) from error
            except StoreUnavailable as error:
                self._lost_store(error)
                await asyncio.sleep(RETRY_S)
            await asyncio.sleep(every_s)

    def _require_lease(self) -> int:
        if self._term.remaining_s <= 0:
            raise Deposed("the lease is over")
        return self._term.token

    def _lost_store(self, error: StoreUnavailable) -> None:
        if not self._figures.degraded:
            self._log.error("the store does not answer", error=str(error))
        self._figures.degraded = str(error)

    def _recovered_store(self) -> None:
        self._figures.degraded = ""
        self._listening_since = self._now()
        self._log.info("the store answers again")

    # Ticks and delayed jobs.

    async def _tick(self) -> None:
        mark = self._store.mark()
        await self._fire()
        await self._promote()
        if self._figures.degraded:
            self._recovered_store()
        wait_s = min(self._settings.look_s, await self._idle_s())
        if wait_s > 0:
            await self._store.changed(mark, wait_s)
            await asyncio.sleep(BREATH_S)

    async def _idle_s(self) -> float:
        schedule_at = await self._store.next_schedule_at()
        job_at = await self._store.next_due(self._now())
        soonest = min((at for at in (schedule_at, job_at) if at is not None), default=None)
        if soonest is None:
            return self._settings.look_s
        return max(0, soonest - self._now()) / SECOND

    async def _fire(self) -> None:
        for _ in range(ROUNDS_MAX):
            now = self._now()
            due = await self._store.due_schedules(now, BATCH_MAX)
            if not due:
                return
            decided = decide(due, now)
            for schedule_id, why in sorted(decided.broken.items()):
                self._log.error("schedule set aside", schedule_id=schedule_id, error=why)
            outcomes = await self._store.fire(decided.firings, now, self._require_lease())
            self._figures.lateness_s = decided.lateness_s
            self._figures.broken = decided.broken or self._figures.broken
            for outcome in outcomes:
                if isinstance(outcome, StaleLeader | StoreUnavailable):
                    raise outcome
                if isinstance(outcome, SchedulerError):
                    self._refused(outcome)
                else:
                    self._figures.fired += len(outcome.jobs)
            await asyncio.sleep(0)

    def _refused(self, refusal: SchedulerError) -> None:
        """Edited or deleted meanwhile: the next look decides anew."""
        if not isinstance(refusal, VersionConflict | NotFound):
            self._log.error("ticks wait", error=str(refusal))

    async def _promote(self) -> None:
        for _ in range(ROUNDS_MAX):
            count = await self._store.promote(self._now(), BATCH_MAX, self._require_lease())
            self._figures.promoted += count
            if count == 0:
                return

    # Recovery.

    async def _sweep(self) -> None:
        """Leases that ended: of workers that died between two heartbeats, of jobs past their
        timeout, of claims that never started."""
        grace_until = after(self._listening_since, self._settings.grace_s)
        if self._figures.degraded or grace_until > self._now():
            return
        for _ in range(ROUNDS_MAX):
            taken = await self._store.expire(self._now(), BATCH_MAX, self._require_lease())
            self._figures.expired += len(taken)
            for job in taken:
                self._log.warning("lease ended", job_id=job.id, state=job.state, error=job.error)
            if not taken:
                return

    async def _scan(self) -> None:
        if self._figures.degraded:
            return
        workers: list[Worker] = []
        for _ in range(ROUNDS_MAX):
            page = await self._store.workers(workers[-1].id if workers else "", PAGE_MAX)
            workers += page
            if len(page) < PAGE_MAX:
                break
        verdict = judge_workers(workers, self._now(), self._listening_since, self._settings)
        if verdict.doubted:
            self._log.warning("most workers are silent at once, waiting", workers=verdict.suspects)
        self._figures.suspects = verdict.suspects
        for worker_id in verdict.dead:
            await self._bury(worker_id)

    async def _bury(self, worker_id: str) -> None:
        self._require_lease()
        try:
            await self._store.move_worker(worker_id, WorkerEvent.LOST)
        except NotFound:
            return
        for _ in range(ROUNDS_MAX):
            taken = await self._store.recover_worker(
                worker_id, self._now(), BATCH_MAX, self._require_lease()
            )
            self._figures.recovered += len(taken)
            if not taken:
                return
            ids = [job.id for job in taken]
            self._log.warning("worker lost, jobs recovered", worker_id=worker_id, jobs=ids[:20])

    async def _tidy(self) -> None:
        await self._store.age(self._now(), BATCH_MAX, self._require_lease())
        await self._store.purge(self._now(), self._settings.keep, BATCH_MAX, self._require_lease())

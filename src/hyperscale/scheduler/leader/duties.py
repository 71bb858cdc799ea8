"""What a leader does during one term: fires ticks, promotes, recovers, tidies.

Before every act it looks at the remaining lease on its own clock; every write carries the term's
token. Trouble with the store ends no term: the leader waits, and gives everybody grace afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import astuple

from hyperscale.runtime.logs import logger
from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.errors import (
    NotFound,
    SchedulerError,
    StaleLeader,
    StoreUnavailable,
    VersionConflict,
)
from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.leader.election import Term
from hyperscale.scheduler.leader.liveness import Grace, Hearing, Liveness, judge_workers
from hyperscale.scheduler.leader.probing import Probe, answering, answers
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.queue.emergency_stop import cancel_held
from hyperscale.scheduler.schedules.firing import Decided, decide
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import BATCH_MAX, PAGE_MAX
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.worker.registration import Worker, WorkerEvent

RETRY_S: Final = 1.0
BREATH_S: Final = 0.005
"""Between two looks at the queue, when wake-ups come thick."""
ROUNDS_MAX: Final = 1000
LATENESS_S: Final = 60.0
"""So long a late tick is told of: one that was late tonight is no trouble all day."""
TIDY_BATCH: Final = 200
"""Some 10 ms of a store's time: whoever waits behind it must not notice."""


@dataclass(slots=True)
class Figures:
    """Since the process started; read by status and metrics."""

    fired: int = 0
    promoted: int = 0
    expired: int = 0
    recovered: int = 0
    purged: int = 0
    lateness_s: float = 0.0
    degraded: str = ""
    suspects: tuple[str, ...] = ()
    broken: dict[str, str] | None = None


class Deposed(Exception):
    """The term is over."""


class Duties:
    def __init__(
        self,
        store: Store,
        term: Term,
        settings: CoordinatorSettings,
        now: Callable[[], Instant],
        figures: Figures,
        steady: Callable[[], float] = time.monotonic,
        probe: Probe = answers,
    ) -> None:
        self._store = store
        self._term = term
        self._settings = settings
        self._now = now
        self._figures = figures
        self._steady = steady
        self._probe = probe
        self._hearing = Hearing(steady())
        self._fired_s = steady()
        self._grace = Grace(settings.grace_s, now(), steady())
        self._moved_s = asyncio.get_running_loop().time()
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
            await ended(tasks)
            self._figures.lateness_s = 0.0
        for task in tasks:
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, Deposed):
                raise error

    async def _until_lost(self) -> None:
        """Or until the ticks stand still: a term that does nothing is worse than none."""
        clock = asyncio.get_running_loop().time
        while (left_s := self._term.remaining_s) > 0:
            stalled_in_s = self._moved_s + self._settings.stalled_s - clock()
            if stalled_in_s <= 0:
                self._log.error(events.TICKS_STALLED)
                return
            try:
                async with asyncio.timeout(min(left_s, stalled_in_s)):
                    await self._term.lost.wait()
            except TimeoutError:
                continue

    def _move(self) -> int:
        """The ticks go on; with the token for the next write."""
        self._moved_s = asyncio.get_running_loop().time()
        return self._require_lease()

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
            self._log.error(events.STORE_AWAY, error=str(error))
        self._figures.degraded = str(error)

    def _recovered_store(self) -> None:
        self._figures.degraded = ""
        self._grace.begin(self._steady())
        self._hearing.forget(self._steady())
        self._log.info("the store answers again")

    # Ticks and delayed jobs.

    async def _tick(self) -> None:
        self._move()
        mark = self._store.mark()
        stopped = await self._store.emergency(self._now()) is not None
        up_to_date = stopped or await self._fire()
        if self._steady() - self._fired_s >= LATENESS_S:
            self._figures.lateness_s = 0.0
        await self._promote()
        if self._figures.degraded:
            self._recovered_store()
        wait_s = self._settings.look_s
        if up_to_date and not stopped:
            wait_s = min(wait_s, await self._idle_s())
        if wait_s > 0:
            await self._store.changed(mark, wait_s)
            await asyncio.sleep(BREATH_S)

    async def _idle_s(self) -> float:
        schedule_at = await self._store.next_schedule_at()
        job_at = await self._store.next_due()
        soonest = min((at for at in (schedule_at, job_at) if at is not None), default=None)
        if soonest is None:
            return self._settings.look_s
        return max(0, soonest - self._now()) / SECOND

    async def _fire(self) -> bool:
        """False: what is due has to wait, for the store takes no more or somebody stopped it."""
        for _ in range(ROUNDS_MAX):
            due = await self._store.due_schedules(self._now(), BATCH_MAX)
            if not due:
                return True
            left = iter(due)
            lateness_s = 0.0
            refused: list[SchedulerError] = []
            while (decided := decide(left, now := self._now())).firings:
                refused += await self._fire_slice(decided, now)
                lateness_s = max(lateness_s, decided.lateness_s)
                self._figures.lateness_s = lateness_s
                await asyncio.sleep(0)  # the lease is renewed beside this
                if await self._store.emergency(self._now()) is not None:
                    return False
            if refused:
                self._log.error(events.TICKS_WAIT, error=str(refused[0]), schedules=len(refused))
                return False
        return True

    async def _fire_slice(self, decided: Decided, now: Instant) -> list[SchedulerError]:
        """Those that have to wait."""
        for schedule_id, why in sorted(decided.broken.items()):
            self._log.error(events.SET_ASIDE, schedule_id=schedule_id, error=why)
        outcomes = await self._store.fire(decided.firings, now, self._move())
        self._fired_s = self._steady()
        self._figures.broken = decided.broken or self._figures.broken
        refused: list[SchedulerError] = []
        for outcome in outcomes:
            if isinstance(outcome, StaleLeader | StoreUnavailable):
                raise outcome
            if isinstance(outcome, VersionConflict | NotFound):
                continue  # edited or deleted meanwhile: the next look decides anew
            if isinstance(outcome, SchedulerError):
                refused.append(outcome)
            else:
                self._figures.fired += len(outcome.jobs)
        return refused

    async def _promote(self) -> None:
        for _ in range(ROUNDS_MAX):
            count = await self._store.promote(self._now(), BATCH_MAX, self._move())
            self._figures.promoted += count
            if count == 0:
                return

    # Recovery.

    async def _sweep(self) -> None:
        """Leases that ended: of workers that died between two heartbeats, of jobs past their
        timeout, of claims that never started. And what an emergency stop wants cancelled."""
        emergency = await self._store.emergency(self._now())
        if emergency is not None and emergency.cancel_running:
            await cancel_held(self._store, self._now())
        step_s = self._grace.look(self._now(), self._steady())
        if step_s:
            self._log.warning("the clock was set: nothing is taken away for a while", by_s=step_s)
        if self._figures.degraded or not self._grace.over(self._steady()):
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
        workers = await self._workers()
        verdict = self._judged(workers)
        if verdict.dead:
            asked = [worker for worker in workers if worker.id in verdict.dead]
            answered = await answering(asked, self._probe)
            if answered:
                self._log.warning(events.CUT_OFF, workers=sorted(answered))
            before, verdict = verdict, self._judged(await self._workers(), answered)
            for worker_id in verdict.dead:
                if worker_id in before.dead:  # else it was not asked: next time
                    await self._recover_dead(worker_id)
        if verdict.doubted:
            self._log.warning(events.MASS_SILENCE, workers=verdict.suspects)
        self._figures.suspects = verdict.suspects

    async def _workers(self) -> list[Worker]:
        workers: list[Worker] = []
        for _ in range(ROUNDS_MAX):
            page = await self._store.workers(workers[-1].id if workers else "", PAGE_MAX)
            workers += page
            if len(page) < PAGE_MAX:
                break
        return workers

    def _judged(self, workers: list[Worker], answered: frozenset[str] = frozenset()) -> Liveness:
        silences_s = self._hearing.silences_s(workers, self._now(), self._steady())
        return judge_workers(silences_s, self._settings, answered)

    async def _recover_dead(self, worker_id: str) -> None:
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
        """Batch after batch until nothing is left to do, resting as long as each one took: it keeps
        up with thousands of jobs a second, and takes half of the store's time at most."""
        clock = asyncio.get_running_loop().time
        for _ in range(ROUNDS_MAX):
            began_s = clock()
            aged = await self._store.age(self._now(), TIDY_BATCH, self._require_lease())
            purged = await self._store.purge(
                self._now(), self._settings.keep, TIDY_BATCH, self._require_lease()
            )
            self._figures.purged += purged.jobs
            if max(aged, *astuple(purged)) < TIDY_BATCH:
                return
            await asyncio.sleep(clock() - began_s)

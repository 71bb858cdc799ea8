"""What a leader does when something goes wrong around it: stores that hang or are away, clocks that
jump, errors nobody thought of, piles of old jobs, and people who pull the emergency brake."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace as replace_settings
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.leader.duties import TIDY_BATCH, Duties, Figures
from hyperscale.scheduler.queue import emergency_stop as emergency
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.firing import WALKED_MAX
from hyperscale.scheduler.schedules.schedule import Fired, Firing, Schedule
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import BATCH_MAX, Keep, Purged, StoreLimits, Submission
from hyperscale.scheduler.worker.registration import WorkerBeat
from tests.integration.scheduler.term import (
    EVERY_MINUTE,
    QUICK,
    SPEC,
    Clock,
    add,
    count,
    counted,
    endless,
    held_by_a_worker,
    leading,
)
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.store.cases.harness import NOON, submit_all
from tests.unit.scheduler.store.cases.harness import beat as beat_of


def test_a_store_that_was_away_gives_everybody_grace() -> None:
    class Away(Store):
        away = False

        async def promote(self, *arguments: Any, **named: Any) -> int:
            if self.away:
                raise StoreUnavailable("away")
            return await super().promote(*arguments, **named)

    async def run() -> None:
        store = Away(MemoryGround())
        clock = Clock()
        await held_by_a_worker(store, clock, start=False)
        clock.forward(-50)
        async with leading(store, clock) as figures:
            clock.forward(50)
            store.away = True

            async def degraded() -> bool:
                return bool(figures.degraded)

            await until(degraded)
            clock.forward(70)
            store.away = False

            async def well() -> bool:
                return not figures.degraded

            await until(well)
            await asyncio.sleep(0.2)
            assert figures.expired == 0, "its worker could not renew it either"
            clock.forward(46)

            async def expired() -> bool:
                return figures.expired + figures.recovered >= 1

            await until(expired)

    asyncio.run(run())


def test_an_election_that_is_away_is_told_of_until_it_is_back() -> None:
    class Away(Store):
        away = False

        async def put(self, *arguments: Any) -> Any:
            if self.away:
                raise StoreUnavailable("the election is cut off")
            return await super().put(*arguments)

    async def run() -> None:
        store = Away(MemoryGround())
        settings = SchedulerSettings(worker=False, election_ttl_s=1)
        async with Scheduler(settings, store=store) as scheduler, asyncio.timeout(60):

            async def leads() -> bool:
                return scheduler.leading and not scheduler.status().degraded

            async def told() -> bool:
                return not scheduler.leading and bool(scheduler.status().degraded)

            await until(leads)
            store.away = True
            await until(told)
            assert scheduler.status().degraded == "the election is cut off"
            store.away = False
            await until(leads)

    asyncio.run(run())


def test_a_full_store_is_not_hammered() -> None:
    """Every tick that is refused would otherwise be tried again at once, thousands of times."""

    class Full(Store):
        fires = looks = 0

        async def fire(self, *arguments: Any, **named: Any) -> Any:
            self.fires += 1
            return await super().fire(*arguments, **named)

        async def changed(self, mark: int, timeout_s: float) -> bool:
            self.looks += 1
            return await super().changed(mark, timeout_s)

    async def run() -> None:
        store, clock = Full(MemoryGround(), StoreLimits(jobs_max=0)), Clock()
        await add(store, clock)
        async with leading(store, clock):
            clock.forward(60)

            async def looked() -> bool:
                return store.looks >= 10

            await until(looked)
            assert store.fires <= store.looks + 1

    asyncio.run(run())


def test_a_late_tick_is_told_of_for_a_minute() -> None:
    async def run() -> None:
        store, clock = Store(MemoryGround()), Clock()
        await add(store, clock)
        async with leading(store, clock) as figures:
            clock.forward(70)  # the tick was due 10 s ago

            async def late() -> bool:
                return figures.lateness_s == 10

            async def forgotten() -> bool:
                return figures.lateness_s == 0

            await until(late)
            await store.delete_schedule("m")
            clock.forward(61)
            await until(forgotten)
        assert await count(store) == 1

    asyncio.run(run())


def test_retention_keeps_up_in_small_batches_beside_the_ticks(tmp_path: Path) -> None:
    """Thousands of ended jobs go, a batch at a time, and ticks come meanwhile."""

    class Watched(Store):
        limits: ClassVar[list[int]] = []
        fired_between: ClassVar[list[int]] = []
        fired = 0

        async def purge(
            self, now: Instant, keep: Keep, limit: int = BATCH_MAX, epoch: int = 0
        ) -> Purged:
            self.limits.append(limit)
            self.fired_between.append(self.fired)
            return await super().purge(now, keep, limit, epoch)

        async def fire(self, *arguments: Any, **named: Any) -> Any:
            self.fired += 1
            return await super().fire(*arguments, **named)

    async def run() -> None:
        store = Watched(await SqliteGround.open(tmp_path / "jobs.db"))
        clock = Clock()
        for start in range(0, 3000, 500):
            jobs = [new_job(f"job-{n:05}", SPEC, NOON) for n in range(start, start + 500)]
            await submit_all(store, [Submission(job=each) for each in jobs], NOON)
            await asyncio.gather(*(store.cancel(each.id, NOON) for each in jobs))
        clock.forward(2 * 86_400)
        await add(store, clock)
        slowly = replace_settings(QUICK, tidy_s=3600.0)
        async with leading(store, clock, settings=slowly) as figures:

            async def gone() -> bool:
                clock.forward(60)
                return figures.purged >= 3000

            await until(gone)
        assert set(store.limits) == {TIDY_BATCH}
        assert len(store.limits) >= 3000 / TIDY_BATCH, "one visit was enough for all of them"
        assert store.fired_between[-1] > store.fired_between[0], "ticks did not wait for it"
        await store.close()

    asyncio.run(run())


class Fires(Store):
    """Tells of each call how many ticks it decided, and how often the loop had turned before."""

    def __init__(self) -> None:
        super().__init__(MemoryGround())
        self.walked: list[int] = []
        self.turned: list[int] = []
        self.turns = 0
        self.looks = 0

    async def fire(
        self, firings: Sequence[Firing], now: Instant, epoch: int = 0
    ) -> list[Fired | SchedulerError]:
        self.walked.append(sum(each.missed + len(each.jobs) for each in firings))
        self.turned.append(self.turns)
        return await super().fire(firings, now, epoch)

    async def changed(self, mark: int, timeout_s: float) -> bool:
        self.looks += 1
        return await super().changed(mark, timeout_s)

    async def turn(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


async def add_some(store: Store, clock: Clock, number: int) -> None:
    for i in range(number):
        await schedules.add(store, f"m{i:02}", EVERY_MINUTE, clock())


def test_a_long_absence_is_made_up_for_in_slices_and_others_have_their_turn_between() -> None:
    """The lease is renewed by one of them: decided in one go, a term would end before its writes,
    and the next would have still more to decide."""

    async def run() -> None:
        store, clock = Fires(), Clock()
        await add_some(store, clock, 40)
        clock.forward(86_400)
        turning = asyncio.create_task(store.turn())
        async with leading(store, clock) as figures:

            async def fired() -> bool:
                return figures.fired >= 40 * 3

            await until(fired)
        turning.cancel()
        assert sum(store.walked) == 40 * 1440
        assert max(store.walked) < 2 * WALKED_MAX
        assert all(before < then for before, then in pairwise(store.turned))

    asyncio.run(run())


def test_an_emergency_stop_is_seen_between_two_slices() -> None:
    class Stopped(Fires):
        async def fire(
            self, firings: Sequence[Firing], now: Instant, epoch: int = 0
        ) -> list[Fired | SchedulerError]:
            if not self.walked:
                await emergency.stop(self, "ann", "", False, clock())
                clock.forward(1)
            return await super().fire(firings, now, epoch)

    clock = Clock()

    async def run() -> None:
        store = Stopped()
        await add_some(store, clock, 40)
        clock.forward(86_400)
        async with leading(store, clock):

            async def looked() -> bool:
                return store.looks >= 3

            await until(looked)
        assert sum(store.walked) < 2 * WALKED_MAX

    asyncio.run(run())


def test_during_an_emergency_stop_no_tick_fires_and_afterwards_the_misfire_policy_judges() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        await add(store, clock)
        await emergency.stop(store, "ann", "", False, clock())
        async with leading(store, clock):
            for _ in range(10):
                clock.forward(60)
                await asyncio.sleep(0.03)
            assert await count(store) == 0
            await emergency.resume(store)
            clock.forward(1)
            await until(counted(store, 1))
            clock.forward(60)
            await until(counted(store, 3))
        known = await store.schedule("m")
        assert known is not None
        assert (known.fired, known.missed) == (3, 8), "one for the late ones, one on time, the next"

    asyncio.run(run())


def test_the_leader_cancels_what_slipped_through_an_emergency_stop() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        await held_by_a_worker(store, clock, start=False)
        async with leading(store, clock):
            await emergency.stop(store, "ann", "", True, clock())
            clock.forward(1)

            async def cancelled() -> bool:
                job = await store.job("job")
                return job is not None and job.state is JobState.CANCELLED

            await until(cancelled)

    asyncio.run(run())


def test_a_clock_that_jumps_takes_nothing_from_living_workers() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        steady = Clock()
        held = await held_by_a_worker(store, clock, start=True)
        await store.raise_epoch(1)
        figures = Figures()
        term = Duties(store, endless(1), QUICK, clock, figures, steady.steady)
        task = asyncio.create_task(term.run())
        session = (await store.workers())[0].session
        for second in range(1, 61):  # past the grace after the takeover, heard every second
            clock.forward(1)
            steady.forward(1)
            await store.report(beat_of(held), clock())
            await store.beat(
                WorkerBeat(worker_id="worker-1", session=session, sequence=second, running=1),
                clock(),
            )
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        for jump_s in (7200, -14_400):
            clock.forward(jump_s)
            steady.forward(1)
            await asyncio.sleep(0.2)
        assert (figures.expired, figures.recovered) == (0, 0)
        task.cancel()
        await asyncio.wait([task])
        job = await store.job("job")
        assert job is not None
        assert job.state is JobState.EXECUTING

    asyncio.run(run())


def test_ticks_that_stand_still_end_the_term() -> None:
    """A call of the store that never returns would stop them for ever, the process looking well."""

    class Stuck(Store):
        async def due_schedules(self, now: Instant, limit: int = BATCH_MAX) -> list[Schedule]:
            await asyncio.Event().wait()
            return []

    async def run() -> None:
        clock = Clock()
        impatient = replace_settings(QUICK, stalled_s=0.2)
        async with asyncio.timeout(30):
            await Duties(
                Stuck(MemoryGround()), endless(1), impatient, clock, Figures(), clock.steady
            ).run()

    asyncio.run(run())


def test_an_error_nobody_thought_of_costs_a_term_and_not_the_ticks() -> None:
    class Odd(Store):
        trouble = 1

        async def due_schedules(self, now: Instant, limit: int = BATCH_MAX) -> list[Schedule]:
            if self.trouble:
                self.trouble -= 1
                raise KeyError("nobody thought of this")
            return await super().due_schedules(now, limit)

    async def run() -> None:
        store = Odd(MemoryGround())
        settings = SchedulerSettings(store="memory:", worker=False)
        clock = Clock()
        async with asyncio.timeout(60), Scheduler(settings, store=store, now=clock) as running:
            await running.add_schedule("m", EVERY_MINUTE)
            clock.forward(60)
            await until(counted(store, 1))
            assert running.coordinator.terms == 2

    asyncio.run(run())


def test_the_service_stops_and_resumes_everything(tmp_path: Path) -> None:
    async def run() -> None:
        settings = SchedulerSettings(
            store=f"sqlite:{tmp_path / 'jobs.db'}",
            spool=str(tmp_path / "spool"),
            python_allow=("time:sleep",),
        )
        nap = JobSpec(name="nap", kind="python", payload={"call": "time:sleep", "args": "[60]"})
        quick = JobSpec(name="nap", kind="python", payload={"call": "time:sleep", "args": "[0]"})
        async with asyncio.timeout(90), Scheduler(settings) as running:
            long = (await running.submit(nap)).job.id

            async def is_in(job_id: str, state: JobState) -> bool:
                job = await running.store.job(job_id)
                return job is not None and job.state is state

            await until(lambda: is_in(long, JobState.EXECUTING))
            stopped = await running.emergency_stop("ann", "fire", cancel_running=True)
            assert await running.emergency() == stopped
            await until(lambda: is_in(long, JobState.CANCELLED))
            waits = (await running.submit(quick)).job.id
            await asyncio.sleep(1.5)  # longer than a worker waits between two claims
            assert await is_in(waits, JobState.PENDING)
            assert await running.emergency_resume() == stopped
            await until(lambda: is_in(waits, JobState.COMPLETED))

    asyncio.run(run())

"""Coordinators on real stores: ticks, takeovers, recovery, and what one may not do any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperscale.scheduler.errors import StaleLeader
from hyperscale.scheduler.instants import SECOND, after
from hyperscale.scheduler.leader.duties import Duties, Figures
from hyperscale.scheduler.leader.election import Term
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.reports import Accepted, Refused, Started
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import Overlap, ScheduleDefinition
from hyperscale.scheduler.service import Scheduler, wall_clock
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, JobFilter, Submission
from hyperscale.scheduler.worker.registration import WorkerState
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
from tests.unit.scheduler.store.cases.harness import NOON, completed


def test_ticks_become_jobs_once_through_a_change_of_leader(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        clock = Clock()
        await add(store, clock)
        async with leading(store, clock, 1):
            clock.forward(60)
            await until(counted(store, 1))
        clock.forward(60)  # nobody leads
        async with leading(store, clock, 2), leading(store, clock, 3):
            await until(counted(store, 2))
            clock.forward(60)
            await until(counted(store, 3))
            clock.forward(-30)
            await asyncio.sleep(0.2)
        jobs = (await store.jobs(JobFilter())).jobs
        assert sorted(job.tick or 0 for job in jobs) == [after(NOON, 60 * n) for n in (1, 2, 3)]
        known = await store.schedule("m")
        assert known is not None
        assert (known.fired, known.missed) == (3, 0)
        await store.close()

    asyncio.run(run())


def test_a_replaced_leader_ends_its_term_and_changes_nothing() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        await add(store, clock)
        await store.raise_epoch(5)
        clock.forward(60)
        old = Duties(store, endless(4), QUICK, clock, Figures())
        async with asyncio.timeout(30):
            await old.run()
        assert await count(store) == 0
        with pytest.raises(StaleLeader):
            await store.promote(clock(), epoch=4)

    asyncio.run(run())


def test_a_leader_whose_lease_is_over_acts_no_more() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock, monotonic = Clock(), [0.0]
        await add(store, clock)
        term = Term(1, 8.0, lambda: monotonic[0])
        monotonic[0] = 9.0  # it was paused: nobody told it anything yet
        clock.forward(60)
        async with asyncio.timeout(30):
            await Duties(store, term, QUICK, clock, Figures()).run()
        assert await count(store) == 0

    asyncio.run(run())


def test_delayed_jobs_become_claimable_when_due() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        job = new_job("later", SPEC, NOON, due_at=after(NOON, 5))
        await store.submit(Submission(job=job), NOON)
        async with leading(store, clock) as figures:
            clock.forward(5)

            async def promoted() -> bool:
                return (await store.counts()).ready == 1

            await until(promoted)
            assert figures.promoted == 1

    asyncio.run(run())


def test_overlap_cancel_previous_makes_way_for_the_new_one() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        await add(store, clock, overlap=Overlap.CANCEL_PREVIOUS)
        async with leading(store, clock):
            clock.forward(60)
            await until(counted(store, 1))
            (held,) = await store.claim(Claim(worker="w-1"), clock())
            await store.report(
                Started(job_id=held.id, worker="w-1", token=held.token, lease_s=600), clock()
            )
            clock.forward(60)
            await until(counted(store, 2))
        job = await store.job(held.id)
        assert job is not None
        assert job.cancel_requested
        assert (await store.counts()).waiting == 1

    asyncio.run(run())


def test_a_dead_workers_job_is_recovered_and_its_late_report_refused() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        held = await held_by_a_worker(store, clock, start=True)
        async with leading(store, clock) as figures:
            clock.forward(44)
            await asyncio.sleep(0.2)
            assert figures.recovered == 0, "grace after takeover"
            clock.forward(2)

            async def recovered() -> bool:
                return figures.recovered == 1

            await until(recovered)
        job = await store.job("job")
        assert job is not None
        assert (job.state, job.retries) == (JobState.PENDING, 1)
        assert job.due_at > clock.now - SECOND
        assert isinstance(await store.report(completed(held), clock()), Refused)
        (worker,) = await store.workers()
        assert worker.state is WorkerState.UNAVAILABLE

    asyncio.run(run())


def test_a_claim_that_never_started_goes_back_free_of_charge() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        await store.submit(Submission(job=new_job("job", SPEC, NOON)), NOON)
        await store.claim(Claim(worker="nobody", lease_s=60), NOON)
        async with leading(store, clock) as figures:
            clock.forward(61)

            async def expired() -> bool:
                return figures.expired == 1

            await until(expired)
        job = await store.job("job")
        assert job is not None
        assert (job.state, job.retries, job.claims_lost) == (JobState.PENDING, 0, 1)

    asyncio.run(run())


def test_ten_thousand_schedules_due_at_once_fire_once_each(tmp_path: Path) -> None:
    """How long it takes is benchmarks/scheduler.py's question."""

    async def run() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        clock = Clock()
        for start in range(0, 10_000, 1000):
            names = (f"s-{number:05}" for number in range(start, start + 1000))
            await asyncio.gather(
                *(schedules.add(store, name, EVERY_MINUTE, clock()) for name in names)
            )
        async with leading(store, clock):
            clock.forward(60)

            async def all_made() -> bool:
                return (await store.counts()).states[JobState.PENDING] >= 10_000

            await until(all_made)
        assert (await store.counts()).states[JobState.PENDING] == 10_000
        await store.close()

    asyncio.run(run())


def test_a_job_due_in_hours_is_delivered_once() -> None:
    """Where a visibility timeout would deliver it again and again."""

    async def run() -> None:
        store = Store(MemoryGround())
        clock = Clock()
        job = new_job("later", SPEC, NOON, due_at=after(NOON, 3 * 3600))
        await store.submit(Submission(job=job), NOON)
        async with leading(store, clock):
            for _ in range(17):
                clock.forward(600)
                await asyncio.sleep(0.03)
                assert await store.claim(Claim(worker="w-1"), clock()) == []
            clock.forward(600)
            (held,) = await store.claim(Claim(worker="w-1", lease_s=86_400), clock())
            await store.report(
                Started(job_id="later", worker="w-1", token=held.token, lease_s=86_400), clock()
            )
            for _ in range(6):
                clock.forward(3600)
                await asyncio.sleep(0.03)
                assert await store.claim(Claim(worker="w-2"), clock()) == []
        assert isinstance(await store.report(completed(held), clock()), Accepted)
        assert len(await store.attempts("later")) == 1

    asyncio.run(run())


def test_the_service_leads_runs_and_hands_over(tmp_path: Path) -> None:
    async def run() -> None:
        settings = SchedulerSettings(
            store=f"sqlite:{tmp_path / 'jobs.db'}",
            election_ttl_s=2.0,
            spool=str(tmp_path / "spool"),
            python_allow=("os:getpid",),
            address="http://first",
        )
        spec = JobSpec(name="pid", kind="python", payload={"call": "os:getpid"})
        async with asyncio.timeout(90), Scheduler(settings) as first:

            async def leads() -> bool:
                return first.leading

            await until(leads)
            leader = await first.leader()
            assert leader is not None
            assert (leader.node, leader.address) == (first.node, "http://first")
            submitted = await first.submit(spec, key="once")
            again = await first.submit(spec, key="once")
            assert (again.job.id, again.created) == (submitted.job.id, False)

            async def done() -> bool:
                job = await first.store.job(submitted.job.id)
                return job is not None and job.state is JobState.COMPLETED

            await until(done)
            await first.add_schedule("now", ScheduleDefinition(name="n", cron="@yearly", job=spec))
            assert len((await first.trigger("now")).jobs) == 1
            epoch = first.epoch
            second = Scheduler(settings)
            await second.start()
            assert not second.leading
            assert first.status().leading
            await first.stop()

            async def took_over() -> bool:
                return second.leading

            await until(took_over)
            assert second.epoch > epoch
            await second.stop()

    asyncio.run(run())


def test_the_wall_clock_is_utc_microseconds() -> None:
    assert wall_clock() > 1_700_000_000 * SECOND

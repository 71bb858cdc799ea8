"""Cases of sweeps, listings, workers, values and the audit chain."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from hyperscale.scheduler.errors import (
    InvalidJob,
    NotFound,
    StaleLeader,
    StaleSession,
    StoreFull,
    VersionConflict,
)
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import Failure, JobState
from hyperscale.scheduler.queue.lifecycle import CLAIMS_LOST_MAX
from hyperscale.scheduler.store.audit import Audit, broken_at
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter, Keep
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerEvent, WorkerState
from tests.unit.scheduler.store.cases.harness import (
    LIMITS,
    NOON,
    at,
    beat,
    completed,
    failed,
    finish,
    firing,
    job,
    keyed,
    scenario,
    schedule,
    start_one,
    submit,
    take,
    take_one,
)


def worker(worker_id: str = "w-1", instance: str = "one", now: int = NOON) -> Worker:
    return Worker(id=worker_id, instance=instance, capacity=2, started_at=now, seen_at=now)


class SweepCases:
    @scenario
    async def test_a_claim_never_started_comes_back_free(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store, lease_s=60.0)
        assert await store.expire(at(59)) == []
        (back,) = await store.expire(at(60))
        assert (back.state, back.retries, back.claims_lost) == (JobState.PENDING, 0, 1)
        assert back.token > held.token
        assert await store.expire(at(60)) == []
        assert [a.outcome for a in await store.attempts("a")] == [Outcome.LOST]

    @scenario
    async def test_what_kills_every_worker_ends(self, store: Store) -> None:
        await submit(store, job("a"))
        now = NOON
        for _ in range(CLAIMS_LOST_MAX):
            now += at(100) - NOON
            await take_one(store, now=now, lease_s=1.0)
            now += at(100) - NOON
            (lost,) = await store.expire(now)
        assert (lost.state, lost.failure) == (JobState.FAILED, Failure.NEVER_STARTED)
        assert len(await store.letters()) == 1

    @scenario
    async def test_a_lost_run_is_retried_with_backoff_then_given_up(self, store: Store) -> None:
        await submit(store, job("a"))
        now = NOON
        for retries in (1, 2):
            await start_one(store, now=now)
            now += at(100) - NOON
            (lost,) = await store.expire(now)
            assert (lost.retries, lost.failure) == (retries, Failure.WORKER_LOST)
            assert lost.due_at > now
            now = lost.due_at + at(10) - NOON
        await start_one(store, now=now)
        (lost,) = await store.expire(now + at(100) - NOON)
        assert lost.state is JobState.FAILED

    @scenario
    async def test_heartbeats_keep_the_lease(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        for second in range(30, 300, 30):
            await store.report(beat(held), at(second))
            assert await store.expire(at(second)) == []
        assert len(await store.expire(at(270 + 45))) == 1

    @scenario
    async def test_no_heartbeat_outlives_the_timeout(self, store: Store) -> None:
        await submit(store, job("a", timeout_s=60.0))
        held = await start_one(store)
        for second in range(30, 90, 15):
            await store.report(beat(held), at(second))
        (lost,) = await store.expire(at(75))
        assert lost.failure is Failure.TIMEOUT

    @scenario
    async def test_a_lost_workers_jobs_are_recovered_at_once(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)), job("c", at(2)))
        await start_one(store, "w-1", at(2))
        await take_one(store, "w-1", at(2))
        await start_one(store, "w-2", at(2))
        recovered = await store.recover_worker("w-1", at(3))
        assert sorted(each.id for each in recovered) == ["a", "b"]
        assert all(each.state is JobState.PENDING and not each.worker for each in recovered)
        assert await store.recover_worker("w-1", at(3)) == []
        other = await store.job("c")
        assert other is not None
        assert other.worker == "w-2"

    @scenario
    async def test_two_sweepers_recover_each_job_once(self, store: Store) -> None:
        await submit(store, *(job(f"j{i:02}") for i in range(20)))
        await take(store, limit=20)
        swept = await asyncio.gather(*(store.expire(at(100)) for _ in range(4)))
        assert sorted(each.id for sweep in swept for each in sweep) == [
            f"j{i:02}" for i in range(20)
        ]

    @scenario
    async def test_a_replaced_leader_sweeps_nothing(self, store: Store) -> None:
        await submit(store, job("a"))
        await take_one(store)
        await store.raise_epoch(3)
        with pytest.raises(StaleLeader):
            await store.expire(at(100), epoch=2)
        with pytest.raises(StaleLeader):
            await store.recover_worker("w-1", at(100), epoch=2)
        assert len(await store.expire(at(100), epoch=3)) == 1

    @scenario
    async def test_nobody_waits_for_ever(self, store: Store) -> None:
        await submit(store, job("bulk", priority=550), job("zero", priority=0))
        half_hour = 1800
        assert await store.age(at(half_hour - 1)) == 0
        assert await store.age(at(half_hour)) == 1
        assert await store.age(at(half_hour)) == 0
        aged = await store.job("bulk")
        assert aged is not None
        assert (aged.rank, aged.spec.priority) == (500, 550)
        await submit(store, job("new", at(half_hour), priority=520))
        order = [each.id for each in await take(store, limit=5, now=at(half_hour))]
        assert order == ["zero", "bulk", "new"]

    @scenario
    async def test_what_was_due_before_it_was_made_waits_since_it_was_made(
        self, store: Store
    ) -> None:
        old = job("backfill", at(5), due_at=at(-86_400 * 365), priority=2000)
        await submit(store, old, job("urgent", at(6), priority=1))
        assert await store.age(at(1804)) == 0
        assert await store.age(at(1805)) == 1
        aged = await store.job("backfill")
        assert aged is not None
        assert aged.rank == 1950
        assert (await take_one(store, now=at(1805))).id == "urgent"

    @scenario
    async def test_ageing_goes_on_in_steps(self, store: Store) -> None:
        await submit(store, job("bulk", due_at=at(10), priority=120))
        await store.promote(at(10))
        ranks = []
        for steps in (1, 2, 3, 4):
            await store.age(at(10 + 1800 * steps))
            aged = await store.job("bulk")
            assert aged is not None
            ranks.append(aged.rank)
        assert ranks == [70, 20, 0, 0]

    @scenario
    async def test_keeping_ends(self, store: Store) -> None:
        await submit(store, job("done"), job("dead", at(1)), job("alive", at(2)))
        held = await start_one(store)
        await store.report(completed(held, log="output"), NOON)
        dead = await take_one(store, now=at(1))
        await store.report(failed(dead, Failure.PERMANENT), at(1))
        keep = Keep(job_s=100, log_s=200, attempt_s=300, letter_s=400)
        gone = await store.purge(at(50), keep)
        assert (gone.jobs, gone.logs, gone.attempts, gone.letters) == (0, 0, 0, 0)
        gone = await store.purge(at(150), keep)
        assert (gone.jobs, gone.logs) == (2, 0)
        assert await store.job("done") is None
        assert len(await store.attempts("done")) == 1
        assert await store.log("done", held.token) == "output"
        gone = await store.purge(at(250), keep)
        assert gone.logs == 1
        assert await store.log("done", held.token) is None
        gone = await store.purge(at(350), keep)
        assert gone.attempts == 2
        assert len(await store.letters()) == 1
        gone = await store.purge(at(450), keep)
        assert gone.letters == 1
        assert await store.job("alive") is not None
        assert (await store.counts()).states[JobState.COMPLETED] == 0

    @scenario
    async def test_letters_are_bounded(self, store: Store) -> None:
        many = LIMITS.letters_max + 5
        await submit(store, *(job(f"j{i:02}", at(i)) for i in range(many)))
        for held in await take(store, limit=many, now=at(many)):
            now = held.created_at + 100_000_000
            await store.report(failed(held, Failure.PERMANENT), now)
        assert (await store.purge(at(500), Keep())).letters == 5
        (oldest,) = await store.letters(limit=1)
        assert oldest.id == "j05"

    @scenario
    async def test_beyond_a_number_the_oldest_go(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        ticks = [at(second) for second in (60, 120, 180)]
        await store.fire([firing(known, *ticks, now=at(200))], at(200))
        for second, held in enumerate(await take(store, limit=3, now=at(200), start=True)):
            await store.report(completed(held, log="output"), at(300 + second))
            await store.audit(Audit(at=at(300), actor="a", action="b", target="c", outcome="ok"))
        keep = Keep(jobs_max=2, logs_max=1, attempts_max=1, audits_max=1, history_max=2)
        gone = await store.purge(at(400), keep)
        assert (gone.jobs, gone.logs, gone.attempts, gone.audits, gone.history) == (1, 2, 2, 2, 1)
        gone = await store.purge(at(400), keep)
        assert (gone.jobs, gone.logs, gone.attempts, gone.audits, gone.history) == (0, 0, 0, 0, 0)
        assert [run.tick for run in await store.history("nightly")] == [at(180), at(120)]
        assert [row.sequence for row in await store.audits()] == [3]

    @scenario
    async def test_history_by_schedule_outlives_jobs_and_attempts(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        await store.create_schedule(schedule("night"))
        await store.fire([firing(known, at(60), at(120), now=at(200))], at(200))
        one, two = await take(store, limit=2, now=at(200), start=True)
        figures = {"rate": 12.5}
        await store.report(replace(completed(one), figures=figures), at(300))
        await store.report(failed(two, Failure.PERMANENT, "no such file"), at(310))
        assert (await store.purge(at(10_000), Keep(job_s=1, attempt_s=1))).jobs == 2
        assert await store.job(one.id) is None
        newest, oldest = await store.history("nightly")
        assert (newest.job_id, newest.error) == (two.id, "no such file")
        assert (newest.state, oldest.state) == (JobState.FAILED, JobState.COMPLETED)
        assert (oldest.figures, oldest.tick, oldest.worker) == (figures, at(60), "w-1")
        assert await store.history("nightly", newest.key) == [oldest]
        assert await store.history("night") == []

    @scenario
    async def test_what_has_ended_takes_no_room(self, store: Store) -> None:
        await submit(store, *(job(f"j{i:05}") for i in range(LIMITS.line_max)))
        small = Store(store._ground, replace(LIMITS, jobs_max=LIMITS.line_max))
        with pytest.raises(StoreFull):
            await submit(small, job("one-more"))
        await finish(store, await start_one(store))
        await small.cancel("j00001", NOON)
        await submit(small, job("one-more"), job("and-another"))
        with pytest.raises(StoreFull):
            await submit(small, job("too-many"))
        assert (await store.purge(at(10), Keep(job_s=0))).jobs == 2
        with pytest.raises(StoreFull):
            await submit(small, job("too-many"))

    @scenario
    async def test_a_dedup_entry_goes_with_its_window(self, store: Store) -> None:
        await store.submit(keyed(job("a"), "k", window_s=60), NOON)
        assert (await store.purge(at(59), Keep())).dedups == 0
        assert (await store.purge(at(60), Keep())).dedups == 1


class ListingCases:
    @scenario
    async def test_pages_newest_first(self, store: Store) -> None:
        await submit(store, *(job(f"j{i}", at(i // 2)) for i in range(7)))
        seen: list[str] = []
        cursor = ""
        sizes = []
        while True:
            page = await store.jobs(JobFilter(), cursor, 3)
            seen += [each.id for each in page.jobs]
            sizes.append(len(page.jobs))
            await submit(store, job(f"new{len(seen)}", at(100)))
            cursor = page.cursor
            if not cursor:
                break
        assert seen == ["j6", "j5", "j4", "j3", "j2", "j1", "j0"]
        assert sizes == [3, 3, 1]
        with pytest.raises(InvalidJob):
            await store.jobs(JobFilter(), "nonsense")

    @scenario
    async def test_filters(self, store: Store) -> None:
        await submit(
            store,
            job("a", at(0), name="smoke", tags={"team": "red"}),
            job("b", at(1), name="smoke", tags={"team": "blue", "env": "prod"}),
            job("c", at(2), name="load", tags={"team": "red"}),
        )
        held = await start_one(store, "w-9", at(2))
        assert held.id == "a"

        async def found(**wanted: object) -> list[str]:
            page = await store.jobs(JobFilter(**wanted))  # type: ignore[arg-type]
            return [each.id for each in page.jobs]

        assert await found(name="smoke") == ["b", "a"]
        assert await found(tags={"team": "red"}) == ["c", "a"]
        assert await found(tags={"team": "blue", "env": "prod"}) == ["b"]
        assert await found(state=JobState.PENDING) == ["c", "b"]
        assert await found(state=JobState.EXECUTING, name="smoke") == ["a"]
        assert await found(worker="w-9") == ["a"]
        assert await found(kind="http") == []
        assert await found(schedule_id="") == ["c", "b", "a"]
        assert await found(schedule_id="nightly") == []

    @scenario
    async def test_a_long_list_is_paged_through_a_filter(self, store: Store) -> None:
        names = ["rare" if i % 100 == 0 else "common" for i in range(500)]
        everything = [job(f"j{i:03}", at(i), name=name) for i, name in enumerate(names)]
        await submit(store, *everything)
        page = await store.jobs(JobFilter(name="rare"), limit=2)
        assert [each.id for each in page.jobs] == ["j400", "j300"]
        page = await store.jobs(JobFilter(name="rare"), page.cursor, limit=10)
        assert [each.id for each in page.jobs] == ["j200", "j100", "j000"]
        assert page.cursor == ""

    @scenario
    async def test_counts(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)), job("c", due_at=at(900)))
        await finish(store, await start_one(store))
        counts = await store.counts()
        assert counts.states[JobState.COMPLETED] == 1
        assert counts.states[JobState.PENDING] == 2
        assert sum(counts.states.values()) == 3
        assert (counts.ready, counts.delayed, counts.waiting) == (1, 1, 0)


class RegistryCases:
    @scenario
    async def test_a_worker_id_belongs_to_one_process(self, store: Store) -> None:
        first = await store.register(worker(), NOON, 45)
        again = await store.register(worker(), at(1), 45)
        assert again.session > first.session
        with pytest.raises(StaleSession):
            await store.register(worker(instance="two"), at(2), 45)
        second = await store.register(worker(instance="two"), at(46), 45)
        assert second.session > again.session
        old = WorkerBeat(worker_id="w-1", session=again.session, sequence=1, running=0)
        with pytest.raises(StaleSession):
            await store.beat(old, at(47))

    @scenario
    async def test_drained_stays_drained_through_a_silence(self, store: Store) -> None:
        """Taken for dead and heard again, it still belongs to whoever drained it."""
        known = await store.register(worker(), NOON, 45)
        await store.move_worker("w-1", WorkerEvent.DRAIN)
        await store.move_worker("w-1", WorkerEvent.LOST)
        said = WorkerBeat(worker_id="w-1", session=known.session, sequence=1, running=0)
        assert (await store.beat(said, at(60))).state is WorkerState.DRAINING
        again = await store.register(worker(), at(61), 45)
        assert again.state is WorkerState.DRAINING
        await submit(store, job("a"))
        assert await take(store, now=at(62)) == []
        await store.move_worker("w-1", WorkerEvent.UNDRAIN)
        assert len(await take(store, now=at(63))) == 1
        later = await store.register(worker(instance="two"), at(200), 45)
        assert later.state is WorkerState.AVAILABLE

    @scenario
    async def test_heartbeats_newest_wins_and_load_decides(self, store: Store) -> None:
        known = await store.register(worker(), NOON, 45)

        def said(sequence: int, running: int, **more: object) -> WorkerBeat:
            return WorkerBeat(
                worker_id="w-1",
                session=known.session,
                sequence=sequence,
                running=running,
                **more,  # type: ignore[arg-type]
            )

        assert (await store.beat(said(2, 2), at(1))).state is WorkerState.BUSY
        late = await store.beat(said(1, 0), at(2))
        assert (late.state, late.seen_at) == (WorkerState.BUSY, at(1))
        assert (await store.beat(said(3, 1), at(3))).state is WorkerState.AVAILABLE
        assert (await store.move_worker("w-1", WorkerEvent.DRAIN)).state is WorkerState.DRAINING
        assert (await store.beat(said(4, 0), at(4))).state is WorkerState.DRAINING
        gone = await store.beat(said(5, 0, leaving=True), at(5))
        assert gone.state is WorkerState.UNAVAILABLE
        assert await store.workers() == [gone]
        await store.register(worker(instance="two"), at(6), 45)
        with pytest.raises(NotFound):
            await store.beat(replace(said(6, 0), worker_id="w-2"), at(6))

    @scenario
    async def test_a_drained_worker_gets_nothing_from_that_moment_until_it_is_back(
        self, store: Store
    ) -> None:
        known = await store.register(worker(), NOON, 45)
        await submit(store, job("a"), job("b", at(1)))
        await store.move_worker("w-1", WorkerEvent.DRAIN)
        assert await take(store, now=at(1)) == []
        assert [each.id for each in await take(store, "w-2", now=at(1))] == ["a"]
        back = await store.move_worker("w-1", WorkerEvent.UNDRAIN)
        assert back.state is WorkerState.AVAILABLE
        assert [each.id for each in await take(store, now=at(1))] == ["b"]
        said = WorkerBeat(worker_id="w-1", session=known.session, sequence=1, running=1)
        assert (await store.beat(said, at(2))).state is WorkerState.AVAILABLE

    @scenario
    async def test_workers_are_listed_bounded_and_removed(self, store: Store) -> None:
        for i in range(LIMITS.workers_max):
            await store.register(worker(f"w-{i:02}"), at(i), 45)
        with pytest.raises(StoreFull):
            await store.register(worker("w-more"), NOON, 45)
        await store.remove_worker("w-00")
        with pytest.raises(NotFound):
            await store.remove_worker("w-00")
        assert [each.id for each in await store.workers(limit=2)] == ["w-01", "w-02"]
        assert (await store.purge(at(5), Keep(worker_s=0))).workers == 5

    @scenario
    async def test_values_change_only_from_what_was_read(self, store: Store) -> None:
        assert await store.get("leader") is None
        first = await store.put("leader", b"one", 0)
        with pytest.raises(VersionConflict):
            await store.put("leader", b"two", 0)
        second = await store.put("leader", b"two", first.version)
        assert second.version > first.version
        assert await store.get("leader") == second
        with pytest.raises(VersionConflict):
            await store.delete("leader", first.version)
        await store.delete("leader", second.version)
        third = await store.put("leader", b"three", 0)
        assert third.version > second.version
        with pytest.raises(InvalidJob):
            await store.put("big", bytes(70_000), 0)

    @scenario
    async def test_one_of_many_wins_a_value(self, store: Store) -> None:
        outcomes = await asyncio.gather(
            *(store.put("leader", b"%d" % i, 0) for i in range(20)), return_exceptions=True
        )
        losers = [outcome for outcome in outcomes if isinstance(outcome, VersionConflict)]
        assert len(losers) == 19

    @scenario
    async def test_the_audit_chain_holds_and_shows_edits(self, store: Store) -> None:
        await asyncio.gather(
            *(
                store.audit(
                    Audit(at=at(i), actor="ann", action="cancel", target=f"j{i}", outcome="ok")
                )
                for i in range(10)
            )
        )
        rows = await store.audits()
        assert [row.sequence for row in rows] == list(range(1, 11))
        assert broken_at(rows) is None
        assert await store.audits(after=8) == rows[8:]
        assert broken_at(rows[5:], rows[4]) is None
        edited = [*rows[:3], replace(rows[3], actor="bob"), *rows[4:]]
        assert broken_at(edited) == 4
        removed = rows[:3] + rows[4:]
        assert broken_at(removed) == 5

    @scenario
    async def test_the_audit_chain_ends_without_a_hole(self, store: Store) -> None:
        for second in (0, 1000, 1, 2, 300):  # the second under a clock that stood ahead
            row = Audit(at=at(second), actor="ann", action="x", target="t", outcome="ok")
            await store.audit(row)
        keep = Keep(audit_s=100)
        assert (await store.purge(at(50), keep)).audits == 0
        assert (await store.purge(at(450), keep)).audits == 1
        first, *rows = await store.audits()
        assert [row.sequence for row in (first, *rows)] == [2, 3, 4, 5]
        assert broken_at(rows, first) is None
        assert (await store.purge(at(1100), keep, limit=3)).audits == 3
        assert [row.sequence for row in await store.audits()] == [5]

"""Cases of submitting, deduplicating, ordering and claiming."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.scheduler.errors import AlreadyExists, DedupConflict, StaleLeader, StoreFull
from hyperscale.scheduler.queue.job import Failure, JobState
from hyperscale.scheduler.queue.reports import Accepted
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import BATCH_MAX, Claim, Keep, Submission, Submitted
from tests.unit.scheduler.store.cases.harness import (
    LIMITS,
    NOON,
    at,
    failed,
    finish,
    job,
    keyed,
    scenario,
    start_one,
    submit,
    submit_all,
    take,
    take_one,
)


class JobCases:
    @scenario
    async def test_a_submitted_job_is_found_as_it_was(self, store: Store) -> None:
        mine = job("a", payload={"url": "http://x/ü"}, tags={"team": "red"}, priority=100)
        await submit(store, mine)
        assert await store.job("a") == mine
        assert await store.job("b") is None

    @scenario
    async def test_the_same_submission_twice_is_one_job(self, store: Store) -> None:
        mine = job("a")
        await submit(store, mine)
        again = await store.submit(Submission(job=mine), at(1))
        assert again == Submitted(mine, created=False)
        with pytest.raises(AlreadyExists):
            await store.submit(Submission(job=job("a", name="other")), at(1))

    @scenario
    async def test_a_batch_answers_in_place(self, store: Store) -> None:
        await submit(store, job("b"))
        outcomes = await submit_all(
            store,
            [
                Submission(job=job("a")),
                Submission(job=job("b", name="x")),
                Submission(job=job("c")),
            ],
            NOON,
        )
        assert isinstance(outcomes[0], Submitted)
        assert isinstance(outcomes[1], AlreadyExists)
        assert isinstance(outcomes[2], Submitted)

    @scenario
    async def test_a_full_store_refuses(self, store: Store) -> None:
        crowd = [Submission(job=job(f"j{i:05}")) for i in range(LIMITS.jobs_max)]
        for start in range(0, len(crowd), BATCH_MAX):
            await submit_all(store, crowd[start : start + BATCH_MAX], NOON)
        with pytest.raises(StoreFull):
            await store.submit(Submission(job=job("one-more")), NOON)
        assert await store.job("one-more") is None

    @scenario
    async def test_a_key_gives_the_original_whatever_became_of_it(self, store: Store) -> None:
        assert (await store.submit(keyed(job("a"), "k"), NOON)).created
        for now in (NOON, at(10)):
            again = await store.submit(keyed(job("b", now), "k"), now)
            assert (again.job.id, again.created) == ("a", False)
        await finish(store, await start_one(store))
        again = await store.submit(keyed(job("c", at(20)), "k"), at(20))
        assert (again.job.id, again.job.state) == ("a", JobState.COMPLETED)
        assert await store.job("b") is None

    @scenario
    async def test_a_key_with_other_content_is_a_conflict(self, store: Store) -> None:
        await store.submit(keyed(job("a"), "k", "one"), NOON)
        with pytest.raises(DedupConflict) as conflict:
            await store.submit(keyed(job("b"), "k", "two"), NOON)
        assert conflict.value.job_id == "a"

    @scenario
    async def test_a_key_is_free_after_its_window(self, store: Store) -> None:
        await store.submit(keyed(job("a"), "k", window_s=60), NOON)
        assert not (await store.submit(keyed(job("b", at(59)), "k"), at(59))).created
        assert (await store.submit(keyed(job("c", at(60)), "k", "other"), at(60))).created

    @scenario
    async def test_a_hundred_at_once_with_one_key_are_one_job(self, store: Store) -> None:
        answers = await asyncio.gather(
            *(store.submit(keyed(job(f"j{i}"), "k"), NOON) for i in range(100))
        )
        assert len({answer.job.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
        assert (await store.counts()).states[JobState.PENDING] == 1

    @scenario
    async def test_a_job_stays_as_long_as_its_dedup_window(self, store: Store) -> None:
        await store.submit(keyed(job("a"), "k", window_s=10 * 86_400), NOON)
        await finish(store, await start_one(store))
        assert (await store.purge(at(5 * 86_400), Keep())).jobs == 0
        again = await store.submit(keyed(job("b", at(5 * 86_400)), "k"), at(5 * 86_400))
        assert again.job.id == "a"
        assert (await store.purge(at(11 * 86_400), Keep())).jobs == 1
        assert await store.job("a") is None

    @scenario
    async def test_best_rank_first_then_due_created_id(self, store: Store) -> None:
        await submit(
            store,
            job("p500", priority=500),
            job("p100-late", at(2), priority=100),
            job("p100-b", at(1), priority=100),
            job("p100-a", at(1), priority=100),
            job("p200", priority=200),
            job("p100-due-first", at(3), due_at=at(-5), priority=100),
        )
        order = [taken.id for taken in await take(store, limit=10, now=at(3))]
        assert order == ["p100-due-first", "p100-a", "p100-b", "p100-late", "p200", "p500"]

    @scenario
    async def test_a_claim_marks_the_job(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store, "w-7", at(1), lease_s=30.0)
        assert held == await store.job("a")
        assert (held.state, held.worker, held.claimed_at) == (JobState.CLAIMED, "w-7", at(1))
        assert held.token > 0
        assert held.lease_until == at(31)
        assert await take(store, now=at(1)) == []

    @scenario
    async def test_a_future_job_is_claimable_at_its_instant(self, store: Store) -> None:
        await submit(store, job("later", due_at=at(60)))
        assert await take(store, now=at(59.999_999)) == []
        assert await store.next_due() == at(60)
        assert (await store.counts()).delayed == 1
        assert [taken.id for taken in await take(store, now=at(60))] == ["later"]
        assert await store.next_due() is None

    @scenario
    async def test_promotion_is_counted_and_bounded(self, store: Store) -> None:
        await submit(store, *(job(f"j{i}", due_at=at(10 + i)) for i in range(5)))
        assert await store.promote(at(20), limit=3) == 3
        assert await store.promote(at(20), limit=3) == 2
        assert await store.promote(at(20)) == 0
        counts = await store.counts()
        assert (counts.ready, counts.delayed) == (5, 0)

    @scenario
    async def test_a_job_nobody_can_run_blocks_nobody(self, store: Store) -> None:
        blocked = [job(f"db{i}", priority=0, capabilities=("database",)) for i in range(150)]
        await submit(store, *blocked)
        await submit(store, job("plain", at(1)), job("both", at(2), capabilities=("a", "b")))
        assert [taken.id for taken in await take(store, limit=5, now=at(3))] == ["plain"]
        able = await take(store, limit=200, now=at(3), capabilities=("a", "b", "c"))
        assert [taken.id for taken in able] == ["both"]
        able = await take(store, limit=200, now=at(3), capabilities=("database",))
        assert len(able) == 150

    @scenario
    async def test_a_worker_gets_only_the_kinds_it_runs(self, store: Store) -> None:
        await submit(store, job("h", kind="http"), job("c", kind="command", capabilities=("x",)))
        assert await take(store, limit=5, kinds=("python", "com"), capabilities=("x",)) == []
        assert await take(store, limit=5, kinds=("command",)) == []
        able = await take(store, limit=5, kinds=("command", "python"), capabilities=("x",))
        assert [taken.id for taken in able] == ["c"]
        assert [taken.id for taken in await take(store, limit=5)] == ["h"]

    @scenario
    async def test_lanes_are_merged_in_one_order(self, store: Store) -> None:
        await submit(
            store,
            job("x2", priority=2, capabilities=("x",)),
            job("n1", priority=1),
            job("y3", priority=3, capabilities=("x", "y")),
            job("n4", priority=4),
        )
        taken = await take(store, limit=3, capabilities=("y", "x"))
        assert [each.id for each in taken] == ["n1", "x2", "y3"]

    @scenario
    async def test_a_retry_goes_elsewhere_for_a_while(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)))
        held = await start_one(store, "w-1")
        answer = await store.report(failed(held, Failure.EXHAUSTED), NOON)
        assert isinstance(answer, Accepted)
        due = answer.job.due_at
        assert [each.id for each in await take(store, "w-1", 5, due)] == ["b"]
        assert [each.id for each in await take(store, "w-2", 5, due)] == ["a"]

    @scenario
    async def test_any_worker_is_better_than_none(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store, "w-1")
        answer = await store.report(failed(held, Failure.EXHAUSTED), NOON)
        assert isinstance(answer, Accepted)
        later = answer.job.due_at + at(10) - NOON
        assert await take(store, "w-1", 5, later - 1) == []
        assert [each.id for each in await take(store, "w-1", 5, later)] == ["a"]

    @scenario
    async def test_a_replaced_leader_claims_nothing(self, store: Store) -> None:
        await submit(store, job("a", due_at=at(1)))
        await store.raise_epoch(7)
        with pytest.raises(StaleLeader):
            await store.claim(Claim(worker="w", epoch=6), at(2))
        with pytest.raises(StaleLeader):
            await store.promote(at(2), epoch=6)
        assert (await store.counts()).ready == 0
        assert len(await store.claim(Claim(worker="w", epoch=7), at(2))) == 1

    @scenario
    async def test_many_claimers_take_each_job_once(self, store: Store) -> None:
        await submit_all(store, [Submission(job=job(f"j{i:03}")) for i in range(100)], NOON)

        async def claimer(name: str) -> list[tuple[str, int]]:
            mine: list[tuple[str, int]] = []
            while taken := await take(store, name, 3):
                mine += [(each.id, each.token) for each in taken]
            return mine

        shares = await asyncio.gather(*(claimer(f"w-{i}") for i in range(10)))
        taken = [pair for share in shares for pair in share]
        assert sorted(job_id for job_id, _ in taken) == [f"j{i:03}" for i in range(100)]
        assert len({token for _, token in taken}) == 100

    @scenario
    async def test_waiting_ends_when_something_is_submitted(self, store: Store) -> None:
        mark = store.mark()
        waiting = asyncio.ensure_future(store.changed(mark, 30))
        await submit(store, job("a"))
        assert await waiting
        assert await store.changed(mark, 0)
        settled = store.mark()
        while await store.changed(settled, 0.06):
            settled = store.mark()
        assert not await store.changed(settled, 0)

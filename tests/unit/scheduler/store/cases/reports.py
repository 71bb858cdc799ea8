"""Cases of reports under a token, cancelling, retrying and dead letters."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from hyperscale.scheduler.errors import AlreadyExists, IllegalTransition, NotFound
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import Failure, JobState
from hyperscale.scheduler.queue.reports import Accepted, Refusal, Refused
from hyperscale.scheduler.queue.spec import RetryPolicy
from hyperscale.scheduler.store.store import Store
from tests.unit.scheduler.store.cases.harness import (
    NOON,
    at,
    beat,
    completed,
    failed,
    finish,
    job,
    released,
    scenario,
    start_one,
    started,
    submit,
    take,
    take_one,
)


class ReportCases:
    @scenario
    async def test_a_whole_life(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store)
        running = await store.report(started(held), at(1))
        assert isinstance(running, Accepted)
        assert running.job.state is JobState.EXECUTING
        moved = await store.report(beat(held, 0.5), at(2))
        assert isinstance(moved, Accepted)
        assert (moved.job.progress, moved.job.lease_until) == (0.5, at(47))
        done = await store.report(completed(held, log="fine"), at(3))
        assert isinstance(done, Accepted)
        assert (done.job.state, done.job.finished_at) == (JobState.COMPLETED, at(3))
        assert await store.job("a") == done.job
        (attempt,) = await store.attempts("a")
        assert (attempt.outcome, attempt.token) == (Outcome.COMPLETED, held.token)
        assert (attempt.claimed_at, attempt.started_at, attempt.ended_at) == (NOON, at(1), at(3))
        assert await store.log("a", held.token) == "fine"

    @scenario
    async def test_claimed_and_started_in_one_step(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1), timeout_s=5.0), job("c", at(2)))
        a, b = await take(store, limit=2, now=at(2), lease_s=45.0, start=True)
        assert (a.state, a.started_at, a.lease_until) == (JobState.EXECUTING, at(2), at(47))
        assert (b.state, b.started_at, b.lease_until) == (JobState.EXECUTING, at(2), at(22))
        assert await store.job("a") == a
        assert await store.job("b") == b
        again = await store.report(started(a), at(3))
        assert isinstance(again, Accepted)
        assert again.repeated
        assert (await store.cancel("a", at(3))).state is JobState.EXECUTING
        answers = await store.report_batch([failed(a, Failure.CANCELLED), completed(b)], at(4))
        ends = [answer.job.state for answer in answers if isinstance(answer, Accepted)]
        assert ends == [JobState.CANCELLED, JobState.COMPLETED]
        (attempt,) = await store.attempts("b")
        assert (attempt.claimed_at, attempt.started_at, attempt.ended_at) == (at(2), at(2), at(4))
        assert (await store.counts()).states[JobState.PENDING] == 1

    @scenario
    async def test_started_jobs_whose_worker_is_lost_are_retried(self, store: Store) -> None:
        await submit(store, job("a"))
        lost = (await take(store, lease_s=10.0, start=True))[0]
        assert await store.expire(at(9)) == []
        (back,) = await store.expire(at(10))
        assert (back.state, back.retries, back.failure) == (
            JobState.PENDING,
            1,
            Failure.WORKER_LOST,
        )
        late = await store.report(completed(lost), at(11))
        assert isinstance(late, Refused)

    @scenario
    async def test_a_repeated_report_is_answered_as_before(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)))
        held = await start_one(store)
        again = await store.report(started(held), at(1))
        assert isinstance(again, Accepted)
        assert again.repeated
        done = await finish(store, held)
        again = await store.report(completed(held), at(9))
        assert again == Accepted(done, repeated=True)
        held = await start_one(store, now=at(1))
        back = await store.report(failed(held), at(2))
        assert isinstance(back, Accepted)
        again = await store.report(failed(held), at(3))
        assert again == Accepted(back.job, repeated=True)
        assert len(await store.attempts("b")) == 1

    @scenario
    async def test_stale_reports_are_refused_and_change_nothing(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        before = await store.job("a")
        for wrong, reason in (
            (replace(completed(held), job_id="zzz"), Refusal.UNKNOWN_JOB),
            (replace(completed(held), worker="w-2"), Refusal.OTHER_WORKER),
            (replace(completed(held), token=held.token - 1), Refusal.STALE_TOKEN),
            (replace(completed(held), token=held.token + 1), Refusal.STALE_TOKEN),
            (replace(completed(held), token=0), Refusal.STALE_TOKEN),
        ):
            answer = await store.report(wrong, at(1))
            assert answer == Refused(wrong.job_id, reason)
        assert await store.job("a") == before
        assert await store.attempts("a") == []

    @scenario
    async def test_a_lost_worker_cannot_finish_what_another_took_over(self, store: Store) -> None:
        await submit(store, job("a"))
        old = await start_one(store, "w-1")
        (back,) = await store.expire(at(100))
        assert back.token > old.token
        new = await start_one(store, "w-2", back.due_at)
        assert new.token > back.token
        for zombie in (beat(old), completed(old), failed(old), released(old), started(old)):
            answer = await store.report(zombie, back.due_at)
            assert answer == Refused("a", Refusal.OTHER_WORKER)
        await finish(store, new, back.due_at)
        assert await store.report(completed(old), at(200)) == Refused("a", Refusal.NOT_HELD)

    @scenario
    async def test_late_work_nobody_took_over_is_good_work(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        assert (await finish(store, held, at(10_000))).state is JobState.COMPLETED

    @scenario
    async def test_completion_needs_a_start(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store)
        answers = await store.report_batch([completed(held), started(held), completed(held)], NOON)
        assert answers[0] == Refused("a", Refusal.NOT_STARTED)
        assert [type(answer) for answer in answers[1:]] == [Accepted, Accepted]
        assert (await store.counts()).states[JobState.COMPLETED] == 1

    @scenario
    async def test_a_big_batch_of_reports(self, store: Store) -> None:
        await submit(store, *(job(f"j{i:03}") for i in range(300)))
        held = await take(store, limit=300)
        reports = [make(each) for each in held for make in (started, completed)]
        answers = await store.report_batch(reports, at(1))
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert (await store.counts()).states[JobState.COMPLETED] == 300

    @scenario
    async def test_backoff_is_in_the_store(self, store: Store) -> None:
        await submit(store, job("a", retry=RetryPolicy(max_retries=2, jitter=0.0)))
        now = NOON
        for number, delay in ((1, 2), (2, 4)):
            held = await start_one(store, now=now)
            answer = await store.report(failed(held), now)
            assert isinstance(answer, Accepted)
            assert answer.job.state is JobState.PENDING
            assert answer.job.retries == number
            assert answer.job.due_at == now + delay * 1_000_000
            assert await take(store, now=answer.job.due_at - 1) == []
            now = answer.job.due_at
        held = await start_one(store, now=now)
        answer = await store.report(failed(held, error="the end"), now)
        assert isinstance(answer, Accepted)
        assert answer.job.state is JobState.FAILED
        letter = await store.letter("a")
        assert letter is not None
        assert (letter.job, letter.reason) == (answer.job, "the end")
        assert [a.outcome for a in await store.attempts("a")] == [Outcome.FAILED] * 3

    @scenario
    async def test_a_permanent_failure_is_not_retried(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store)
        answer = await store.report(failed(held, Failure.PERMANENT), NOON)
        assert isinstance(answer, Accepted)
        assert (answer.job.state, answer.job.retries) == (JobState.FAILED, 0)
        assert [letter.id for letter in await store.letters()] == ["a"]

    @scenario
    async def test_release_is_free(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        answer = await store.report(released(held), at(5))
        assert isinstance(answer, Accepted)
        assert (answer.job.state, answer.job.retries) == (JobState.PENDING, 0)
        again = await start_one(store, "w-2", at(5))
        assert again.token > held.token
        assert [a.outcome for a in await store.attempts("a")] == [Outcome.RELEASED]

    @scenario
    async def test_a_release_with_a_delay_waits_and_is_free(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await take_one(store, start=True)
        answer = await store.report(released(held, 30.0, "its target rests"), at(5))
        assert isinstance(answer, Accepted)
        waits = answer.job
        assert (waits.state, waits.retries, waits.due_at) == (JobState.PENDING, 0, at(35))
        assert waits.error == "its target rests"
        again = await store.report(released(held, 30.0, "its target rests"), at(6))
        assert again == Accepted(waits, repeated=True)
        assert await take(store, now=at(34)) == []
        assert (await take_one(store, now=at(35))).token > held.token
        assert await store.attempts("a") == []

    @scenario
    async def test_a_job_that_moves_has_not_stalled(self, store: Store) -> None:
        await submit(store, job("a", stall_timeout_s=20.0))
        held = await start_one(store)
        await store.report(beat(held, moved=True), at(15))
        await store.report(beat(held), at(30))
        assert await store.expire(at(34)) == []
        (lost,) = await store.expire(at(35))
        assert (lost.failure, lost.error) == (Failure.TIMEOUT, "no progress for 20 s")

    @scenario
    async def test_concurrent_reports_on_one_job_end_it_once(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        answers = await asyncio.gather(
            *(store.report(completed(held), at(i)) for i in range(10)),
            *(store.report(failed(held), at(i)) for i in range(10)),
        )
        fresh = [a for a in answers if isinstance(a, Accepted) and not a.repeated]
        assert len(fresh) == 1
        assert len(await store.attempts("a")) == 1

    @scenario
    async def test_cancel_before_the_start_is_final(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)), job("c", due_at=at(60)))
        held = await take_one(store)
        for name in "abc":
            assert (await store.cancel(name, at(2))).state is JobState.CANCELLED
        assert await take(store, now=at(100)) == []
        assert await store.report(started(held), at(3)) == Refused("a", Refusal.NOT_HELD)
        assert (await store.cancel("a", at(4))).finished_at == at(2)
        assert [a.outcome for a in await store.attempts("a")] == [Outcome.CANCELLED]
        assert await store.letters() == []

    @scenario
    async def test_cancelling_what_runs_is_the_workers_to_do(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        asked = await store.cancel("a", at(1))
        assert (asked.state, asked.cancel_requested) == (JobState.EXECUTING, True)
        answer = await store.report(beat(held), at(2))
        assert isinstance(answer, Accepted)
        assert answer.stop
        answer = await store.report(failed(held, Failure.CANCELLED), at(3))
        assert isinstance(answer, Accepted)
        assert (answer.job.state, answer.stop) == (JobState.CANCELLED, False)
        assert await store.letters() == []

    @scenario
    async def test_a_cancelled_job_is_not_retried_when_its_worker_dies(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)))
        await start_one(store)
        await store.cancel("a", at(1))
        assert [each.state for each in await store.expire(at(1000))] == [JobState.CANCELLED]
        held = await start_one(store, now=at(1000))
        await store.cancel("b", at(1001))
        answer = await store.report(released(held), at(1002))
        assert isinstance(answer, Accepted)
        assert answer.job.state is JobState.CANCELLED

    @scenario
    async def test_what_finished_first_counts(self, store: Store) -> None:
        await submit(store, job("a"))
        held = await start_one(store)
        await store.cancel("a", at(1))
        assert (await finish(store, held, at(2))).state is JobState.COMPLETED
        with pytest.raises(IllegalTransition):
            await store.cancel("a", at(3))
        with pytest.raises(NotFound):
            await store.cancel("zzz", at(3))

    @scenario
    async def test_retry_by_hand_is_a_new_job(self, store: Store) -> None:
        await submit(store, job("a"), job("x", at(1)))
        with pytest.raises(IllegalTransition):
            await store.retry("a", "a2", NOON)
        held = await take_one(store)
        await store.report(failed(held, Failure.PERMANENT), NOON)
        again = await store.retry("a", "a2", at(1))
        assert (again.state, again.retry_of, again.spec) == (JobState.PENDING, "a", held.spec)
        assert await store.retry("a", "a2", at(2)) == again
        assert await store.letters() == []
        with pytest.raises(AlreadyExists):
            await store.retry("a", "x", at(2))
        with pytest.raises(NotFound):
            await store.retry("zzz", "z2", at(2))

    @scenario
    async def test_a_dead_letter_is_replayed_or_dropped_once(self, store: Store) -> None:
        await submit(store, job("a"), job("b", at(1)))
        for held in await take(store, limit=2, now=at(1)):
            await store.report(failed(held, Failure.PERMANENT), at(1))
        assert [letter.id for letter in await store.letters()] == ["a", "b"]
        assert [letter.id for letter in await store.letters(after="a", limit=1)] == ["b"]
        again = await store.replay("a", "a2", at(2))
        assert again.retry_of == "a"
        assert await store.replay("a", "a2", at(3)) == again
        with pytest.raises(NotFound):
            await store.replay("a", "a3", at(3))
        assert (await store.drop("b")).id == "b"
        with pytest.raises(NotFound):
            await store.drop("b")
        counts = await store.counts()
        assert (counts.letters, counts.states[JobState.FAILED]) == (0, 2)

"""One job per key: duplicates, failures, and a crash at every turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hyperscale.ledger.idempotency import (
    Answer,
    Decision,
    Kind,
    State,
    Submissions,
    content_digest,
)
from hyperscale.runtime.tasks import RealTasks
from tests.fixtures.journals import HandClock, MemoryJournal, MemoryRecord
from tests.unit.ledger.idempotency.node import Node, key


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


def on_node(test: Callable[[Node, MemoryJournal], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        journal = MemoryJournal()
        tasks = RealTasks()
        await test(Node(journal, HandClock(), tasks), journal)
        await tasks.stop()

    asyncio.run(main())


def test_a_hundred_equal_submissions_make_one_job_and_get_one_answer() -> None:
    async def storm(node: Node, journal: MemoryJournal) -> None:
        answers = await asyncio.gather(*(node.submit(key(), f"job-{i}") for i in range(100)))
        assert node.decided == 1
        assert node.jobs_of(key()) == ["job-0"]
        assert {(a.kind, a.job_id, a.answer) for a in answers} == {
            (Kind.ACCEPTED, "job-0", b"accepted job-0")
        }
        assert sum(not a.duplicate for a in answers) == 1
        assert node.ledger.stats().waiters == 0
        assert len(journal.records) == 3

    on_node(storm)


def test_different_keys_are_different_jobs() -> None:
    async def two(node: Node, _: MemoryJournal) -> None:
        await asyncio.gather(*(node.submit(key(i), f"job-{i}") for i in range(50)))
        assert node.decided == 50

    on_node(two)


def test_a_retry_with_another_job_id_gets_the_first_job() -> None:
    async def retry(node: Node, _: MemoryJournal) -> None:
        first = await node.submit(key(), "job-a")
        second = await node.submit(key(), "job-b")
        assert (second.job_id, second.answer) == (first.job_id, first.answer)
        assert second.duplicate
        assert "job-b" not in node.jobs

    on_node(retry)


def test_the_same_key_for_something_else_is_a_conflict() -> None:
    async def conflict(node: Node, _: MemoryJournal) -> None:
        await node.submit(key(), "job-a", b"one")
        answer = await node.submit(key(), "job-b", b"two")
        assert answer.kind is Kind.CONFLICT
        assert node.decided == 1

    on_node(conflict)


@pytest.mark.parametrize("kind", [Kind.RETRYABLE, Kind.REDIRECT])
def test_a_transient_refusal_is_not_remembered(kind: Kind) -> None:
    async def transient(node: Node, _: MemoryJournal) -> None:
        async def busy(_: str) -> Decision:
            return Decision(kind, b"not now")

        refused = await node.submissions.submit(key(), content_digest(b"spec"), "job-a", busy)
        assert refused == Answer(kind, "job-a", b"not now")
        assert (await node.submit(key(), "job-b")).kind is Kind.ACCEPTED

    on_node(transient)


def test_a_final_refusal_is_repeated() -> None:
    async def final(node: Node, _: MemoryJournal) -> None:
        async def never(_: str) -> Decision:
            return Decision(Kind.REJECTED, b"no such datacenter")

        digest = content_digest(b"spec")
        await node.submissions.submit(key(), digest, "job-a", never)
        again = await node.submissions.submit(key(), digest, "job-b", never)
        assert again == Answer(Kind.REJECTED, "job-a", b"no such datacenter", duplicate=True)

    on_node(final)


def test_a_decision_that_fails_frees_the_key_and_wakes_who_waits() -> None:
    async def failing(node: Node, _: MemoryJournal) -> None:
        started = asyncio.Event()
        go_on = asyncio.Event()

        async def broken(_: str) -> Decision:
            started.set()
            await go_on.wait()
            raise ConnectionError("nobody there")

        digest = content_digest(b"spec")
        submit = node.submissions.submit(key(), digest, "job-a", broken)
        first = asyncio.ensure_future(submit)
        await started.wait()
        second = asyncio.ensure_future(node.submit(key(), "job-b"))
        await until(lambda: node.ledger.stats().waiters == 1)
        go_on.set()
        with pytest.raises(ConnectionError):
            await first
        assert (await second).kind is Kind.RETRYABLE
        assert (await node.submit(key(), "job-c")).job_id == "job-c"

    on_node(failing)


def test_a_decision_that_fails_after_the_job_was_made_is_settled_by_the_job() -> None:
    async def half(node: Node, _: MemoryJournal) -> None:
        async def half_done(job_id: str) -> Decision:
            await node.submit(key(99), job_id)
            raise TimeoutError("the answer was lost")

        with pytest.raises(TimeoutError):
            await node.submissions.submit(key(), content_digest(b"spec"), "job-a", half_done)
        again = await node.submit(key(), "job-b")
        assert (again.kind, again.job_id, again.duplicate) == (Kind.ACCEPTED, "job-a", True)

    on_node(half)


def test_a_key_whose_fate_cannot_be_found_out_is_settled_later() -> None:
    async def unknown(journal: MemoryJournal, clock: HandClock, tasks: RealTasks) -> None:
        node = Node(journal, clock, tasks)
        looks = 0

        async def answer_of(job_id: str) -> bytes | None:
            nonlocal looks
            looks += 1
            if looks == 1:
                raise OSError("the store does not answer")
            return await node.answer_of(job_id)

        async def broken(_: str) -> Decision:
            raise RuntimeError("no idea")

        submissions = Submissions(node.ledger, tasks, answer_of)
        with pytest.raises(OSError, match="does not answer"):
            await submissions.submit(key(), content_digest(b"spec"), "j1", broken)
        assert node.ledger.stats().pending == 1
        clock.time += node.ledger.settings.pending_ttl_s + 2
        await node.ledger.sweep(answer_of)
        assert node.ledger.stats().pending == 0
        answer = await node.submit(key(), "j2")
        assert (answer.kind, answer.job_id) == (Kind.ACCEPTED, "j2")

    async def main() -> None:
        tasks = RealTasks()
        await unknown(MemoryJournal(), HandClock(), tasks)
        await tasks.stop()

    asyncio.run(main())


def test_a_client_that_goes_away_does_not_stop_its_submission() -> None:
    async def gone(node: Node, journal: MemoryJournal) -> None:
        journal.gate = asyncio.Event()
        asking = asyncio.ensure_future(node.submit(key(), "job-a"))
        await until(lambda: node.ledger.look(key()) is not None)
        asking.cancel()
        journal.gate.set()
        answer = await node.submit(key(), "job-b")
        assert (answer.job_id, answer.duplicate) == ("job-a", True)

    on_node(gone)


def test_an_answer_is_not_visible_before_it_is_durable() -> None:
    async def slow(node: Node, journal: MemoryJournal) -> None:
        async def stall(_: str) -> Decision:
            journal.gate = asyncio.Event()
            return Decision(Kind.ACCEPTED, b"yes")

        digest = content_digest(b"spec")
        first = asyncio.ensure_future(node.submissions.submit(key(), digest, "job-a", stall))
        await until(lambda: journal.gate is not None)
        for _ in range(20):
            await asyncio.sleep(0)
        entry = node.ledger.look(key())
        assert entry is not None
        assert entry.state is State.PENDING
        assert not first.done()
        journal.gate.set()
        assert (await first).answer == b"yes"

    on_node(slow)


def test_a_log_that_fails_leaves_no_promise() -> None:
    async def failing(node: Node, journal: MemoryJournal) -> None:
        journal.failure = OSError("disk gone")
        with pytest.raises(OSError, match="disk gone"):
            await node.submit(key(), "job-a")
        assert node.ledger.look(key()) is None
        assert node.decided == 0

    on_node(failing)


def run_until_turn(turns: int, records: list[MemoryRecord]) -> tuple[bool, Answer | None]:
    """One submission, stopped dead after that many turns of the event loop; True: it was over."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        node = Node(MemoryJournal(records), HandClock(), RealTasks())

        async def life() -> Answer:
            await node.start()
            return await node.submit(key(), f"job-{len(records)}")

        task = loop.create_task(life())
        for _ in range(turns):
            loop.call_soon(loop.stop)
            loop.run_forever()
        answer = task.result() if task.done() else None
        frozen = list(records)
        for left in asyncio.all_tasks(loop):
            left.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        records[:] = frozen
        return answer is not None, answer
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def stopped_turns() -> int:
    turns = 0
    while not run_until_turn(turns, [])[0]:
        turns += 1
    return turns


def test_killed_after_any_turn_the_retry_gives_exactly_one_job() -> None:
    last = stopped_turns()
    assert last > 10
    for first_life in range(last + 1):
        for second_life in (0, first_life // 2, last):
            records: list[MemoryRecord] = []
            _, acknowledged = run_until_turn(first_life, records)
            _, second = run_until_turn(second_life, records)
            done, final = run_until_turn(last + 20, records)
            assert done
            assert final is not None
            check_one_job(records, [acknowledged, second, final])


def check_one_job(records: list[MemoryRecord], answers: list[Answer | None]) -> None:
    async def check() -> None:
        tasks = RealTasks()
        node = Node(MemoryJournal(records), HandClock(), tasks)
        await node.start()
        jobs = node.jobs_of(key())
        assert len(jobs) == 1
        assert {a.job_id for a in answers if a is not None} == set(jobs)
        assert {a.answer for a in answers if a is not None} == {b"accepted " + jobs[0].encode()}
        await tasks.stop()

    asyncio.run(check())

"""A gate's memory of answers: faster, never wiser than the manager."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.ledger.idempotency import (
    Answer,
    GateCache,
    IdempotencySettings,
    Kind,
    Verdict,
    content_digest,
)
from tests.fixtures.journals import HandClock
from tests.unit.ledger.idempotency.node import key

DIGEST = content_digest(b"spec")
SMALL = IdempotencySettings(entries_max=3)


class Manager:
    """Answers with one kind, after being let go; counts what reaches it."""

    def __init__(self, kind: Kind = Kind.ACCEPTED, failure: Exception | None = None) -> None:
        self.kind = kind
        self.failure = failure
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()

    async def forward(self) -> Answer:
        self.asked += 1
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return Answer(self.kind, "job-a", b"answer")


def test_a_hundred_at_once_ask_the_manager_once() -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock()), Manager()
        manager.go.clear()
        asking = [
            asyncio.ensure_future(cache.through(key(), DIGEST, f"job-{i}", manager.forward))
            for i in range(100)
        ]
        await asyncio.sleep(0)
        assert cache.stats().pending_waiters == 99
        manager.go.set()
        answers = await asyncio.gather(*asking)
        assert {(a.kind, a.job_id, a.answer) for a in answers} == {
            (Kind.ACCEPTED, "job-a", b"answer")
        }
        assert (manager.asked, cache.stats().pending_waiters) == (1, 0)
        assert (cache.stats().lookups, cache.stats().hits) == (100, 99)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "asked"),
    [(Kind.ACCEPTED, 1), (Kind.REJECTED, 1), (Kind.RETRYABLE, 2), (Kind.REDIRECT, 2)],
)
def test_only_final_answers_are_remembered(kind: Kind, asked: int) -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock()), Manager(kind)
        for _ in range(2):
            answer = await cache.through(key(), DIGEST, "job-a", manager.forward)
            assert (answer.kind, answer.job_id) == (kind, "job-a")
        assert manager.asked == asked

    asyncio.run(main())


def test_a_manager_that_was_down_is_asked_again_at_once() -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock()), Manager(failure=ConnectionError("down"))
        with pytest.raises(ConnectionError):
            await cache.through(key(), DIGEST, "job-a", manager.forward)
        manager.failure = None
        answer = await cache.through(key(), DIGEST, "job-a", manager.forward)
        assert answer.kind is Kind.ACCEPTED

    asyncio.run(main())


def test_without_a_key_everything_is_forwarded() -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock()), Manager()
        for _ in range(3):
            await cache.through(None, DIGEST, "job-a", manager.forward)
        assert (manager.asked, len(cache)) == (3, 0)

    asyncio.run(main())


def test_a_pending_original_makes_a_duplicate_come_back() -> None:
    async def main() -> None:
        cache = GateCache(HandClock(), IdempotencySettings(pending_wait_s=0))
        manager = Manager()
        assert cache.check_or_insert(key(), "job-a", DIGEST).verdict is Verdict.NEW
        answer = await cache.through(key(), DIGEST, "job-b", manager.forward)
        assert (answer.kind, answer.reason) == (Kind.RETRYABLE, "Request pending, please retry")
        assert (manager.asked, cache.stats().pending_timeouts) == (0, 1)
        assert cache.settle(key(), Answer(Kind.ACCEPTED, "job-a", b"done"))
        assert not cache.settle(key(), Answer(Kind.REJECTED, "job-a", b"late"))

    asyncio.run(main())


def test_a_conflict_does_not_reach_the_manager() -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock()), Manager()
        await cache.through(key(), DIGEST, "job-a", manager.forward)
        other = await cache.through(key(), content_digest(b"else"), "job-b", manager.forward)
        assert (other.kind, manager.asked) == (Kind.CONFLICT, 1)

    asyncio.run(main())


def test_the_limit_holds_and_reservations_are_not_evicted() -> None:
    async def main() -> None:
        cache, manager = GateCache(HandClock(), SMALL), Manager()
        cache.check_or_insert(key(0), "job-0", DIGEST)
        for number in range(1, 10):
            await cache.through(key(number), DIGEST, f"job-{number}", manager.forward)
            assert len(cache) <= 3
        assert cache.stats().evictions == 7
        assert cache.get(key(0)) is not None
        cache.check_or_insert(key(20), "job", DIGEST)
        cache.check_or_insert(key(21), "job", DIGEST)
        assert cache.check_or_insert(key(22), "job", DIGEST).verdict is Verdict.FULL
        answer = await cache.through(key(22), DIGEST, "job", manager.forward)
        assert answer.kind is Kind.ACCEPTED

    asyncio.run(main())


def test_what_is_due_is_forgotten_and_its_waiters_go() -> None:
    async def main() -> None:
        clock = HandClock()
        cache = GateCache(clock)
        cache.check_or_insert(key(), "job", DIGEST)
        waiting = asyncio.ensure_future(
            cache.through(key(), DIGEST, "job", Manager(Kind.ACCEPTED).forward)
        )
        await asyncio.sleep(0)
        clock.time += 62
        await cache.sweep()
        assert (await waiting).kind is Kind.RETRYABLE
        assert len(cache) == 0

    asyncio.run(main())


def test_closing_lets_everybody_go() -> None:
    async def main() -> None:
        cache = GateCache(HandClock())
        cache.check_or_insert(key(), "job", DIGEST)
        waiting = asyncio.ensure_future(cache.through(key(), DIGEST, "job", Manager().forward))
        await asyncio.sleep(0)
        cache.close()
        assert (await waiting).kind is Kind.RETRYABLE

    asyncio.run(main())

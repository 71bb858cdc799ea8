"""The emergency stop, and who gets no jobs for other reasons."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue import emergency_stop as emergency
from hyperscale.scheduler.queue.emergency_stop import REASON_CHARS_MAX
from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.store.claim_guard import LOOK_S, WORKERS_MAX, ClaimGuard
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import StoreLimits
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerEvent
from tests.unit.scheduler.store.cases.harness import (
    NOON,
    at,
    job,
    start_one,
    submit,
    take,
    take_one,
)

LIMITS = StoreLimits(suspect_after_s=30.0)


def worker(name: str, now: Instant = NOON) -> Worker:
    return Worker(id=name, instance=name, capacity=4, started_at=now, seen_at=now)


async def beat(store: Store, known: Worker, now: Instant, **fields: Any) -> Worker:
    said = WorkerBeat(
        worker_id=known.id,
        session=known.session,
        sequence=known.sequence + 1,
        running=0,
        **fields,
    )
    return await store.beat(said, now)


def test_a_stop_keeps_its_first_words_and_may_get_harder() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        assert await emergency.current(store) is None
        first = await emergency.stop(store, "ann", "fire", False, NOON)
        assert (first.since, first.actor, first.reason) == (NOON, "ann", "fire")
        assert await emergency.stop(store, "bob", "again", False, at(1)) == first
        harder = await emergency.stop(store, "bob", "", True, at(2))
        assert harder == replace(first, cancel_running=True)
        assert await emergency.stop(store, "bob", "", False, at(3)) == harder
        assert await emergency.resume(store) == harder
        assert await emergency.resume(store) is None
        assert await emergency.current(store) is None

    asyncio.run(run())


def test_two_who_stop_at_once_agree() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        said = await asyncio.gather(
            *(emergency.stop(store, f"p-{n}", "", n == 3, at(n)) for n in range(8))
        )
        known = await emergency.current(store)
        assert known is not None
        assert known.cancel_running
        assert {each.actor for each in said} == {known.actor}

    asyncio.run(run())


def test_a_reason_is_bounded() -> None:
    with pytest.raises(InvalidJob):
        asyncio.run(
            emergency.stop(Store(MemoryGround()), "ann", "x" * (REASON_CHARS_MAX + 1), False, NOON)
        )


def test_cancelling_reaches_what_is_claimed_and_what_runs_while_the_stop_lasts() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        await submit(store, job("runs"), job("claimed"), job("waits"))
        running = await start_one(store)
        claimed = await take_one(store)
        assert await emergency.cancel_held(store, NOON) == 0
        await emergency.stop(store, "ann", "", False, NOON)
        assert await emergency.cancel_held(store, NOON) == 0
        await emergency.stop(store, "ann", "", True, NOON)
        assert await emergency.cancel_held(store, NOON) == 2
        assert await emergency.cancel_held(store, NOON) == 0, "asked once"
        states = [await store.job(name) for name in (running.id, claimed.id)]
        assert [(each.state, each.cancel_requested) for each in states if each is not None] == [
            (JobState.EXECUTING, True),
            (JobState.CANCELLED, True),
        ]
        assert (await store.counts()).states[JobState.PENDING] == 1

    asyncio.run(run())


def test_what_is_known_is_never_old_and_rarely_asked_for() -> None:
    class Counting(Store):
        asked = 0

        async def get(self, key: str) -> Any:
            self.asked += 1
            return await super().get(key)

    async def run() -> None:
        store = Counting(MemoryGround())
        for n in range(100):
            assert await store.emergency(at(n * LOOK_S / 100)) is None
        assert store.asked == 1
        elsewhere = Store(store._ground)
        await emergency.stop(elsewhere, "ann", "", False, NOON)
        assert await store.emergency(at(LOOK_S)) is not None
        await emergency.resume(elsewhere)
        assert await store.emergency(at(LOOK_S - 1)) is None, "a clock that stepped back"

    asyncio.run(run())


def test_during_a_stop_nobody_gets_a_job() -> None:
    async def run() -> None:
        ground = MemoryGround()
        store, elsewhere = Store(ground, LIMITS), Store(ground, LIMITS)
        await submit(store, *(job(f"job-{n}") for n in range(4)))
        assert len(await take(store)) == 1
        assert len(await take(elsewhere)) == 1
        await emergency.stop(store, "ann", "", False, NOON)
        assert await take(store) == [], "at once in its own process"
        assert await take(elsewhere, now=at(LOOK_S)) == [], "soon in every other"
        await emergency.resume(store)
        assert len(await take(store)) == 1
        assert len(await take(elsewhere, now=at(2 * LOOK_S))) == 1

    asyncio.run(run())


def test_a_suspect_worker_gets_nothing_until_it_is_heard_again() -> None:
    async def run() -> None:
        store = Store(MemoryGround(), LIMITS)
        await submit(store, *(job(f"job-{n}") for n in range(4)))
        known = await store.register(worker("w-1"), NOON, 45)
        assert len(await take(store, now=at(29))) == 1
        assert await take(store, now=at(30)) == []
        await beat(store, known, at(31))
        assert len(await take(store, now=at(32))) == 1

    asyncio.run(run())


def test_heartbeats_through_another_process_count() -> None:
    async def run() -> None:
        ground = MemoryGround()
        one, two = Store(ground, LIMITS), Store(ground, LIMITS)
        await submit(one, *(job(f"job-{n}") for n in range(4)))
        for name in ("w-0", "w-1", "w-10", "w-2"):
            await one.register(worker(name), NOON, 45)
        (known,) = [each for each in await one.workers() if each.id == "w-1"]
        assert len(await take(two, now=at(20))) == 1
        await beat(one, known, at(25))
        assert len(await take(two, now=at(50))) == 1
        assert await take(two, now=at(56)) == []
        assert len(await take(two, "never-registered", now=at(56))) == 1

    asyncio.run(run())


def test_who_drains_or_has_left_gets_nothing() -> None:
    async def run() -> None:
        store = Store(MemoryGround(), LIMITS)
        await submit(store, *(job(f"job-{n}") for n in range(4)))
        drains = await store.register(worker("drains"), NOON, 45)
        await store.move_worker("drains", WorkerEvent.DRAIN)
        await beat(store, drains, at(1))
        assert await take(store, "drains", now=at(2)) == []
        leaves = await store.register(worker("leaves"), NOON, 45)
        await beat(store, leaves, at(1), leaving=True)
        assert await take(store, "leaves", now=at(2)) == []
        await store.register(worker("leaves", at(3)), at(3), 45)
        assert len(await take(store, "leaves", now=at(4))) == 1

    asyncio.run(run())


def test_the_number_of_workers_known_is_bounded() -> None:
    async def run() -> None:
        store = Store(MemoryGround(), LIMITS)
        guard = ClaimGuard(30.0, store.get, store.worker)
        for n in range(WORKERS_MAX + 10):
            guard.heard(worker(f"w-{n:06}"))
        assert len(guard._workers) == WORKERS_MAX
        assert await guard.admits("w-000001", NOON), "looked up again, and never registered"

    asyncio.run(run())

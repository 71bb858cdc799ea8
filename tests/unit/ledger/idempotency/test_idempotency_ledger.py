"""The ledger of keys on a journal: restarts, its own time, what may be compacted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from hyperscale.ledger.idempotency import (
    IdempotencyLedger,
    IdempotencySettings,
    State,
    Verdict,
    content_digest,
)
from hyperscale.ledger.idempotency.records import (
    RECORDS,
    Code,
    Committed,
    KeyRecord,
    Rejected,
    Released,
    Renewed,
    Reserved,
    decode,
    encode,
)
from hyperscale.ledger.journal import Family, UnreadableRecord, rebuild
from hyperscale.runtime.logs import logger
from hyperscale.runtime.tasks import RealTasks
from tests.fixtures.journals import HandClock, MemoryJournal, MemoryRecord
from tests.unit.ledger.golden import golden
from tests.unit.ledger.idempotency.node import key

DIGEST = content_digest(b"spec")
TEXT = "host:17:42:0123456789abcdef"
SAMPLES: dict[str, KeyRecord] = {
    "RESERVED": Reserved(TEXT, "us-east", 1_234, "job-1", b"0123456789abcdef", "gate42"),
    "COMMITTED": Committed(TEXT, "us-east", 1_300, "job-1", b"0123456789abcdef", b"\x00yes"),
    "REJECTED": Rejected(TEXT, "", 1_300, "job-1", b"0123456789abcdef", b"no"),
    "RELEASED": Released(TEXT, "", 1_300),
    "RENEWED": Renewed(TEXT, "us-east", 61_234, "job-1", b"0123456789abcdef"),
}

Scene = Callable[["World"], Coroutine[Any, Any, None]]


class World:
    """A journal that outlives ledgers."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.clock = HandClock()
        self.tasks = RealTasks()

    async def ledger(
        self, settings: IdempotencySettings | None = None, scope: str = ""
    ) -> IdempotencyLedger:
        """A new life: the monotonic clock begins somewhere else."""
        self.clock = HandClock(self.clock.time / 7)
        ledger = IdempotencyLedger(self.journal, self.clock, self.tasks, settings, scope)
        await rebuild(self.journal, [ledger])
        return ledger


def in_world(scene: Scene) -> None:
    async def main() -> None:
        world = World()
        await scene(world)
        await world.tasks.stop()

    asyncio.run(main())


async def no_job(_: str) -> bytes | None:
    return None


async def has_job(job_id: str) -> bytes | None:
    return b"accepted " + job_id.encode()


def test_the_numbers_are_frozen() -> None:
    assert {code.name: code.value for code in Code} == {
        "RESERVED": 1,
        "COMMITTED": 2,
        "REJECTED": 3,
        "RELEASED": 4,
        "RENEWED": 5,
    }
    assert set(RECORDS) == set(Code)


@pytest.mark.parametrize("name", SAMPLES)
def test_records_of_the_first_version_are_read_and_still_written(name: str) -> None:
    payload = golden("idempotency.hex")[name]
    assert decode(payload) == SAMPLES[name]
    assert encode(SAMPLES[name]) == payload


@pytest.mark.parametrize(
    "payload", [b"", b"\x02", b"\x01\x01\x90", b"\x02\x63\x90", b"\x02\x01\x90"]
)
def test_records_without_meaning_are_refused(payload: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode(payload, 3)


def test_answers_survive_a_restart() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        for number, finish in enumerate((ledger.commit, ledger.reject)):
            await ledger.reserve(key(number), f"job-{number}", DIGEST)
            assert await finish(key(number), b"answer")
        again = await world.ledger()
        states = [entry and entry.state for entry in map(again.look, (key(0), key(1)))]
        assert states == [State.COMMITTED, State.REJECTED]
        ruling = await again.reserve(key(0), "job-9", DIGEST)
        assert ruling.verdict is Verdict.ANSWERED

    in_world(scene)


@pytest.mark.parametrize(("answer_of", "state"), [(has_job, State.COMMITTED), (no_job, None)])
def test_a_reservation_found_at_start_is_settled_by_its_job(
    answer_of: Callable[[str], Coroutine[Any, Any, bytes | None]], state: State | None
) -> None:
    async def scene(world: World) -> None:
        await (await world.ledger()).reserve(key(), "job-a", DIGEST)
        again = await world.ledger()
        committed = await again.settle_pending(answer_of)
        assert committed == ((1, 0) if state else (0, 1))
        entry = again.look(key())
        assert (entry and entry.state) == state
        third = await world.ledger()
        assert third.look(key()) == entry

    in_world(scene)


def test_time_is_running_time_whatever_clocks_say() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(0), "job-0", DIGEST)
        await ledger.commit(key(0), b"first")
        world.clock.time += 200
        await ledger.reserve(key(1), "job-1", DIGEST)
        await ledger.commit(key(1), b"second")
        again = await world.ledger()
        world.clock.time += 99
        assert again.look(key(0)) is not None
        world.clock.time += 1
        assert again.look(key(0)) is None
        assert again.look(key(1)) is not None
        world.clock.time += 200
        assert again.look(key(1)) is None

    in_world(scene)


def test_what_expired_before_the_end_is_not_brought_back() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger(IdempotencySettings(entries_max=50))
        for number in range(200):
            await ledger.reserve(key(number), f"job-{number}", DIGEST)
            await ledger.commit(key(number), b"answer")
            world.clock.time += 10
            await ledger.sweep(no_job)
        live = ledger.stats().entries
        assert live < 50
        again = await world.ledger(IdempotencySettings(entries_max=50))
        assert again.stats().entries <= live + 2

    in_world(scene)


def test_the_log_needed_stays_short_under_constant_load() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(10_000), "slow job", DIGEST)
        for number in range(500):
            await ledger.reserve(key(number), f"job-{number}", DIGEST)
            await ledger.commit(key(number), b"answer")
            world.clock.time += 5
            await ledger.sweep(has_job)
            first = ledger.needed_from()
            world.journal.records[:] = [r for r in world.journal.records if r.lsn >= first]
        assert len(world.journal.records) < 200
        again = await world.ledger()
        assert await again.settle_pending(has_job) == (1, 0)
        assert again.stats().committed >= 59

    in_world(scene)


def test_the_same_log_gives_the_same_ledger_again_and_again() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        for number in range(20):
            await ledger.reserve(key(number), f"job-{number}", DIGEST)
            if number % 3:
                await ledger.commit(key(number), b"answer")
        first = await world.ledger()
        await rebuild(world.journal, [first])
        second = await world.ledger()
        assert first.stats() == second.stats()
        assert all(first.look(key(n)) == second.look(key(n)) for n in range(20))

    in_world(scene)


def test_an_echo_of_a_renewal_does_not_undo_an_answer() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        await ledger.commit(key(), b"answer")
        echo = encode(Renewed(str(key()), "", 5, "job", DIGEST))
        world.journal.records.append(MemoryRecord(9, echo))
        again = await world.ledger()
        entry = again.look(key())
        assert entry is not None
        assert entry.state is State.COMMITTED

    in_world(scene)


def test_of_two_ends_of_one_key_the_first_stands_on_disk_and_in_memory() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        done = await asyncio.gather(
            ledger.commit(key(), b"yes"), ledger.reject(key(), b"no"), ledger.release(key())
        )
        assert done == [True, False, False]
        assert len(world.journal.records) == 2
        assert not await ledger.reject(key(), b"late")
        assert not await ledger.commit(key(1), b"unknown")

    in_world(scene)


def test_a_failed_write_of_an_answer_leaves_the_key_pending() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        world.journal.failure = OSError("disk gone")
        with pytest.raises(OSError, match="disk gone"):
            await ledger.commit(key(), b"yes")
        entry = ledger.look(key())
        assert entry is not None
        assert entry.state is State.PENDING
        assert (await ledger.reserve(key(), "job-2", DIGEST)).verdict is Verdict.PENDING

    in_world(scene)


def test_an_abandoned_reservation_is_settled_by_the_next_review() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        again = await world.ledger()
        world.clock.time += 100
        await again.sweep(has_job)
        entry = again.look(key())
        assert entry is not None
        assert entry.answer == b"accepted job"
        assert again.stats().overdue == 1

    in_world(scene)


@pytest.mark.parametrize("error", [TimeoutError("nobody answers"), KeyError("nobody answers")])
def test_a_sweep_that_fails_is_told_and_tried_again(error: Exception) -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        again = await world.ledger()
        asked = 0

        async def sometimes(job_id: str) -> bytes | None:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise error
            return await has_job(job_id)

        logger("ledger")
        with capture_logs() as lines:
            maintaining = asyncio.ensure_future(again.maintain(sometimes))
            for _ in range(1_000):
                await asyncio.sleep(0)
                if again.stats().committed:
                    break
            maintaining.cancel()
        assert [line["error"] for line in lines] == [str(error)]
        assert asked == 2

    in_world(scene)


def test_scopes_are_apart() -> None:
    async def scene(world: World) -> None:
        east = await world.ledger(scope="east")
        west = await world.ledger(scope="west")
        verdicts = [(await ledger.reserve(key(), "job", DIGEST)).verdict for ledger in (east, west)]
        assert verdicts == [Verdict.NEW, Verdict.NEW]
        assert len((await world.ledger(scope="east"))._table) == 1

    in_world(scene)


def test_an_answer_too_long_to_keep_is_a_mistake_of_the_caller() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        with pytest.raises(ValueError, match="too long"):
            await ledger.commit(key(), bytes(20_000))
        assert await ledger.commit(key(), b"short")

    in_world(scene)


def test_a_wait_ends_with_time_and_with_closing() -> None:
    async def scene(world: World) -> None:
        ledger = await world.ledger()
        await ledger.reserve(key(), "job", DIGEST)
        assert await ledger.answer_within(key(), 0.0) is None
        waiting = asyncio.ensure_future(ledger.answer_within(key(), 60.0))
        await asyncio.sleep(0)
        assert ledger.stats().waiters == 1
        ledger.close()
        assert await waiting is None
        assert ledger.stats().waiters == 0

    in_world(scene)


def test_records_of_a_stranger_are_refused() -> None:
    async def scene(world: World) -> None:
        world.journal.records.append(MemoryRecord(1, bytes((Family.IDEMPOTENCY, 77)) + b"\x90"))
        with pytest.raises(UnreadableRecord, match="77"):
            await world.ledger()

    in_world(scene)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.leader.election import Election, ElectionUnavailable, LeasedElection, Term
from hyperscale.scheduler.leader.local_lease import KEY, LocalLease, _Row
from hyperscale.scheduler.leader.opening import open_election
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Value
from tests.unit.scheduler.leader.election_cases import TTL_S, ElectionCases, Ground, zero


@pytest.fixture
def ground() -> Ground:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[str], Election]]:
        store = Store(MemoryGround())
        yield lambda node: open_election("local", store, node, f"http://{node}", TTL_S)

    return opened


class TestLocalElection(ElectionCases):
    pass


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_paused_leader_finds_out_by_its_own_clock() -> None:
    async def run() -> None:
        clock = Clock()
        lease = LocalLease(Store(MemoryGround()), "one", "", 10.0, clock, clock)
        election = LeasedElection(lease, 10.0, clock)
        term = await election.campaign(zero)
        assert term.remaining_s == pytest.approx(8.0)
        clock.now_s += 7.9
        assert term.remaining_s > 0
        clock.now_s += 0.2
        assert term.remaining_s == 0
        term.renewed(clock.now_s + 8)
        assert term.remaining_s == 0, "what is over stays over"
        await election.close()

    asyncio.run(run())


def test_a_row_long_past_its_time_needs_no_waiting() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        wall = Clock()
        await LocalLease(store, "one", "", 10.0, Clock(), wall).acquire(0)
        other = LocalLease(store, "two", "", 10.0, Clock(), wall)
        assert await other.acquire(0) is None
        wall.now_s += 25
        assert await other.acquire(0) is None
        wall.now_s += 5
        assert await other.acquire(0) == 2

    asyncio.run(run())


def test_a_clock_that_steps_back_does_not_prolong_the_wait() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        clock, wall = Clock(), Clock()
        await LocalLease(store, "one", "", 10.0, Clock(), wall).acquire(0)
        wall.now_s -= 3600
        other = LocalLease(store, "two", "", 10.0, clock, wall)
        assert await other.acquire(0) is None
        clock.now_s += 10
        assert await other.acquire(0) == 2

    asyncio.run(run())


class Lossy(Store):
    """Writes happen; so many of the answers to them are lost."""

    lost = 0

    async def put(self, key: str, data: bytes, version: int) -> Value:
        value = await super().put(key, data, version)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailable("the answer was lost")
        return value


@pytest.mark.parametrize("lost", [1, 2])
def test_a_renewal_whose_answer_is_lost_costs_no_term(lost: int) -> None:
    async def run() -> None:
        store = Lossy(MemoryGround())
        lease = LocalLease(store, "one", "", 10.0, Clock(), Clock())
        token = await lease.acquire(0)
        assert token == 1
        store.lost = lost
        for _ in range(lost):
            with pytest.raises(ElectionUnavailable):
                await lease.renew(token)
        assert await lease.renew(token)
        assert await lease.renew(token)

    asyncio.run(run())


def test_a_takeover_whose_answer_is_lost_is_not_waited_for() -> None:
    async def run() -> None:
        store = Lossy(MemoryGround())
        lease = LocalLease(store, "one", "", 10.0, Clock(), Clock())
        store.lost = 1
        with pytest.raises(ElectionUnavailable):
            await lease.acquire(0)
        token = await lease.acquire(0)
        assert token == 2
        assert await lease.renew(token)

    asyncio.run(run())


def test_a_row_of_somebody_else_under_the_same_name_is_not_ours() -> None:
    async def run() -> None:
        store, walls = Lossy(MemoryGround()), [Clock(), Clock()]
        walls[1].now_s += 1  # two processes are never at it in the same microsecond
        one, two = (LocalLease(store, "one", "", 10.0, Clock(), wall) for wall in walls)
        token = await one.acquire(0)
        assert token == 1
        store.lost = 1
        with pytest.raises(ElectionUnavailable):
            await one.renew(token)
        value = await store.get(KEY)
        assert value is not None
        await store.put(KEY, msgspec.json.encode(_Row("one", "", 2, 0.0, 10.0)), value.version)
        assert not await one.renew(token)
        assert await two.acquire(0) == 3

    asyncio.run(run())


def test_an_ended_term_has_no_time_left() -> None:
    async def run() -> None:
        term = Term(1, 1e9, lambda: 0.0)
        term.end()
        assert term.remaining_s == 0

    asyncio.run(run())


@pytest.mark.parametrize("address", ["", "zookeeper://x", "etcd://", "redis:"])
def test_an_unknown_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput):
        open_election(address, Store(MemoryGround()), "node")

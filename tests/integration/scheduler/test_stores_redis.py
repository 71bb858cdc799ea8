"""Redis's own promises: several clients, cut connections, kill -9 with the append-only file."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.queue.reports import Accepted
from hyperscale.scheduler.schedules.schedule import Fired, Overlap
from hyperscale.scheduler.store.redis.ground import RedisGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Submission
from tests.integration.scheduler.index_checks import check_redis
from tests.integration.scheduler.redis_server import RedisServer, redis_server
from tests.integration.scheduler.store_paths import PATHS, fill
from tests.unit.scheduler.store.cases.harness import (
    LIMITS,
    NOON,
    Opener,
    at,
    completed,
    finish,
    firing,
    job,
    keyed,
    released,
    schedule,
    start_one,
    submit,
    take_one,
)
from tests.unit.scheduler.store.cases.jobs import JobCases
from tests.unit.scheduler.store.cases.schedules import ScheduleCases
from tests.unit.scheduler.store.walk import Walk


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def clean(server: RedisServer) -> RedisServer:
    server.call("FLUSHALL")
    return server


def check(server: RedisServer) -> int:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        return check_redis(client)


@asynccontextmanager
async def clients(server: RedisServer, count: int) -> AsyncIterator[list[Store]]:
    stores = [Store(await RedisGround.open(server.url), LIMITS) for _ in range(count)]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


def test_clients_in_each_others_way_leave_sound_indexes(clean: RedisServer) -> None:
    async def crowd() -> None:
        async with clients(clean, 4) as stores:
            walks = [Walk(store, seed, f"{seed}-") for seed, store in enumerate(stores)]
            await asyncio.gather(*(walk.run(120) for walk in walks))

    asyncio.run(crowd())
    assert check(clean) > 0


def test_a_job_that_was_bettered_and_put_off_by_a_clock_behind_is_bettered_on_time(
    clean: RedisServer,
) -> None:
    async def story() -> None:
        async with clients(clean, 1) as (store,):
            await submit(store, job("j", NOON, priority=500))
            assert await store.age(at(3_600)) == 1
            held = await take_one(store, now=at(3_600))
            await store.report(released(held), at(-60))
            assert await store.promote(at(3_700), 10) == 1
            check(clean)
            assert await store.age(at(3_700)) == 0, "not before another half hour"

    asyncio.run(story())


def test_one_key_from_many_clients_is_one_job(clean: RedisServer) -> None:
    async def race() -> None:
        async with clients(clean, 5) as stores:
            for round_number in range(20):
                key = f"k{round_number}"
                answers = await asyncio.gather(
                    *(
                        store.submit(keyed(job(f"{key}-{i}"), key), NOON)
                        for i, store in enumerate(stores)
                    )
                )
                assert len({answer.job.id for answer in answers}) == 1
                assert sum(answer.created for answer in answers) == 1

    asyncio.run(race())


def test_ends_and_ticks_from_two_clients_leave_nobody_waiting(clean: RedisServer) -> None:
    async def race() -> None:
        async with clients(clean, 2) as (one, two):
            known = await one.create_schedule(schedule(overlap=Overlap.QUEUE))
            (fired,) = await one.fire([firing(known, at(60), now=at(60))], at(60))
            for i in range(2, 60):
                assert isinstance(fired, Fired)
                now = at(60 * i)
                held = await start_one(two, now=now)
                (fired,), _ = await asyncio.gather(
                    one.fire([firing(fired.schedule, now, now=now)], now),
                    finish(two, held, now),
                )
                assert (await one.counts()).waiting == 0

    asyncio.run(race())
    check(clean)


def test_two_leaders_fire_each_tick_once(clean: RedisServer) -> None:
    async def race() -> None:
        async with clients(clean, 3) as stores:
            known = await stores[0].create_schedule(schedule())
            for i in range(1, 30):
                now = at(60 * i)
                outcomes = await asyncio.gather(
                    *(store.fire([firing(known, now, now=now)], now) for store in stores)
                )
                won = [fired for (fired,) in outcomes if isinstance(fired, Fired)]
                assert len(won) == 1
                known = won[0].schedule
            assert (await stores[0].counts()).ready == 29

    asyncio.run(race())


def test_another_client_is_noticed(clean: RedisServer) -> None:
    async def notice() -> None:
        async with clients(clean, 2) as (mine, theirs):
            mark = mine.mark()
            while await mine.changed(mark, 0.1):
                mark = mine.mark()
            waiting = asyncio.ensure_future(mine.changed(mark, 30))
            await submit(theirs, job("a"))
            assert await waiting

    asyncio.run(notice())


class Lossy:
    """Fails the n-th call to Redis, before it is sent or after it was answered."""

    def __init__(self, store: Store) -> None:
        ground: Any = store._ground
        self._scripts = ground._scripts
        self._call = ground._scripts.call
        self.left: int | None = None
        self.before = True
        ground._scripts.call = self._lossy

    async def _lossy(self, *arguments: Any) -> Any:
        if self.left is None:
            return await self._call(*arguments)
        self.left -= 1
        if self.left == 0 and self.before:
            raise StoreUnavailable("cut")
        answer = await self._call(*arguments)
        if self.left == 0:
            raise StoreUnavailable("cut")
        return answer


@pytest.mark.parametrize("before", [True, False], ids=["unsent", "unanswered"])
@pytest.mark.parametrize("path", PATHS)
def test_a_cut_anywhere_leaves_whole_steps(path: str, before: bool, clean: RedisServer) -> None:
    """Whatever trip is cut, records and indexes agree, and the call can be made again."""

    async def cut_each_trip() -> None:
        for trip in range(1, 20):
            clean.call("FLUSHALL")
            async with clients(clean, 1) as (store,):
                await fill(store)
                lossy = Lossy(store)
                lossy.left, lossy.before = trip, before
                try:
                    await PATHS[path](store)
                except StoreUnavailable:
                    reached = True
                else:
                    reached = False
                lossy.left = None
                check(clean)
                again = await asyncio.gather(PATHS[path](store), return_exceptions=True)
                if isinstance(again[0], BaseException):
                    assert isinstance(again[0], SchedulerError)
                    assert not isinstance(again[0], StoreUnavailable)
                check(clean)
                if not reached:
                    assert trip > 1
                    return
        raise AssertionError("a path of 19 trips")

    asyncio.run(cut_each_trip())


def test_who_leads_a_batch_may_be_stopped(clean: RedisServer) -> None:
    """The others are told or served; nobody waits for ever."""

    async def stop_the_leader() -> None:
        async with clients(clean, 1) as (store,):
            held_back = asyncio.Event()
            ground: Any = store._ground
            call = ground._scripts.call

            async def slow(*arguments: Any) -> Any:
                await held_back.wait()
                return await call(*arguments)

            ground._scripts.call = slow
            submits = [
                asyncio.ensure_future(store.submit(Submission(job=job(f"j{i}")), NOON))
                for i in range(6)
            ]
            await asyncio.sleep(0)
            submits[0].cancel()
            submits[3].cancel()
            await asyncio.wait([submits[0], submits[3]])
            held_back.set()
            async with asyncio.timeout(20):
                outcomes = await asyncio.gather(*submits, return_exceptions=True)
            assert isinstance(outcomes[0], asyncio.CancelledError)
            assert isinstance(outcomes[3], asyncio.CancelledError)
            for i in (1, 2, 4, 5):
                assert not isinstance(outcomes[i], BaseException), outcomes[i]
                assert await store.job(f"j{i}") is not None

    asyncio.run(stop_the_leader())


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:

        async def through_the_crash() -> None:
            async with clients(server, 1) as (store,):
                promised: list[str] = []
                finished: list[str] = []
                for life in range(3):
                    enough = asyncio.Event()

                    async def press(life: int, enough: asyncio.Event) -> None:
                        for number in range(100_000):
                            name = f"{life}-{number}"
                            await submit(store, job(name))
                            promised.append(name)
                            held = await start_one(store)
                            await finish(store, held)
                            finished.append(held.id)
                            if number == 30:
                                enough.set()

                    pressing = asyncio.ensure_future(press(life, enough))
                    await enough.wait()
                    server.kill()
                    with pytest.raises(StoreUnavailable):
                        await pressing
                    server.start()
                    check(server)
                    for name in promised:
                        assert await store.job(name) is not None
                    for name in finished:
                        attempts = await store.attempts(name)
                        assert [a.outcome for a in attempts] == ["COMPLETED"]
                    await store.expire(at(10_000))
                    counts = (await store.counts()).states
                    assert counts[JobState.CLAIMED] == counts[JobState.EXECUTING] == 0

        asyncio.run(through_the_crash())


def test_an_emptied_script_cache_is_no_trouble(clean: RedisServer) -> None:
    async def forgetful() -> None:
        async with clients(clean, 1) as (store,):
            await submit(store, job("a"))
            clean.call("SCRIPT", "FLUSH")
            held = await start_one(store)
            clean.call("SCRIPT", "FLUSH")
            answer = await store.report(completed(held), NOON)
            assert isinstance(answer, Accepted)

    asyncio.run(forgetful())


def test_nobody_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="redis did not answer"):
        asyncio.run(RedisGround.open(f"unix://{tmp_path}/none.sock"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node: it refuses keys of two slots in one script, as every cluster does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1] % 40_000 + 10_000
    directory = tmp_path_factory.mktemp("cluster")
    options = ("--bind", "127.0.0.1", "--cluster-enabled", "yes", "--port", str(port))
    with redis_server(directory, *options) as running:
        running.call("CLUSTER", "ADDSLOTS", *map(str, range(16_384)))
        deadline = time.monotonic() + 20
        while b"cluster_state:ok" not in bytes(running.call("CLUSTER", "INFO")):  # type: ignore[arg-type]
            assert time.monotonic() < deadline, "no cluster"
            time.sleep(0.02)  # between looks, until the deadline
        yield f"redis+cluster://127.0.0.1:{port}"


class TestCluster(JobCases, ScheduleCases):
    @pytest.fixture
    def opener(self, cluster: str) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Store]:
            store = Store(await RedisGround.open(cluster), LIMITS)
            try:
                await store._ground._client.flushall()
                yield store
            finally:
                await store.close()

        return opened

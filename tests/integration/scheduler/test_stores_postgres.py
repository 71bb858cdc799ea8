"""What a store on PostgreSQL has to prove: clients in each other's way, cuts, crashes, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.schedules.schedule import Fired, Overlap
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.postgres.ground import PostgresGround
from hyperscale.scheduler.store.store import Store
from tests.fixtures.brokers import free_port
from tests.integration.clients.postgres_server import restart
from tests.integration.scheduler.bad_wire import bad_wire
from tests.integration.scheduler.index_checks import check_postgres
from tests.integration.scheduler.postgres_store import EMPTY, Postgres, postgres
from tests.integration.scheduler.store_paths import PATHS, fill
from tests.unit.scheduler.store.cases.harness import (
    LIMITS,
    NOON,
    at,
    finish,
    firing,
    job,
    keyed,
    schedule,
    start_one,
    submit,
    take,
)
from tests.unit.scheduler.store.walk import Walk


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres(port=free_port()) as running:
        yield running


@asynccontextmanager
async def clients(url: str, count: int) -> AsyncIterator[list[Store]]:
    stores = [Store(await PostgresGround.open(url), LIMITS) for _ in range(count)]
    try:
        async with asyncio.timeout(120):
            yield stores
    finally:
        for store in stores:
            await store.close()


def test_clients_in_each_others_way_leave_sound_indexes(server: Postgres) -> None:
    async def crowd() -> None:
        url = await server.create()
        async with clients(url, 4) as stores:
            walks = [Walk(store, seed, f"{seed}-") for seed, store in enumerate(stores)]
            await asyncio.gather(*(walk.run(120) for walk in walks))
        assert await check_postgres(url) > 0

    asyncio.run(crowd())


def test_one_key_from_many_clients_is_one_job(server: Postgres) -> None:
    async def race() -> None:
        async with clients(await server.create(), 5) as stores:
            for number in range(20):
                key = f"k{number}"
                answers = await asyncio.gather(
                    *(
                        store.submit(keyed(job(f"{key}-{i}"), key), NOON)
                        for i, store in enumerate(stores)
                    )
                )
                assert len({answer.job.id for answer in answers}) == 1
                assert sum(answer.created for answer in answers) == 1

    asyncio.run(race())


def test_ends_and_ticks_from_two_clients_leave_nobody_waiting(server: Postgres) -> None:
    async def race() -> None:
        url = await server.create()
        async with clients(url, 2) as (one, two):
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
        await check_postgres(url)

    asyncio.run(race())


def test_two_leaders_fire_each_tick_once(server: Postgres) -> None:
    async def race() -> None:
        async with clients(await server.create(), 3) as stores:
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


def test_a_crowd_of_claimers_gets_each_job_once_and_all_of_them(server: Postgres) -> None:
    async def race() -> None:
        async with clients(await server.create(), 6) as stores:
            jobs = [job(f"j{i:03}", kind=f"kind{i % 3}") for i in range(300)]
            await submit(stores[0], *jobs)

            async def claim_all(number: int, store: Store) -> list[str]:
                mine: list[str] = []
                while (await store.counts()).ready:
                    kinds = () if number % 2 else ("kind0", "kind1", "kind2")
                    held = await take(store, f"w-{number}", 7, kinds=kinds)
                    mine += [each.id for each in held]
                return mine

            taken = await asyncio.gather(*(claim_all(i, s) for i, s in enumerate(stores)))
            assert sorted(i for mine in taken for i in mine) == [each.id for each in jobs]

    asyncio.run(race())


def test_another_client_is_noticed_at_once(server: Postgres) -> None:
    async def notice() -> None:
        async with clients(await server.create(), 2) as (mine, theirs):
            mark = mine.mark()
            while await mine.changed(mark, 0.1):
                mark = mine.mark()
            waiting = asyncio.ensure_future(mine.changed(mark, 30))
            await submit(theirs, job("a"))
            assert await waiting

    asyncio.run(notice())


class Lossy:
    """Breaks the connection at the n-th question, before it is sent or after it was answered."""

    def __init__(self, store: Store) -> None:
        ground: Any = store._ground
        connections = ground._connections
        taken = connections._taken
        self.left: int | None = None
        self.before = True

        async def lossy() -> Any:
            return _Lossy(await taken(), self)

        connections._taken = lossy


class _Lossy:
    def __init__(self, connection: Any, wire: Lossy) -> None:
        self._connection = getattr(connection, "_connection", connection)
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._connection, name)
        if name not in ("execute", "fetch", "fetchval", "fetchrow"):
            return asked

        async def answered(*arguments: Any) -> Any:
            wire = self._wire
            if wire.left is None:
                return await asked(*arguments)
            wire.left -= 1
            if wire.left == 0 and wire.before:
                raise ConnectionResetError("cut")
            answer = await asked(*arguments)
            if wire.left == 0:
                raise ConnectionResetError("cut")
            return answer

        return answered


@pytest.mark.parametrize("before", [True, False], ids=["unsent", "unanswered"])
@pytest.mark.parametrize("path", PATHS)
def test_a_cut_anywhere_leaves_whole_steps(path: str, before: bool, server: Postgres) -> None:
    """Whatever question is cut, records and indexes agree, and the call can be made again."""

    async def cut_each_trip() -> None:
        url = await server.create()
        for trip in range(1, 60):
            async with clients(url, 1) as (store,):
                await server.run(EMPTY, url)
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
                await check_postgres(url)
                again = await asyncio.gather(PATHS[path](store), return_exceptions=True)
                if isinstance(again[0], BaseException):
                    assert isinstance(again[0], SchedulerError)
                    assert not isinstance(again[0], StoreUnavailable)
                await check_postgres(url)
                if not reached:
                    assert trip > 1
                    return
        raise AssertionError("a path of 59 questions")

    asyncio.run(cut_each_trip())


def test_what_was_acknowledged_survives_a_crash_of_the_server(server: Postgres) -> None:
    async def through_the_crash() -> None:
        url = await server.create()
        async with clients(url, 1) as (store,):
            promised: list[str] = []
            finished: list[str] = []
            for life in range(2):
                enough = asyncio.Event()

                async def press(life: int, enough: asyncio.Event) -> None:
                    for number in range(100_000):
                        name = f"{life}-{number}"
                        await submit(store, job(name))
                        promised.append(name)
                        held = await start_one(store)
                        await finish(store, held)
                        finished.append(held.id)
                        if number == 20:
                            enough.set()

                pressing = asyncio.ensure_future(press(life, enough))
                await enough.wait()
                await asyncio.to_thread(restart, server.folder)
                with pytest.raises(StoreUnavailable):
                    await pressing
                await check_postgres(url)
                for name in promised:
                    assert await store.job(name) is not None
                for name in finished:
                    attempts = await store.attempts(name)
                    assert [a.outcome for a in attempts] == ["COMPLETED"]
                await store.expire(at(10_000))
                counts = (await store.counts()).states
                assert counts[JobState.CLAIMED] == counts[JobState.EXECUTING] == 0

    asyncio.run(through_the_crash())


def test_a_wire_that_is_cut_is_unavailable_and_then_available(server: Postgres) -> None:
    async def run() -> None:
        name = (await server.create()).partition("?")[0].rpartition("/")[2]
        async with bad_wire(f"127.0.0.1:{server.port}") as (wire, address):
            store = await open_store(f"postgres://postgres@{address}/{name}?sslmode=disable")
            await submit(store, job("a"))
            wire.cut()
            with pytest.raises(StoreUnavailable):
                await submit(store, job("b"))
            wire.mend()
            await submit(store, job("c"))
            assert await store.job("c") is not None
            await store.close()

    asyncio.run(run())


def test_the_secret_of_the_address_is_in_no_error(server: Postgres) -> None:
    port = server.port
    for url in (
        f"postgres://guarded:sesame@127.0.0.1:{port}/postgres",
        f"postgres://guarded@127.0.0.1:{port}/postgres?password=sesame",
        "postgres://bob:sesame@127.0.0.1:1/postgres",
        f"postgres://bob:ses/ame@127.0.0.1:{port}/postgres",
        "postgres://bob:sesame@[::1/postgres",
    ):
        with pytest.raises(BadInput) as refused:
            asyncio.run(open_store(url))
        told = f"{refused.value} {refused.value.message} {refused.value.hint}"
        assert "sesame" not in told
        assert "ses/ame" not in told


def test_a_newer_layout_is_refused(server: Postgres) -> None:
    async def run() -> None:
        url = await server.create()
        async with clients(url, 1):
            await server.run("INSERT INTO layout VALUES (999)", url)
        with pytest.raises(BadInput, match="newer version"):
            await PostgresGround.open(url)

    asyncio.run(run())


def test_many_may_open_a_new_database_at_the_same_moment(server: Postgres) -> None:
    async def run() -> None:
        url = await server.create()
        stores = await asyncio.gather(*(open_store(url) for _ in range(8)))
        await submit(stores[0], job("a"))
        assert await stores[7].job("a") is not None
        for store in stores:
            await store.close()

    asyncio.run(run())

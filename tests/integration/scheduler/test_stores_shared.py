"""A store remembers what it has just read or written. What another process changes meanwhile is
seen all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.queue.reports import Accepted, Refusal, Refused
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.store import Store
from tests.integration.scheduler.postgres_store import postgres
from tests.integration.scheduler.redis_server import redis_server
from tests.unit.scheduler.store.cases.harness import (
    at,
    beat,
    completed,
    job,
    submit,
    take,
)

Two = Callable[[], AbstractAsyncContextManager[tuple[Store, Store]]]


@asynccontextmanager
async def both(address: str) -> AsyncIterator[tuple[Store, Store]]:
    one, other = await open_store(address), await open_store(address)
    try:
        async with asyncio.timeout(60):
            yield one, other
    finally:
        await one.close()
        await other.close()


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Two]:
    if request.param == "sqlite":
        yield lambda: both(f"sqlite:{tmp_path / 'jobs.db'}")
        return
    if request.param == "postgres":
        with postgres() as database:
            yield lambda: both(database.url("postgres"))
        return
    with redis_server(tmp_path) as server:
        yield lambda: both(server.url)


def test_a_wish_to_cancel_from_elsewhere_reaches_the_holder(two: Two) -> None:
    async def run() -> None:
        async with two() as (mine, theirs):
            await submit(mine, job("a"))
            (held,) = await take(mine, start=True)
            await theirs.cancel("a", at(1))
            answer = await mine.report(beat(held), at(2))
            assert isinstance(answer, Accepted)
            assert answer.stop
            end = await mine.report(completed(held), at(3))
            assert isinstance(end, Accepted)
            assert end.job.cancel_requested
            assert await theirs.job("a") == end.job

    asyncio.run(run())


def test_a_job_taken_away_elsewhere_is_not_completed_here(two: Two) -> None:
    async def run() -> None:
        async with two() as (mine, theirs):
            await submit(mine, job("a"), job("b"))
            a, b = await take(mine, limit=2, start=True)
            (lost, _) = await theirs.recover_worker("w-1", at(1))
            answers = await mine.report_batch([completed(a), completed(b)], at(2))
            assert answers == [Refused("a", Refusal.NOT_HELD), Refused("b", Refusal.NOT_HELD)]
            assert await mine.job("a") == lost
            (again,) = await take(theirs, "w-2", now=at(60), start=True)
            late = await mine.report(completed(a), at(61))
            assert late == Refused("a", Refusal.OTHER_WORKER)
            assert again.token > max(a.token, b.token)
            done = await theirs.report(completed(again), at(62))
            assert isinstance(done, Accepted)
            assert (await mine.counts()).states[JobState.COMPLETED] == 1

    asyncio.run(run())


def test_tokens_grow_whoever_gives_them(two: Two) -> None:
    async def run() -> None:
        async with two() as (mine, theirs):
            await submit(mine, *(job(f"j{number}") for number in range(6)))
            tokens: list[int] = []
            for store in (mine, theirs) * 3:
                (held,) = await take(store, start=True)
                tokens.append(held.token)
            assert tokens == sorted(set(tokens))
            assert (await theirs.counts()).states[JobState.EXECUTING] == 6

    asyncio.run(run())

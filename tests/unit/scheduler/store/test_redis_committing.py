"""Who waits for a batch and is stopped: it stops, whatever became of the batch."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.store.redis.committing import Committer
from hyperscale.scheduler.store.redis.copy import Recent
from hyperscale.scheduler.store.redis.scripts import Scripts
from hyperscale.scheduler.store.redis.step import StepRecords


class Redis:
    """Answers when told to, and never well."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.cut = asyncio.Event()
        self.stopping: list[asyncio.Task[Any] | None] = []
        """With each answer, who is stopped."""

    async def fetch(self, commands: Any) -> list[Any]:
        self.asked.set()
        await self.cut.wait()
        if (stopped := self.stopping.pop(0)) is not None:
            # Runs after the bad news was left for whoever waits, and before that one wakes up.
            asyncio.get_running_loop().call_soon(stopped.cancel)
        raise StoreUnavailable("cut")


def read(records: StepRecords) -> object:
    return records.job("a")


def test_a_cancellation_that_comes_with_bad_news_is_one() -> None:
    async def main() -> None:
        redis = Redis()
        committer = Committer(cast("Scripts", redis), Recent(), lambda sign: None)
        alone = asyncio.create_task(committer.run([read]))
        await redis.asked.wait()
        leader, follower = (asyncio.create_task(committer.run([read])) for _ in range(2))
        await asyncio.sleep(0)
        redis.stopping = [None, follower]
        redis.cut.set()
        for failing in (alone, leader):
            with pytest.raises(StoreUnavailable):
                await failing
        with pytest.raises(asyncio.CancelledError):
            await follower

    asyncio.run(main())

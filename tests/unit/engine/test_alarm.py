"""The fine timer: never early, reusable, gone after close."""

import asyncio
import os
from time import perf_counter

import pytest

from hyperscale.engine.alarm import Alarm
from hyperscale.engine.clock import LoadClock


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.003])
def test_it_never_wakes_early(seconds: float) -> None:
    async def scenario() -> None:
        alarm = Alarm()
        for _ in range(5):
            began = perf_counter()
            await alarm.sleep(seconds)
            assert perf_counter() - began >= seconds
        alarm.close()

    asyncio.run(scenario())


def test_a_sleeper_that_is_cancelled_leaves_it_usable() -> None:
    async def scenario() -> None:
        alarm = Alarm()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await alarm.sleep(60)
        await alarm.sleep(0.001)
        alarm.close()
        alarm.close()

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    asyncio.run(scenario())
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_load_time_stands_still_while_paused() -> None:
    async def scenario() -> None:
        clock = LoadClock()
        clock.pause()
        at = clock.elapsed()
        reaching = asyncio.ensure_future(clock.reach(at + 0.01))
        await asyncio.sleep(0.03)
        assert not reaching.done()
        assert clock.elapsed() == at
        clock.resume()
        assert await reaching is True
        waiting = asyncio.ensure_future(clock.reach(1000.0))
        clock.stopped = True
        assert await waiting is False

    asyncio.run(scenario())

"""An event that is waited for only so long, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from hyperscale.runtime.timed_event import TimedEvent
from hyperscale.sim.loop import SimLoop


def run(story: Coroutine[Any, Any, Any]) -> Any:
    return SimLoop().run_until_complete(story)


def test_it_is_over_when_set_or_when_the_time_is_up() -> None:
    async def story() -> None:
        loop, event = asyncio.get_running_loop(), TimedEvent()
        assert not await event.wait(2.0)
        assert loop.time() == 2.0
        loop.call_later(1.0, event.set)
        assert await event.wait(2.0)
        assert loop.time() == 3.0
        assert await event.wait(2.0), "it stays set"
        assert loop.time() == 3.0
        event.clear()
        assert not event.is_set()
        assert not await event.wait(0.5)
        assert loop.time() == 3.5

    run(story())


def test_without_a_limit_it_waits_until_set() -> None:
    async def story() -> None:
        loop, event = asyncio.get_running_loop(), TimedEvent()
        loop.call_later(1_000.0, event.set)
        assert await event.wait(None)
        assert loop.time() == 1_000.0

    run(story())


def test_no_time_is_a_turn_of_the_loop() -> None:
    async def story() -> None:
        loop, event = asyncio.get_running_loop(), TimedEvent()
        loop.call_soon(event.set)
        assert await event.wait(0.0), "what was ready before came first"
        event.clear()
        assert not await event.wait(-1.0)
        assert loop.time() == 0.0

    run(story())


def test_all_who_wait_are_woken() -> None:
    async def story() -> list[bool]:
        event = TimedEvent()
        asyncio.get_running_loop().call_later(1.0, event.set)
        return await asyncio.gather(event.wait(0.5), event.wait(2.0), event.wait(None))

    assert run(story()) == [False, True, True]


def test_who_is_cancelled_leaves_nothing_behind() -> None:
    async def story() -> None:
        event = TimedEvent()
        waiting = asyncio.ensure_future(event.wait(1.0))
        await asyncio.sleep(0.5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        event.set()
        await asyncio.sleep(5.0)  # its time has come and gone
        assert await event.wait(1.0)

    run(story())

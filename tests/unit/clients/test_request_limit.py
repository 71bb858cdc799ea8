"""The cap of requests per second, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from hyperscale.clients.request_limit import BURST_S, TICK_S, RequestLimit
from hyperscale.sim.loop import SimLoop


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return SimLoop().run_until_complete(main)


async def sent(limit: RequestLimit, users: int, each: int) -> list[float]:
    """When the requests of several users in a hurry start."""
    loop, starts = asyncio.get_running_loop(), []

    async def user() -> None:
        for _ in range(each):
            await limit.wait()
            starts.append(loop.time())

    await asyncio.gather(*(user() for _ in range(users)))
    return starts


@pytest.mark.parametrize("rps", [0.5, 10, 200, 5_000])
def test_the_rate_is_kept_and_reached(rps: float) -> None:
    starts = run(sent(RequestLimit(rps), users=20, each=50))
    burst = max(1, round(rps * BURST_S))
    for number, start in enumerate(starts):
        earliest = (number - burst) / rps
        assert earliest - 1e-9 <= start <= max(0.0, number / rps) + TICK_S + 1e-9


def test_requests_are_spaced_evenly() -> None:
    starts = run(sent(RequestLimit(100), users=7, each=20))[10:]
    assert all(later - one == pytest.approx(0.01, abs=TICK_S) for one, later in pairwise(starts))


def test_who_comes_first_is_served_first() -> None:
    async def main() -> list[int]:
        limit, order = RequestLimit(10), []

        async def user(number: int) -> None:
            await limit.wait()
            order.append(number)

        await asyncio.gather(*(user(number) for number in range(30)))
        return order

    assert run(main()) == list(range(30))


def test_after_a_pause_no_more_than_a_moment_is_made_up_for() -> None:
    async def main() -> list[float]:
        limit = RequestLimit(100)
        await sent(limit, users=1, each=5)
        await asyncio.sleep(60)
        began = asyncio.get_running_loop().time()
        return [start - began for start in await sent(limit, users=20, each=1)]

    starts = run(main())
    assert sum(start == 0 for start in starts) <= 100 * BURST_S + 1
    assert starts[-1] >= (20 - 100 * BURST_S - 1) / 100 - 1e-9


def test_those_who_give_up_take_no_turn() -> None:
    async def main() -> float:
        limit, loop = RequestLimit(1), asyncio.get_running_loop()
        await limit.wait()
        waiting = [asyncio.create_task(limit.wait()) for _ in range(10)]
        await asyncio.sleep(0.5)
        for task in waiting[:9]:
            task.cancel()
        await waiting[9]
        return loop.time()

    assert run(main()) == pytest.approx(1.0 - BURST_S, abs=0.01)

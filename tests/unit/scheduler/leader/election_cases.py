"""What holds for every election; the local one runs it here, the others among the integration
tests. A `ground` opens candidates that compete with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from hyperscale.scheduler.leader.election import Election

TTL_S = 2.0
Ground = Callable[[], AbstractAsyncContextManager[Callable[[str], Election]]]


async def zero() -> int:
    return 0


def on_ground(case: Callable[[Any, Callable[[str], Election]], Awaitable[None]]) -> Any:
    def test(self: Any, ground: Ground) -> None:
        async def run() -> None:
            async with ground() as candidate, asyncio.timeout(60):
                await case(self, candidate)

        asyncio.run(run())

    test.__name__ = case.__name__
    return test


class ElectionCases:
    @on_ground
    async def test_one_leads_and_the_others_wait(self, candidate: Any) -> None:
        one, two = candidate("one"), candidate("two")
        term = await one.campaign(zero)
        waiting = asyncio.create_task(two.campaign(zero))
        done, _ = await asyncio.wait([waiting], timeout=TTL_S * 1.5)
        assert not done
        assert term.remaining_s > 0
        assert not term.lost.is_set()
        leader = await two.leader()
        assert (leader.node, leader.token) == ("one", term.token)
        waiting.cancel()
        await asyncio.wait([waiting])
        await one.close()
        await two.close()

    @on_ground
    async def test_resigning_hands_over_at_once_with_a_higher_token(self, candidate: Any) -> None:
        one, two = candidate("one"), candidate("two")
        first = await one.campaign(zero)
        waiting = asyncio.create_task(two.campaign(zero))
        await asyncio.sleep(0.05)
        await one.resign()
        assert first.lost.is_set()
        assert first.remaining_s == 0
        second = await waiting
        assert second.token > first.token
        await one.close()
        await two.close()

    @on_ground
    async def test_who_falls_silent_is_succeeded_after_its_trust_ended(
        self, candidate: Any
    ) -> None:
        one, two = candidate("one"), candidate("two")
        first = await one.campaign(zero)
        await one._stop_renewing()  # as if the process were paused: nothing is renewed, no goodbye
        second = await two.campaign(zero)
        assert second.token > first.token
        assert first.remaining_s == 0
        again = asyncio.create_task(one.campaign(zero))
        await two.resign()
        assert (await again).token > second.token
        await one.close()
        await two.close()

    @on_ground
    async def test_a_token_is_above_what_the_store_has_seen(self, candidate: Any) -> None:
        async def seen() -> int:
            return 1_000_000

        one = candidate("one")
        assert (await one.campaign(seen)).token > 1_000_000
        await one.resign()
        assert (await one.campaign(zero)).token > 1_000_001
        await one.close()

    @on_ground
    async def test_nobody_leads_after_the_last_one_left(self, candidate: Any) -> None:
        one = candidate("one")
        await one.campaign(zero)
        await asyncio.sleep(0.05)  # its renewing has begun, and ends with it
        await one.resign()
        assert await one.leader() is None
        await one.close()

    @on_ground
    async def test_of_many_candidates_one_wins(self, candidate: Any) -> None:
        many = [candidate(f"node-{i}") for i in range(5)]
        campaigns = [asyncio.create_task(each.campaign(zero)) for each in many]
        tokens: list[int] = []
        for _ in range(3):
            won, _ = await asyncio.wait(campaigns, return_when=asyncio.FIRST_COMPLETED)
            assert len(won) == 1
            (winner,) = won
            tokens.append(winner.result().token)
            at = campaigns.index(winner)
            await many[at].close()
            del campaigns[at], many[at]
        assert tokens == sorted(set(tokens))
        for each in campaigns:
            each.cancel()
        await asyncio.wait(campaigns)
        for each in many:
            await each.close()

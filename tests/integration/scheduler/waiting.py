"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

LOOK_S = 0.02


async def until(condition: Callable[[], Awaitable[bool]], deadline_s: float = 60.0) -> None:
    async with asyncio.timeout(deadline_s):
        while not await condition():  # noqa: ASYNC110 - a store has no event to wait for
            await asyncio.sleep(LOOK_S)

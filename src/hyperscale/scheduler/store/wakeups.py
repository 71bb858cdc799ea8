"""Waiting for work without asking for it all the time.

Writers of this process wake the waiting at once. For writers of other processes the store has a
cheap sign of change (a counter, a file's version); while anybody waits, one of the waiting looks
at it every 25 ms, a part of the 50 ms that pickup may take. Nobody waits: nobody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

POLL_S: Final = 0.025


class Wakeups:
    def __init__(self, remote_sign: Callable[[], Awaitable[int]] | None = None) -> None:
        self._remote_sign = remote_sign
        self._seen_sign: int | None = None
        self._looking = False
        self._mark = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def mark(self) -> int:
        return self._mark

    def wake(self, sign: int | None = None) -> None:
        """`sign` is the store's sign after this process's own write: no need to wake twice."""
        if sign is not None and self._seen_sign == sign - 1:
            self._seen_sign = sign
        self._mark += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def changed(self, mark: int, timeout_s: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._mark == mark:
            left = until - loop.time()
            if left <= 0:
                return False
            await self._sleep(left if self._remote_sign is None else min(left, POLL_S))
            await self._look()
        return True

    async def _sleep(self, seconds: float) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(mine)

    async def _look(self) -> None:
        if self._remote_sign is None or self._looking:
            return
        self._looking = True
        try:
            sign = await self._remote_sign()
        finally:
            self._looking = False
        if self._seen_sign is None or sign != self._seen_sign:
            self._seen_sign = sign
            self.wake()

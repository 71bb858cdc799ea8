"""Waiting that may be given up without giving up the work.

A caller that goes away (its connection broke, its deadline passed) must not stop a write that is
half done. The work is a task of the host; callers wait on futures of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from hyperscale.runtime.host import Tasks

T = TypeVar("T")


async def promise_of(tasks: Tasks, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of `work`, which goes on to its end even if the caller is cancelled. Who calls is
    a task of the same host: both end when the host stops."""
    outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    tasks.spawn(name, _fulfil(work, outcome))
    return await outcome


async def _fulfil(work: Callable[[], Coroutine[Any, Any, T]], outcome: asyncio.Future[T]) -> None:
    try:
        result = await work()
    except asyncio.CancelledError:
        outcome.cancel()
        raise
    except Exception as error:
        if outcome.done():
            raise
        outcome.set_exception(error)
    else:
        if not outcome.done():
            outcome.set_result(result)


class Waiters(Generic[T]):
    """Who waits for the outcome of a key. Waiting ends with the outcome, or with None when there
    will be none or the time is up."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[asyncio.Future[T | None], None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def wait(self, key: bytes, timeout_s: float) -> T | None:
        mine: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, {})[mine] = None
        try:
            async with asyncio.timeout(timeout_s):
                return await mine
        except TimeoutError:
            return None
        finally:
            self._forget(key, mine)

    def settle(self, key: bytes, outcome: T | None) -> None:
        for waiting in self._waiting.pop(key, ()):
            if not waiting.done():
                waiting.set_result(outcome)

    def settle_all(self, outcome: T | None) -> None:
        for key in list(self._waiting):
            self.settle(key, outcome)

    def _forget(self, key: bytes, mine: asyncio.Future[T | None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(mine, None)
            if not waiting:
                del self._waiting[key]

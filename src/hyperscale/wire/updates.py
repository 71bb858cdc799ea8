"""A stream of updates as its receiver sees it.

The sender may be ahead by `window` updates and no more: each batch taken from the queue is granted
again. A sender that ignores this is cut off, so a slow reader costs a bounded queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from hyperscale.wire.errors import Malformed, RemoteFailed, WireError

U = TypeVar("U")


class Updates(Generic[U]):
    """Iterate to receive; leave the `async with` to make the other side stop."""

    def __init__(
        self,
        kind: str,
        expect: type[U],
        window: int,
        credit: Callable[[int], None],
        cancel: Callable[[], None],
    ) -> None:
        if window < 1:
            raise ValueError("a window of at least one update is needed")
        self._kind = kind
        self.expect = expect
        self._window = window
        self._credit = credit
        self._cancel = cancel
        self._queue: deque[U] = deque()
        self._taken = 0
        self._news = asyncio.Event()
        self._finished = False
        self._error: WireError | None = None

    def put(self, update: Any) -> None:
        if len(self._queue) + self._taken >= self._window:
            raise Malformed(f"more updates of {self._kind} than were asked for")
        if type(update) is not self.expect:
            self.finish(RemoteFailed(self._kind, f"sent {type(update).__name__}"))
            return
        self._queue.append(update)
        self._news.set()

    def finish(self, error: WireError | None) -> None:
        if not self._finished:
            self._finished = True
            self._error = error
            self._news.set()

    def close(self) -> None:
        self.finish(None)
        self._cancel()

    def __aiter__(self) -> Updates[U]:
        return self

    async def __anext__(self) -> U:
        while not self._queue:
            if self._finished:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        update = self._queue.popleft()
        self._taken += 1
        if self._taken * 2 >= self._window and not self._finished:
            self._credit(self._taken)
            self._taken = 0
        return update

    async def __aenter__(self) -> Updates[U]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

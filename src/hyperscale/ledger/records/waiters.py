"""Who waits for what: callers of `append` for their record, answers for the disk.

Waiting may be given up at any time; what was waited for goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from hyperscale.errors import HyperscaleError

MakeError = Callable[[], HyperscaleError]
"""A new one for everybody: an exception that is raised collects its raiser's frames."""


class Waiters:
    def __init__(self) -> None:
        self._records: dict[int, tuple[int, asyncio.Future[int]]] = {}
        self._writes: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._written = 0
        self._over = False
        self._changed = asyncio.Event()

    async def applied(self, index: int, term: int) -> int:
        """Wait until the entry that was written at `index` in `term` is applied."""
        mine: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._records[index] = (term, mine)
        try:
            return await mine
        finally:
            if self._records.get(index) == (term, mine):
                del self._records[index]

    def tell_applied(self, index: int, term: int, otherwise: MakeError) -> None:
        """The entry of this term stands at `index` for good; who waited for one of another term
        gets the error."""
        wanted, waiting = self._records.pop(index, (0, None))
        if waiting is None or waiting.done():
            return
        if wanted == term:
            waiting.set_result(index)
        else:
            waiting.set_exception(otherwise())

    def refuse(self, error: MakeError) -> None:
        """No caller's record can be answered for any more."""
        waiting, self._records = self._records, {}
        for _, future in waiting.values():
            if not future.done():
                future.set_exception(error())

    async def written(self, write: int) -> None:
        """Wait until this write is done, or until none will be any more."""
        if write <= self._written or self._over:
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writes.append((write, mine))
        await mine

    def tell_written(self, write: int) -> None:
        self._written = write
        while self._writes and self._writes[0][0] <= write:
            _, waiting = self._writes.popleft()
            if not waiting.done():
                waiting.set_result(None)

    def release(self) -> None:
        """The disk has failed or was closed: nothing more will be written."""
        self._over = True
        for _, waiting in self._writes:
            if not waiting.done():
                waiting.set_result(None)
        self._writes.clear()
        self.tell_changed()

    async def changed(self) -> None:
        """The next change of anything."""
        await self._changed.wait()

    def tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

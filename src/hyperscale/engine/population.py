"""The virtual users living on this core: born by the load model, gone when it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperscale.engine.pace import Pace
    from hyperscale.engine.vu import VirtualUser
    from hyperscale.metrics.recorder import WorkflowRecorder


class Population:
    def __init__(self, make: Callable[[int], VirtualUser], recorder: WorkflowRecorder) -> None:
        self._make = make
        self._recorder = recorder
        self._users: dict[asyncio.Task[None], VirtualUser] = {}
        self._born = 0
        self.peak = 0
        self.pace: Pace[Any]
        self.crash: BaseException | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def size(self) -> int:
        return len(self._users)

    def grow(self, count: int) -> None:
        left, context = self._left, copy_context()  # one for all: there may be many of them
        for _ in range(count):
            user = self._make(self._born)
            self._born += 1
            task = asyncio.create_task(user.live(self.pace))
            self._users[task] = user
            task.add_done_callback(left, context=context)
        self._recorder.vus = len(self._users)
        self.peak = max(self.peak, len(self._users))
        if self._users:
            self._empty.clear()

    def _left(self, task: asyncio.Task[None]) -> None:
        user = self._users.pop(task)
        user.close()
        self._recorder.vus = len(self._users)
        if not task.cancelled() and task.exception() is not None and self.crash is None:
            self.crash = task.exception()
            self.pace.stop()
        if not self._users:
            self._empty.set()

    def users(self) -> Iterable[tuple[asyncio.Task[None], VirtualUser]]:
        return self._users.items()

    async def gone(self) -> None:
        """Wait until every VU has left."""
        await self._empty.wait()

    async def finish(self, grace_s: float, cut_grace_s: float) -> None:
        """Let running iterations end within the grace, then cut off what still runs.

        User code may swallow its cancellation; after `cut_grace_s` it is left behind."""
        for task, user in self._users.items():
            if not user.working:
                task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
            return
        self.cut(stopped=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(cut_grace_s):
                await self._empty.wait()

    def cut(self, stopped: bool) -> None:
        """`stopped`: somebody ends the load before its plan does."""
        for task, user in list(self._users.items()):
            if user.working and not user.cut:
                self._recorder.interrupted += 1
            user.cut, user.stopped = True, stopped
            task.cancel()

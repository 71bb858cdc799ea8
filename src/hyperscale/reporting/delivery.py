"""Points on their way to live reporters, in a thread of their own.

The run hands points over and never waits. Each reporter has a queue with a limit: a backend that
is slow or away costs its oldest points, which are counted, and nothing else.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.reporting.contract import Refused
from hyperscale.reporting.points import Points
from hyperscale.reporting.reporter import ATTEMPT_S, BATCH_ROWS, PAUSES_S, Reporter

# A row takes about 1 KB: 20 MB for each reporter that is away. A test of ten steps makes some 15
# rows a second, so it is an hour and a quarter before anything is lost.
ROWS_MAX = 20_000
BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0)
# With PAUSES_S and two attempts it is the longest that the end of a run waits.
DRAIN_S = 20.0


class Lane:
    """One reporter's queue and the task that empties it. Lives in the thread."""

    def __init__(self, reporter: Reporter[Any], workflows: frozenset[str] | None) -> None:
        self.reporter = reporter
        self.sent = 0
        self.lost = 0
        self.error = ""
        self.on_trouble: Callable[[str], None] | None = None
        self._workflows = workflows
        self._queue: deque[Points] = deque()
        self._waiting = 0
        self._under_way = 0
        self._news = asyncio.Event()
        self._closing = False
        self._failures = 0
        self._is_told = False  # of the trouble there is, to whoever watches

    def put(self, points: Points) -> None:
        points = points.only(self._workflows)
        self._queue.append(points)
        self._waiting += len(points.rows)
        self._limit()
        self._news.set()

    def close(self) -> None:
        """Send what is there, and end. What failed before says nothing of what will."""
        self._closing, self._failures = True, 0
        self._news.set()

    async def run(self) -> None:
        try:
            while not (self._closing and not self._queue):
                await self._news.wait()
                self._news.clear()
                while self._queue:
                    if not await self._send() and self._gives_up():
                        return
                await self._pause(self.reporter.backend.every_s)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(ATTEMPT_S):
                    await self.reporter.close()

    async def _send(self) -> bool:
        batch = self._take()
        try:
            async with asyncio.timeout(ATTEMPT_S):
                await self.reporter.submit(batch)
        except Refused as refused:
            self._under_way = 0
            self.lost += _rows(batch)
            self._trouble(refused, f"{_rows(batch):,} points are lost")
            return True
        except Exception as error:  # noqa: BLE001 - of any library: whatever it is, the run stands
            self._put_back(batch)
            self._failures += 1
            self._trouble(error, f"up to {ROWS_MAX:,} points are kept meanwhile")
            with suppress(Exception):
                await self.reporter.close()
            if not self._gives_up():
                await self._pause(self._backoff_s())
            return False
        except asyncio.CancelledError:
            self._put_back(batch)
            raise
        self._failures, self._under_way, self._is_told = 0, 0, False
        self.sent += _rows(batch)
        return True

    def _take(self) -> list[Points]:
        batch: list[Points] = []
        rows = 0
        while self._queue and (not batch or rows + len(self._queue[0].rows) <= BATCH_ROWS):
            batch.append(self._queue.popleft())
            rows += len(batch[-1].rows)
        self._waiting -= rows
        self._under_way = rows
        return batch

    def _put_back(self, batch: list[Points]) -> None:
        self._queue.extendleft(reversed(batch))
        self._waiting += _rows(batch)
        self._under_way = 0
        self._limit()

    def _limit(self) -> None:
        while self._waiting > ROWS_MAX and len(self._queue) > 1:
            rows = len(self._queue.popleft().rows)
            self._waiting -= rows
            self.lost += rows

    def _backoff_s(self) -> float:
        if self._closing:
            return PAUSES_S[min(self._failures, len(PAUSES_S)) - 1]
        return BACKOFF_S[min(self._failures, len(BACKOFF_S)) - 1]

    def _gives_up(self) -> bool:
        return self._closing and self._failures > len(PAUSES_S)

    async def _pause(self, seconds: float) -> None:
        """What comes meanwhile waits; the end of the run does not."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        closing = self._closing
        while self._closing == closing and (left_s := until - loop.time()) > 0:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()
        if self._queue or self._closing:
            self._news.set()

    def _trouble(self, error: Exception, what: str) -> None:
        told = self.reporter.told(error)
        if not self._is_told and self.on_trouble is not None:
            self._is_told = True
            self.on_trouble(f"{self.reporter.name}: {told}; {what}")
        self.error = told

    def loss(self) -> HyperscaleError | None:
        """To be asked when it has ended."""
        lost = self.lost + self._waiting + self._under_way
        if not lost:
            return None
        why = f": {self.error}" if self.error else ": it was slower than the run"
        whole = lost + self.sent
        return RunFailed(f"{lost:,} of {whole:,} points did not reach {self.reporter.name}{why}")


def _rows(batch: Sequence[Points]) -> int:
    return sum(len(points.rows) for points in batch)


class Delivery:
    """The thread with a lane for each reporter."""

    def __init__(self, wanted: Sequence[tuple[Reporter[Any], frozenset[str] | None]]) -> None:
        self._loop = asyncio.new_event_loop()
        self.lanes = [Lane(reporter, workflows) for reporter, workflows in wanted]
        self._tasks: list[asyncio.Task[None]] = []
        # A daemon: a library that blocks for good must not keep the program from ending.
        self._thread = threading.Thread(target=self._work, name="reporters", daemon=True)

    def start(self, on_trouble: Callable[[str], None]) -> None:
        for lane in self.lanes:
            lane.on_trouble = on_trouble
        self._thread.start()

    def offer(self, points: Points) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._put, points)

    def _put(self, points: Points) -> None:
        for lane in self.lanes:
            lane.put(points)

    def finish(self, within_s: float = DRAIN_S) -> list[HyperscaleError]:
        """Wait until all is sent, no longer than that; what was lost."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._close)
            self._thread.join(within_s)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(1.0)
        return [error for lane in self.lanes if (error := lane.loss()) is not None]

    def _close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._tasks = [asyncio.create_task(lane.run()) for lane in self.lanes]
        await asyncio.gather(*self._tasks, return_exceptions=True)

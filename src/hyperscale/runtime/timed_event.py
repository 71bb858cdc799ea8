"""An event that is waited for only so long: what loops do that act by the clock and when stirred.

`asyncio.timeout` around `asyncio.Event.wait` does the same by cancelling the waiting task and
catching two exceptions, at three times the cost.
"""

from __future__ import annotations

import asyncio


class TimedEvent:
    """Set and cleared as `asyncio.Event`."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[asyncio.Future[bool]] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(True)

    def clear(self) -> None:
        self._set = False

    async def wait(self, seconds: float | None) -> bool:
        """True when it is set, False when the time is up first; None: no limit."""
        if self._set:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer: asyncio.Handle | None = None
        if seconds is not None:
            # What is due already comes in its turn, not after the timers.
            timer = (
                loop.call_later(seconds, _time_is_up, waiter)
                if seconds > 0
                else loop.call_soon(_time_is_up, waiter)
            )
        self._waiting.append(waiter)
        try:
            return await waiter
        finally:
            self._waiting.remove(waiter)
            if timer is not None:
                timer.cancel()


def _time_is_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)

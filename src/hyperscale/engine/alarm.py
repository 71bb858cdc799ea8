"""A timer for the open models that is finer than the event loop's.

The loop counts milliseconds, so arrivals would start half a millisecond late on average and their
response times would carry it. Linux's timerfd wakes within some 50 µs. Elsewhere the loop's own
timer does the work.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys

_CLOCK_MONOTONIC = 1
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Moment), ("value", _Moment))


class Alarm:
    """One sleeper at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._descriptor = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        if self._descriptor >= 0:
            self._loop.add_reader(self._descriptor, self._ring)

    async def sleep(self, seconds: float) -> None:
        if self._descriptor < 0:
            await asyncio.sleep(seconds)
            return
        whole, part = divmod(max(1, int(seconds * 1e9)), 1_000_000_000)  # zero would disarm it
        setting = _Setting(value=_Moment(whole, part))
        self._waiter = self._loop.create_future()
        self._libc.timerfd_settime(self._descriptor, 0, ctypes.byref(setting), None)
        await self._waiter

    def _ring(self) -> None:
        os.read(self._descriptor, 8)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

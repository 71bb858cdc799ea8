"""What the simulated loop has in its queues: callbacks, and tasks that sleep.

A simulated minute is made of tens of thousands of them, so they are what asyncio asks for and
nothing more.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Any

import msgspec

from hyperscale.sim.process import CURRENT, Process

if TYPE_CHECKING:
    from hyperscale.sim.loop import SimLoop

NEVER = -math.inf


class Event(msgspec.Struct, eq=False):
    """A callback in the queue: what asyncio wants of a handle, without its weight, because most
    of them are made, run once and thrown away. A struct is made at half the cost of an object."""

    loop: SimLoop
    call: Callable[..., object] | None
    """None: it was cancelled."""
    arguments: tuple[Any, ...]
    context: Context | None
    """None for what happens outside every process."""
    process: Process | None
    due_local: float = NEVER

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self.arguments = ()
            if self.due_local != NEVER:
                self.loop.note_stale_timer()

    def cancelled(self) -> bool:
        return self.call is None

    def when(self) -> float:
        return self.due_local

    def get_context(self) -> Context:
        return Context() if self.context is None else self.context


class Nap:
    """A sleep that is its own future: the timer wakes the task, with nothing in between. Nodes
    sleep more than they do anything else."""

    __slots__ = ("_asyncio_future_blocking", "_cancelled", "_event", "_loop", "_seconds")

    def __init__(self, loop: SimLoop, seconds: float) -> None:
        self._asyncio_future_blocking = True
        self._cancelled = False
        self._event: Event
        self._loop = loop
        self._seconds = seconds

    def __await__(self) -> Generator[Nap, None, None]:
        yield self

    # -- what a task asks of a future -------------------------------------------------------

    def get_loop(self) -> SimLoop:
        return self._loop

    def add_done_callback(self, wake: Callable[[Any], object], *, context: Context) -> None:
        """Who sleeps to the end is woken with a future that is done: asyncio reads its result
        faster than ours."""
        loop = self._loop
        process = context.get(CURRENT)
        if process is None:
            due = due_truly = loop.now + self._seconds
        else:
            due, due_truly = process.after(self._seconds)
        self._event = event = Event(loop, wake, (loop.rested,), context, process, due)
        loop.push(due_truly, event)

    def cancel(self, msg: object = None) -> bool:
        event = self._event
        wake = event.call
        if wake is None or self._cancelled:
            return False
        self._cancelled = True
        event.cancel()
        self._loop.call_soon(wake, self, context=event.context)
        return True

    def result(self) -> None:
        """Asked for only by a task that was woken early."""
        raise asyncio.CancelledError

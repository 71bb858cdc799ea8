"""Carrying out a run in front of a person: the views beside it, signals, the end.

The first SIGINT or SIGTERM stops gracefully, the second at once. Where the load runs makes no
difference.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import TYPE_CHECKING, Protocol

from hyperscale.cli import streams
from hyperscale.ui.live.beside import beside
from hyperscale.ui.live.source import Source

if TYPE_CHECKING:
    from hyperscale.errors import HyperscaleError
    from hyperscale.metrics.results import Results
    from hyperscale.ui.live import View

STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


class Run(Source, Protocol):
    """A run of this machine or of a cluster."""

    @property
    def failure(self) -> HyperscaleError | None:
        """What kept the run from being carried out, with a hint for the person."""
        ...

    async def execute(self) -> Results: ...


def carry_out(
    run: Run,
    views: Sequence[View],
    on_stop: Callable[[], None],
    on_signal: Callable[[], None] | None = None,
    reported: AbstractAsyncContextManager[None] | None = None,
) -> Results:
    """`on_stop` is called at the first signal, to tell the person what is going on. With
    `on_signal` a signal does that, and does not stop the run. `reported` is entered while it
    runs."""
    receive = on_signal or _Stops(run, on_stop).receive
    return asyncio.run(_carry_out(run, views, receive, reported or nullcontext()))


async def _carry_out(
    run: Run,
    views: Sequence[View],
    on_signal: Callable[[], None],
    reported: AbstractAsyncContextManager[None],
) -> Results:
    loop = asyncio.get_running_loop()
    for number in STOPPED_BY:
        loop.add_signal_handler(number, on_signal)
    async with reported, AsyncExitStack() as shown:
        for view in views:
            await shown.enter_async_context(beside(view, run, streams.note))
        return await run.execute()


class _Stops:
    def __init__(self, run: Run, on_stop: Callable[[], None]) -> None:
        self._run = run
        self._on_stop = on_stop
        self._received = 0

    def receive(self) -> None:
        self._received += 1
        if self._received == 1:
            self._on_stop()
            self._run.stop()
        else:
            self._run.kill()

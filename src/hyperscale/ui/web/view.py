"""A run beside which a page is open: looked at once a second, and only while somebody reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, runtime_checkable

import msgspec

from hyperscale.metrics.results import Results
from hyperscale.nodes.protocol.jobs import WorkerView
from hyperscale.ui.live.source import Source
from hyperscale.ui.web.hub import Hub
from hyperscale.ui.web.patches import Changes, Patch

PERIOD_S: Final = 1.0
WORKERS_EVERY_S: Final = 3.0


@runtime_checkable
class OnWorkers(Protocol):
    """A source whose load others make."""

    async def look_at_workers(self) -> Sequence[WorkerView]: ...


async def tell_workers(
    source: Source, publish: Callable[[Patch], None], wanted: Callable[[], bool] = lambda: True
) -> None:
    """Until it is cancelled."""
    while isinstance(source, OnWorkers):
        if wanted():
            seen = [
                {
                    "worker": one.worker,
                    "state": one.state,
                    "requests": one.requests,
                    "rate": round(one.rate, 1),
                    "cpu": one.cpu_percent,
                    "memory": one.memory_percent,
                    "warnings": one.warnings,
                }
                for one in await source.look_at_workers()
            ]
            publish(Patch(set={"workers": msgspec.Raw(msgspec.json.encode(seen))}))
        await asyncio.sleep(WORKERS_EVERY_S)


class Watching:
    """Tells a hub what changes of a run. A fresh reader is told at once."""

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._over = False
        self._changes = Changes()
        self.hub = Hub(self._wake.set)

    def over(self) -> None:
        self._over = True
        self._wake.set()

    def nudge(self) -> None:
        """Something was asked of the run: look soon whether it shows."""
        self._wake.set()

    def show(self, results: Results) -> None:
        self.hub.publish(self._changes.since(results))

    async def run(self, source: Source) -> None:
        hub = self.hub
        telling = asyncio.create_task(tell_workers(source, hub.publish, lambda: hub.readers > 0))
        try:
            await self._run(source)
        finally:
            telling.cancel()
            await asyncio.wait({telling})

    async def _run(self, source: Source) -> None:
        while True:
            self._wake.clear()
            results = source.results()
            finished = results.state == "finished" or self._over
            if self.hub.readers or finished:
                self.show(results)
            if finished:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD_S):
                    await self._wake.wait()

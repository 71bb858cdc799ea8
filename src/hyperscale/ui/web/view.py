"""A run beside which a page is open: looked at once a second, and only while somebody reads."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from hyperscale.metrics.results import Results
from hyperscale.ui.live.source import Source
from hyperscale.ui.web.hub import Hub
from hyperscale.ui.web.patches import Changes

PERIOD_S: Final = 1.0


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

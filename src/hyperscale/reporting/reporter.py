"""One reporter of a run: its backend with patience.

Whatever goes wrong is an error for people, without what is secret in its config. Nothing here
raises for a backend that fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Refused
from hyperscale.reporting.points import Points, history
from hyperscale.reporting.registry import backend_of

T = TypeVar("T", bound=Config)

# A database that restarts is back within the pauses; one that is away must not hold up a CI job.
PAUSES_S = (0.5, 1.0)
ATTEMPT_S = 15.0
# Of one submission, so that what was kept through an outage goes out in parts.
BATCH_ROWS = 5_000


def batches(points: Iterable[Points]) -> Iterator[list[Points]]:
    """Of about so many rows as a backend takes at once."""
    batch: list[Points] = []
    rows = 0
    for each in points:
        if batch and rows + len(each.rows) > BATCH_ROWS:
            yield batch
            batch, rows = [], 0
        batch.append(each)
        rows += len(each.rows)
    if batch:
        yield batch


class Reporter(Generic[T]):
    """`connect`, `submit`, `close`: the same three calls for every backend."""

    def __init__(self, config: T) -> None:
        """Raises BadInput."""
        self.config = config
        self.backend = backend_of(config)
        self._connected = False

    @property
    def name(self) -> str:
        return self.config.shown()

    async def connect(self) -> None:
        if not self._connected:
            await self.backend.connect()
            self._connected = True

    async def submit(self, metrics: Sequence[Points] | Results) -> None:
        """One attempt. Points are for a backend that is live, results for one at the end; of
        results, a live one gets the timeline."""
        await self.connect()
        if isinstance(metrics, Results):
            if self.backend.at_end:
                await self.backend.submit_results(metrics)
                return
            if not self.backend.keeps_time:
                raise Refused("it keeps no times, so it takes a run only while it goes on")
            metrics = history(metrics, metrics.started_at)
        for batch in batches(metrics):
            await self.backend.submit(batch)

    async def close(self) -> None:
        self._connected = False
        await self.backend.close()

    async def reach(self, within_s: float = ATTEMPT_S) -> HyperscaleError | None:
        """Before the run: what would go wrong now."""
        try:
            return await self._attempt(None, within_s)
        except Refused as refused:
            return self._failed(refused)

    async def send(self, results: Results) -> HyperscaleError | None:
        error: HyperscaleError | None = None
        for pause_s in (*PAUSES_S, None):
            try:
                error = await self._attempt(results)
            except Refused as refused:
                return self._failed(refused)
            if error is None or pause_s is None:
                break
            await asyncio.sleep(pause_s)
        return error

    def _failed(self, error: Exception) -> HyperscaleError:
        return RunFailed(f"results cannot be sent to {self.name}: {self.told(error)}")

    async def _attempt(
        self, results: Results | None, within_s: float = ATTEMPT_S
    ) -> HyperscaleError | None:
        """Raises Refused."""
        try:
            async with asyncio.timeout(within_s):
                try:
                    await self.connect()
                    if results is not None:
                        await self.submit(results)
                finally:
                    await self.close()
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - of any library: whatever it is, the run stands
            return self._failed(error)
        return None

    def told(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return "no answer in time"
        said = str(error).strip() or type(error).__name__
        if isinstance(error, KeyError | AttributeError | TypeError):
            said = f"{type(error).__name__}: {said}"
        return self.config.masked(" ".join(said.split())[:500])

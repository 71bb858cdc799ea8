"""What the slices of one generator process share: the environment, the limit on memory, the
code, and a heartbeat.

Event-loop lag and CPU are of the process, however many workflows have users on it: each of them is
told the same numbers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from hyperscale.engine import memory
from hyperscale.engine.cores import peak_memory_mb
from hyperscale.engine.source import decode_source
from hyperscale.metrics import arrays

if TYPE_CHECKING:
    from hyperscale.engine.messages import Prepare
    from hyperscale.workload.given import AnyWorkflow

BEAT_S = 0.05  # time-outs are noticed this late at most; also the probe of event-loop lag
FOLD_BEATS = 2  # a delta every 100 ms
SETTLE_BEATS = 20  # after a second the VUs are there: take them out of the collector's sight


class RunningSlice(Protocol):
    """A slice whose load runs."""

    @property
    def measuring(self) -> bool:
        """Neither waiting for its time nor warming up."""
        ...

    def beat(self, now: float, lag_s: float) -> None: ...

    def fold(self, cpu: float, rss_mb: float) -> None: ...

    def out_of_memory(self) -> None: ...


class GeneratorState:
    def __init__(self) -> None:
        self._classes: dict[bytes, Sequence[AnyWorkflow]] = {}
        self._settled = False
        self._memory_mb = 0
        self._beating: dict[RunningSlice, None] = {}
        self._heart: asyncio.Task[None] | None = None
        self._beats_to_freeze = 0

    def classes(self, order: Prepare) -> Sequence[AnyWorkflow]:
        """The test's workflows, loaded once; before that the process is made what it is to be."""
        if not self._settled:
            self._settle(order)
        if order.source not in self._classes:
            self._classes[order.source] = decode_source(order.source).load()
        return self._classes[order.source]

    def _settle(self, order: Prepare) -> None:
        self._settled = True
        arrays.load()  # nothing is imported under load
        os.environ.update(order.env)
        self._memory_mb = order.memory_mb
        if order.memory_mb:
            memory.limit(order.memory_mb)
        if order.seed is not None:
            random.seed(order.seed + order.rank)

    def join(self, slice_run: RunningSlice) -> None:
        """Its load begins."""
        self._beating[slice_run] = None
        self._beats_to_freeze = SETTLE_BEATS
        if self._heart is None:
            self._heart = asyncio.create_task(self._beat())

    def leave(self, slice_run: RunningSlice) -> None:
        self._beating.pop(slice_run, None)
        if not self._beating and self._heart is not None:
            self._heart.cancel()
            self._heart = None

    @property
    def loads(self) -> int:
        """Loads that are measured and share this process, at least 1."""
        return max(1, sum(one.measuring for one in self._beating))

    async def _beat(self) -> None:
        """Time-outs, event-loop lag, CPU share, and a delta to the parent."""
        cpu_used, cpu_at = time.process_time(), perf_counter()
        beats, expected = 0, perf_counter()
        while True:
            expected = max(expected + BEAT_S, perf_counter())
            await asyncio.sleep(expected - perf_counter())
            now = perf_counter()
            beats += 1
            for slice_run in self._beating:
                slice_run.beat(now, max(0.0, now - expected))
            self._beats_to_freeze -= 1
            if self._beats_to_freeze == 0:
                gc.freeze()
            if beats % FOLD_BEATS == 0:
                used = time.process_time()
                self._fold((used - cpu_used) / (now - cpu_at))
                cpu_used, cpu_at = used, now

    def _fold(self, cpu: float) -> None:
        rss_mb = peak_memory_mb()
        too_much = self._memory_mb and memory.resident_mb() > self._memory_mb
        for slice_run in self._beating:
            slice_run.fold(cpu, rss_mb)
            if too_much:
                slice_run.out_of_memory()

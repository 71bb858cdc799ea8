"""The onlooker of a scheduler or a worker: measures what passes, and traces it when told where to.

The store, the election's lease and what `http` jobs call are each given what they need to be seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hyperscale.scheduler.leader.election import Lease
from hyperscale.scheduler.store.types import Store
from hyperscale.scheduler.telemetry.hook import Onlooker
from hyperscale.scheduler.telemetry.measured import measured, measured_lease
from hyperscale.scheduler.telemetry.metrics import Metrics
from hyperscale.scheduler.telemetry.traces import Traces, opened
from hyperscale.scheduler.worker.executors.executor import Task


class Watch(Onlooker):
    def __init__(self, traces: Traces | None) -> None:
        self.metrics = Metrics()
        self._traces = traces
        self._listeners = () if traces is None else (traces,)

    def store(self, store: Store) -> Store:
        return measured(store, self.metrics, *self._listeners)

    def lease(self, lease: Lease, service: str) -> Lease:
        return measured_lease(lease, service, self.metrics, *self._listeners)

    def traceparent(self, task: Task) -> str:
        if self._traces is None:
            return ""
        return self._traces.traceparent(task.job_id, task.token, task.tags)


@asynccontextmanager
async def watching(endpoint: str, share: float, node: str) -> AsyncIterator[Watch]:
    """Without an endpoint nothing is traced."""
    async with opened(endpoint, share, node) as traces:
        yield Watch(traces)

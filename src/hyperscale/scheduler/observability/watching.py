"""The onlooker of a scheduler or a worker: measures what passes, and traces it when told where to.

The store, the election's lease and what `http` jobs call are each given what they need to be seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hyperscale.scheduler.elections.leased import Lease
from hyperscale.scheduler.executors.contract import Task
from hyperscale.scheduler.observability.measured import measured, measured_lease
from hyperscale.scheduler.observability.metrics import Metrics
from hyperscale.scheduler.observability.traces import Traces, opened
from hyperscale.scheduler.onlooker import Onlooker
from hyperscale.scheduler.stores.contract import Store


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

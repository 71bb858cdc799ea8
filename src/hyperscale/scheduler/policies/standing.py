"""Whether a worker may be given another job (S-70).

A worker whose heartbeats do not get through may be dead to everybody else in a moment, and what it
took would have to be recovered. It gets nothing new until it is heard again.
"""

from __future__ import annotations

from typing import Final

from hyperscale.scheduler.model.instants import Instant, after
from hyperscale.scheduler.model.worker import Worker, WorkerState

SUSPECT_SHARE: Final = 2 / 3
"""Of the silence that is death: 30 of 45 s."""

_CLOSED: Final = frozenset({WorkerState.DRAINING, WorkerState.UNAVAILABLE})


def may_claim(worker: Worker, now: Instant, suspect_after_s: float) -> bool:
    return worker.state not in _CLOSED and now < after(worker.seen_at, suspect_after_s)

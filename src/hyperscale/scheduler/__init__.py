"""Jobs by the clock: cron, schedules, a durable queue, coordinators and workers.

    from hyperscale.scheduler import Cron, SchedulerClient

Names are imported on first use: whoever reads a cron expression needs no HTTP client. By folder:
`schedules` when something is due, `queue` what becomes of a job, `leader` who decides, `worker`
who runs it, `store` where it is kept, `http` how it is asked for, `telemetry` how it is seen.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperscale.scheduler.http.client import AsyncSchedulerClient, SchedulerClient
    from hyperscale.scheduler.schedules.cron import Cron, CronError, DstPolicy, check

_HOMES = {
    "AsyncSchedulerClient": "hyperscale.scheduler.http.client",
    "SchedulerClient": "hyperscale.scheduler.http.client",
    "Cron": "hyperscale.scheduler.schedules.cron",
    "CronError": "hyperscale.scheduler.schedules.cron",
    "DstPolicy": "hyperscale.scheduler.schedules.cron",
    "check": "hyperscale.scheduler.schedules.cron",
}

__all__ = [
    "AsyncSchedulerClient",
    "Cron",
    "CronError",
    "DstPolicy",
    "SchedulerClient",
    "check",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

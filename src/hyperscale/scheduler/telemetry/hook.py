"""Who looks on while a scheduler elects, leads and works: nobody, unless somebody is given.

`observability.watching` has the one who measures and traces. The rooms that are looked at know only
this, so none of them depends on a library for metrics or traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hyperscale.scheduler.leader.election import Lease
    from hyperscale.scheduler.worker.executors.executor import Task


class Onlooker:
    def lease(self, lease: Lease, service: str) -> Lease:
        """The same to its election; `service` is what kind it is."""
        return lease

    def traceparent(self, task: Task) -> str:
        """For what the task calls (W3C); empty: it is not traced."""
        return ""


NOBODY: Final = Onlooker()

"""A slot's own way to an executor that profits from knowing what comes next.

To hand over one short job costs more than to run it: both sides are woken for each. A lane is told
of the jobs that will follow in its slot, so its process finds the next one waiting. What was not
begun can be withdrawn at any time, exactly: nobody waits behind a long job while a slot is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hyperscale.scheduler.executors.contract import Result, Task


class Lane(Protocol):
    async def run(self, task: Task, upcoming: Sequence[Task]) -> Result:
        """As Executor.run. `upcoming` will be run next, in this order, unless withdrawn; those
        named before need not be named again."""
        ...

    def answered(self, job_id: str) -> Result | None:
        """What became of an upcoming job that has run already, without waiting for anything; it is
        not upcoming any more. None: `run` tells."""
        ...

    def withdraw(self) -> frozenset[str]:
        """What has not begun will not. Ids of the upcoming jobs that have: they stay upcoming."""
        ...

    async def close(self) -> None:
        """The slot is done; nothing is upcoming."""
        ...


@runtime_checkable
class Laned(Protocol):
    def lane(self) -> Lane: ...

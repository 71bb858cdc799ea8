"""Thresholds of running jobs, watched over all nodes together, whoever leads.

A threshold that holds "for 10s" has a clock, and one that was crossed stays crossed. Both are
recorded when they are worth it, so that the next leader goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.results import judges_of
from hyperscale.engine.thresholds import Judge, Standing

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager


class Thresholds:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._judges: dict[str, list[Judge]] = {}

    def of(self, job: JobState) -> list[Judge]:
        if job.job_id not in self._judges:
            self._judges[job.job_id] = judges_of(self._manager.body_of(job).workflows)
        return self._judges[job.job_id]

    def take_over(self, job: JobState) -> None:
        """What runs has been judged by others until now."""
        for judge in self.of(job):
            if job.workflows[judge.workflow].started:
                judge.resume(_known(job, judge))

    def record(self, job: JobState, judges: Iterable[Judge]) -> None:
        manager = self._manager
        for judge in judges:
            if judge.is_news(_known(job, judge)):
                effects = manager.jobs.judged(
                    manager.now(), job.job_id, judge.workflow, judge.number, *judge.standing
                )
                manager.carry_out(effects)

    def drop(self, job_id: str) -> None:
        self._judges.pop(job_id, None)

    def clear(self) -> None:
        self._judges.clear()


def _known(job: JobState, judge: Judge) -> Standing:
    return Standing(*job.judged.get((judge.workflow, judge.number), (None, None)))

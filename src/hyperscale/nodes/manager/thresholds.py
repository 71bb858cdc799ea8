"""Thresholds of running jobs, watched over all nodes together, whoever leads.

A threshold that holds "for 10s" has a clock, and one that was crossed stays crossed. Both are
recorded when they are worth it, so that the next leader goes on from there.
"""

from __future__ import annotations

from hyperscale.cluster.jobs.events import Steer, ThresholdMoved
from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.results import judges_of, watch
from hyperscale.engine.thresholds import Judge, Standing
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.live import Live


class Thresholds:
    def __init__(self, effects: EffectRunner, bodies: Bodies, live: Live) -> None:
        self._effects = effects
        self._bodies = bodies
        self._live = live
        self._judges: dict[str, list[Judge]] = {}

    def of(self, job: JobState) -> list[Judge]:
        if job.submitted.for_gate:
            return []  # gates judge: they see the numbers of all datacenters
        if job.job_id not in self._judges:
            self._judges[job.job_id] = judges_of(self._bodies.of(job).workflows)
        return self._judges[job.job_id]

    def take_over(self, job: JobState) -> None:
        """What runs has been judged by others until now."""
        for judge in self.of(job):
            if job.workflows[judge.workflow].started:
                judge.resume(_known(job, judge))

    def check(self, job: JobState) -> None:
        """A new leader that has not been told all of a workflow would see too little load, or too
        much at once."""
        watched = [j for j in self.of(job) if j.threshold.abort or j.threshold.for_s]
        lives = {j.workflow: self._live.workflow(job.job_id, j.workflow) for j in watched}
        aggregates = {
            name: live.merged()
            for name, live in lives.items()
            if live is not None and live.complete
        }
        crossed = watch([j for j in watched if j.workflow in aggregates], aggregates)
        for judge in watched:
            if judge.is_news(_known(job, judge)):
                moved = ThresholdMoved(job.job_id, judge.workflow, judge.number, *judge.standing)
                self._effects.receive(moved)
        if crossed is not None:
            reason = f"threshold {crossed.threshold.expression} was crossed"
            self._effects.ask(Steer(job.job_id, "stop", by="threshold", reason=reason))

    def drop(self, job_id: str) -> None:
        self._judges.pop(job_id, None)

    def clear(self) -> None:
        self._judges.clear()


def _known(job: JobState, judge: Judge) -> Standing:
    return Standing(*job.judged.get((judge.workflow, judge.number), (None, None)))

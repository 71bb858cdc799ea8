"""Thresholds of a running job, judged by its owner over all datacenters, or in the one they name.

A datacenter sees its part of the numbers only, so managers judge nothing of a gate's job. One that
holds "for 10s" has a clock, and one that was crossed stays crossed: both are committed when they
are worth it, so that the next owner goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hyperscale.engine.results import aggregate_of, judges_of, standing
from hyperscale.engine.thresholds import Judge, Standing
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import ThresholdResult, WorkflowResult
from hyperscale.nodes.gate.events import Judged
from hyperscale.nodes.gate.jobs import GateJob

JUDGED_EVERY_S = 1.0  # as managers do

Told = Mapping[str, list[WorkflowAggregate]]
"""What is known of each datacenter."""


class Thresholds:
    def __init__(self, job: GateJob) -> None:
        self._job = job
        self.judges = judges_of(job.body.workflows, job.submitted.datacenters)
        if job.begun is not None or job.told or job.judged:  # others have judged until now
            for judge in self.judges:
                judge.resume(_known(job, judge))

    def standing(self) -> tuple[ThresholdResult, ...]:
        return tuple(standing(self.judges))

    def look(self, told: Told) -> Judge | None:
        """The first that ends the job."""
        wholes: dict[tuple[str, str], WorkflowResult] = {}
        aborting = None
        for judge in self.judges:
            where = judge.threshold.selector.dc
            key = (where, judge.workflow)
            if key not in wholes:
                several = [told[where]] if where else told.values()
                wholes[key] = self._frozen(judge.workflow, several)
            if judge.watch(wholes[key]) and aborting is None:
                aborting = judge
        return aborting

    def _frozen(self, workflow: str, told: Iterable[list[WorkflowAggregate]]) -> WorkflowResult:
        whole = aggregate_of(self._job.body.facts(workflow))
        for several in told:
            for one in several:
                if one.name == workflow:
                    whole.absorb(one.brief())
        return whole.freeze()

    def news(self) -> list[Judged]:
        return [
            Judged(judge.workflow, judge.number, *judge.standing)
            for judge in self.judges
            if judge.is_news(_known(self._job, judge))
        ]


def _known(job: GateJob, judge: Judge) -> Standing:
    return Standing(*job.judged.get((judge.workflow, judge.number), (None, None)))

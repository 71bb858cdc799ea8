"""A workflow's load in this process, without generators: fast enough for very many flows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import uvloop

from hyperscale import Workflow
from hyperscale.engine.assembly import aggregate_of
from hyperscale.engine.assignment import Assignment
from hyperscale.engine.casting import Casting, orders
from hyperscale.engine.messages import Done, Progress, Report, StopTest, TornDown
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import StepResult, WorkflowResult
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import Overrides, plan_workflow


@dataclass
class Played:
    aggregate: WorkflowAggregate
    done: Done
    torn_down: TornDown
    stopped: list[StopTest] = field(default_factory=list)

    @property
    def result(self) -> WorkflowResult:
        return self.aggregate.freeze()

    def step(self, name: str) -> StepResult:
        return next(step for step in self.result.steps if step.name == name)


def play(workflow: type[Workflow], base_url: str, **load: Any) -> Played:
    overrides = Overrides(base_url=base_url, **load)
    facts = facts_of(plan_workflow(workflow, overrides))
    casting = Casting(
        source=encode_source(ClassSource(workflow).pickled()),
        overrides=encode_overrides(overrides),
        total_cores=1,
    )
    (order,) = orders(facts, casting, 1)
    aggregate = aggregate_of(facts)
    stopped: list[StopTest] = []

    async def go() -> Played:
        def hear(report: Report) -> None:
            if isinstance(report, Progress):
                aggregate.apply(0, report.delta, report.at_s)
            elif isinstance(report, StopTest):
                stopped.append(report)
                assignment.stop(now=False)

        assignment = Assignment(order, hear)
        async with asyncio.timeout(30):
            wrote = await assignment.prepare()
            done = await assignment.run(wrote)
            torn_down = await assignment.teardown(wrote)
            await assignment.close()
        return Played(aggregate, done, torn_down, stopped)

    return uvloop.run(go())

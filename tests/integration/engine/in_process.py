"""A workflow's load in this process, without generators: fast enough for many flows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import uvloop

from hyperscale import Workflow
from hyperscale.engine.generator_state import GeneratorState
from hyperscale.engine.messages import Done, Progress, Report, StopTest, TornDown
from hyperscale.engine.part_plan import PartPlan, slices
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.slice_run import SliceRun
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import StepResult, WorkflowResult
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import Overrides, plan_workflow


@dataclass
class Ran:
    aggregate: WorkflowAggregate
    done: Done
    torn_down: TornDown
    stopped: list[StopTest] = field(default_factory=list)

    @property
    def result(self) -> WorkflowResult:
        return self.aggregate.freeze()

    def step(self, name: str) -> StepResult:
        return next(step for step in self.result.steps if step.name == name)


def run_slice(workflow: type[Workflow], base_url: str, **load: Any) -> Ran:
    overrides = Overrides(base_url=base_url, **load)
    facts = facts_of(plan_workflow(workflow, overrides))
    part_plan = PartPlan(
        source=encode_source(ClassSource(workflow).pickled()),
        overrides=encode_overrides(overrides),
        total_cores=1,
    )
    (order,) = slices(facts, part_plan, 1)
    aggregate = aggregate_of(facts)
    stopped: list[StopTest] = []

    async def go() -> Ran:
        def hear(report: Report) -> None:
            if isinstance(report, Progress):
                aggregate.apply(0, report.delta, report.at_s)
            elif isinstance(report, StopTest):
                stopped.append(report)
                slice_run.stop(now=False)

        slice_run = SliceRun(order, hear, GeneratorState())
        async with asyncio.timeout(30):
            wrote = await slice_run.prepare()
            done = await slice_run.run(wrote)
            torn_down = await slice_run.teardown(wrote)
            await slice_run.close()
        return Ran(aggregate, done, torn_down, stopped)

    return uvloop.run(go())

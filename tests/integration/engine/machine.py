"""Generator processes and parts of workflows on them, for tests of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hyperscale import Workflow
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.workload.facts import WorkflowFacts, facts_of
from hyperscale.workload.plan import Overrides, plan_workflow

T = TypeVar("T")


class Machine:
    """Some generator processes and what is needed to put parts of a workflow on them."""

    def __init__(self, workflow: type[Workflow], base_url: str, cores: int, **load: Any) -> None:
        overrides = Overrides(base_url=base_url, **load)
        self.facts: WorkflowFacts = facts_of(plan_workflow(workflow, overrides))
        self.cores = [GeneratorProcess(number) for number in range(cores)]
        self._source = encode_source(ClassSource(workflow).pickled())
        self._overrides = encode_overrides(overrides)

    def part(self, first: int, cores: int, total: int, **more: Any) -> PartRun:
        hooks = {name: more.pop(name) for name in ("on_progress", "on_done") if name in more}
        part_plan = PartPlan(
            source=self._source,
            overrides=self._overrides,
            first_core=first,
            total_cores=total,
            **more,
        )
        mine = self.cores[first : first + cores]
        aggregate = aggregate_of(self.facts)
        return PartRun(self.facts, aggregate, mine, part_plan, **hooks)

    def run(self, scenario: Callable[[], Awaitable[T]], limit_s: float = 30.0) -> T:
        async def ran() -> T:
            for core in self.cores:
                await core.open()
            try:
                async with asyncio.timeout(limit_s):
                    return await scenario()
            finally:
                await asyncio.gather(*(core.close() for core in self.cores))

        return asyncio.run(ran())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the load lives in other processes
        await asyncio.sleep(0.01)

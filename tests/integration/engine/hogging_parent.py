"""A program whose generator process never lets go of its event loop again."""

import asyncio
import sys

from hyperscale import CustomResult, Workflow, step
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import Overrides, plan_workflow


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


class Hogs(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def hog(self) -> CustomResult:
        say("hogged")
        while True:
            pass


async def main() -> None:
    facts = facts_of(plan_workflow(Hogs))
    core = GeneratorProcess(output=sys.stdout.fileno())
    await core.open()
    say(core.pid)
    part_plan = PartPlan(
        source=encode_source(ClassSource(Hogs).pickled()),
        overrides=encode_overrides(Overrides()),
        total_cores=1,
    )
    part = PartRun(facts, aggregate_of(facts), [core], part_plan)
    await part.run_load(await part.prepare())


if __name__ == "__main__":
    asyncio.run(main())

"""A program that runs a load under a lease and says how the load ended."""

import asyncio
import sys

from hyperscale import Workflow, step
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.testing import HTTPResponse
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import Overrides, plan_workflow


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


class Long(Workflow):
    vus = 2
    duration = "60s"

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


async def main() -> None:
    overrides = Overrides(base_url=sys.argv[1])
    facts = facts_of(plan_workflow(Long, overrides))
    core = GeneratorProcess()
    await core.open()
    part_plan = PartPlan(
        source=encode_source(ClassSource(Long).pickled()),
        overrides=encode_overrides(overrides),
        total_cores=1,
    )
    part = PartRun(facts, aggregate_of(facts), [core], part_plan)
    running = asyncio.create_task(part.run_load(await part.prepare()))
    said = False
    while not running.done():
        part.lease(1.0)
        await asyncio.sleep(0.1)
        if not said and part.aggregate.requests:
            said = True
            say("loaded")
    await part.release()
    await core.close()
    say(part.outcome)


if __name__ == "__main__":
    asyncio.run(main())

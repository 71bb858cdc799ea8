"""Steps made ready for many runs: which arguments a call gives, and which weighted step is next."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hyperscale import Workflow, step
from hyperscale.engine.steps import CompiledStep
from hyperscale.engine.vu import WeightedSteps
from hyperscale.metrics.recorder import WorkflowRecorder
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.plan import Overrides, plan_workflow

HOME = URL("http://127.0.0.1/")


def compiled(workflow: type[Workflow]) -> dict[str, CompiledStep]:
    plan = plan_workflow(workflow, Overrides())
    recorder = WorkflowRecorder(steps=[each.name for each in plan.steps])
    return {
        each.name: CompiledStep(number, each, recorder, keeps_response=False)
        for number, each in enumerate(plan.steps)
    }


def passing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def passed_on(self: Any, *given: Any, **named: Any) -> Any:
        return await function(self, *given, **named)

    return passed_on


def test_a_call_gives_only_what_is_not_the_default_itself() -> None:
    class Calls(Workflow):
        @step()
        async def prepared(self, url: URL = HOME) -> HTTPResponse:
            return await self.client.http.get(url)

        @step()
        async def wrapped(self, url: URL = "http://127.0.0.1/") -> HTTPResponse:  # type: ignore[slice_run]
            return await self.client.http.get(url)

        @step()
        @passing_on
        async def decorated(self, url: URL = HOME) -> HTTPResponse:
            return await self.client.http.get(url)

    steps = compiled(Calls)
    assert steps["prepared"].optimized == {}
    assert isinstance(steps["wrapped"].optimized["url"], URL)
    assert steps["decorated"].optimized == {"url": HOME}, "a decorator may look for it"
    assert steps["prepared"].beside((), {"url": "/other"}) == {"url": "/other"}


def test_weighted_steps_come_as_often_as_their_weights_say_and_as_the_seed_says() -> None:
    class Mixed(Workflow):
        @step(weight=10)
        async def often(self, url: URL = HOME) -> HTTPResponse:
            return await self.client.http.get(url)

        @step(weight=3)
        async def at_times(self, url: URL = HOME) -> HTTPResponse:
            return await self.client.http.get(url)

        @step(weight=0.5)
        async def rarely(self, url: URL = HOME) -> HTTPResponse:
            return await self.client.http.get(url)

    steps = tuple(compiled(Mixed).values())
    weighted, dice, same_dice = WeightedSteps(steps), random.Random(7), random.Random(7)
    picked = [weighted.pick(dice) for _ in range(2700)]
    assert picked == same_dice.choices(steps, [each.weight for each in steps], k=2700)
    counts = Counter(each.name for each in picked)
    assert counts["often"] > counts["at_times"] > counts["rarely"] > 0

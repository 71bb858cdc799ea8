"""What `-u`, `--rate`, `--rps` and `-s` mean for several workflows."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale import DependentWorkflow, Workflow, step
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse
from hyperscale.workload.load import ArrivalRate, ClosedVUs, Load, RampingRate, RampingVUs, Stage
from hyperscale.workload.mix import share
from hyperscale.workload.plan import Overrides, TestPlan, plan_test, plan_workflow


class _Base(Workflow):
    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("/")


def workflow(name: str, **settings: Any) -> type[Workflow]:
    return type(name, (_Base,), {"__module__": __name__, **settings})


def loads(plan: TestPlan) -> dict[str, Load]:
    return {each.name: each.load for each in plan.workflows}


def users(*workflows: Any, **flags: Any) -> dict[str, int]:
    planned = loads(plan_test(workflows, Overrides(**flags)))
    return {name: load.peak_vus for name, load in planned.items()}


BROWSE, BUY = workflow("Browse", vus=40), workflow("Buy", vus=10)


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        (50, [40, 10], [40, 10]),
        (5, [40, 10], [4, 1]),
        (7, [1, 1, 1], [3, 2, 2]),
        (10, [100, 1, 1], [8, 1, 1]),
        (3, [100, 1, 1], [1, 1, 1]),
        (1, [1, 1], [1, 1]),
        (4, [0.3, 0.1], [3, 1]),
    ],
)
def test_shares(total: int, weights: list[float], shares: list[int]) -> None:
    assert share(total, weights) == shares


@pytest.mark.parametrize(("total", "shares"), [(50, (40, 10)), (500, (400, 100)), (6, (5, 1))])
def test_users_are_shared_as_they_are_written(total: int, shares: tuple[int, int]) -> None:
    assert tuple(users(BROWSE, BUY, vus=total).values()) == shares


def test_weights_decide_where_one_is_written() -> None:
    heavy = workflow("Heavy", vus=1, weight=3)
    assert users(heavy, BUY, vus=40) == {"Heavy": 30, "Buy": 10}
    assert users(heavy, BUY) == {"Heavy": 1, "Buy": 10}


def test_default_users_count_as_ten() -> None:
    assert users(workflow("Plain"), workflow("Double", vus=20), vus=30) == {
        "Plain": 10,
        "Double": 20,
    }


def test_fixed_users_stay_out_of_it() -> None:
    fixed = workflow("Admin", fixed_vus=2)
    assert users(BROWSE, BUY, fixed, vus=100) == {"Browse": 80, "Buy": 20, "Admin": 2}
    assert users(fixed, BUY, vus_each=7) == {"Admin": 2, "Buy": 7}
    planned = loads(plan_test([fixed, BUY], Overrides(rate=100, duration="1s")))
    assert planned["Admin"] == ClosedVUs(2, 1)


def test_vus_each_is_for_each() -> None:
    assert users(BROWSE, BUY, vus_each=7) == {"Browse": 7, "Buy": 7}
    with pytest.raises(BadInput, match="both in all and for each"):
        users(BROWSE, vus=1, vus_each=1)


def test_each_gets_one_and_the_plan_says_so() -> None:
    plan = plan_test([BROWSE, BUY, workflow("Third")], Overrides(vus=2))
    assert [load.peak_vus for load in loads(plan).values()] == [1, 1, 1]
    assert plan.warnings == (
        "2 users are fewer than the 3 workflows that share them: each gets one",
    )


def test_each_layer_gets_the_total_and_what_others_wait_for_keeps_its_own() -> None:
    first, beside = workflow("First", vus=3), workflow("Beside", vus=4)
    last, other = workflow("Last", vus=1), workflow("Other", vus=3)
    assert users(
        first,
        beside,
        DependentWorkflow(last, ["First"]),
        DependentWorkflow(other, ["First"]),
        vus=40,
    ) == {"First": 3, "Beside": 40, "Last": 10, "Other": 30}


def test_a_rate_goes_to_those_that_have_one() -> None:
    slow, fast = workflow("Slow", rate="60/m"), workflow("Fast", rate=3)
    planned = loads(plan_test([slow, fast, BUY], Overrides(rate="480/m", vus=5)))
    assert planned == {
        "Slow": ArrivalRate(2, 30, 100),
        "Fast": ArrivalRate(6, 30, 100),
        "Buy": ClosedVUs(5, 30),
    }


def test_a_rate_goes_to_all_where_none_has_one() -> None:
    planned = loads(plan_test([BROWSE, BUY], Overrides(rate=100, max_vus=100)))
    assert planned == {
        "Browse": ArrivalRate(80, 30, 80, vus=40),
        "Buy": ArrivalRate(20, 30, 20, vus=10),
    }


def test_requests_per_second_are_shared() -> None:
    planned = loads(plan_test([BROWSE, BUY], Overrides(rps=50)))
    assert [load.rps for load in planned.values()] == [40, 10]
    capped = workflow("Capped", rps="120/m")
    planned = loads(plan_test([BROWSE, capped], Overrides(rps=50)))
    assert [load.rps for load in planned.values()] == [0, 50]


def test_stages_are_shared() -> None:
    planned = loads(plan_test([BROWSE, BUY], Overrides(stages=[("10s", 100), ("5s", 0)])))
    assert planned == {
        "Browse": RampingVUs((Stage(10, 80), Stage(5, 0)), 40),
        "Buy": RampingVUs((Stage(10, 20), Stage(5, 0)), 10),
    }
    slow, fast = workflow("Slow", rate="60/m"), workflow("Fast", rate=3)
    planned = loads(plan_test([slow, fast], Overrides(stages=[("10s", 40)])))
    assert planned == {
        "Slow": RampingRate((Stage(10, 10),), 100, start=1),
        "Fast": RampingRate((Stage(10, 30),), 300, start=3),
    }
    planned = loads(plan_test([BROWSE, BUY], Overrides(rate="60/m", stages=[("10s", 300)])))
    ramps = [load for load in planned.values() if isinstance(load, RampingRate)]
    assert [(ramp.start, ramp.stages) for ramp in ramps] == [(0.8, ((10, 4),)), (0.2, ((10, 1),))]


def test_a_ramp_and_a_shape_count_with_their_most() -> None:
    ramp = workflow("Ramp", stages=[("1s", 30), ("1s", 0)])
    assert users(ramp, BUY, vus=80) == {"Ramp": 60, "Buy": 20}
    shaped = workflow("Shaped", max_vus=70, shape=lambda self, elapsed: 1)
    assert users(shaped, BUY, vus=80) == {"Shaped": 70, "Buy": 10}


def test_a_generator_keeps_to_the_load_it_was_given() -> None:
    capped = workflow("Capped", rate=5, max_vus=4)
    given = plan_test([capped, workflow("Same", rate=5, max_vus=4)], Overrides(vus=8)).workflow(
        "Capped"
    )
    assert given.load == ArrivalRate(5, 30, 4, vus=4)
    # Alone it would get all 8 users, which its max_vus does not allow.
    assert plan_workflow(capped, Overrides(vus=8), given.load).load == given.load


@pytest.mark.parametrize("weight", [0, -1, "2", True, float("inf"), float("nan")])
def test_a_weight_is_a_number_above_zero(weight: object) -> None:
    with pytest.raises(BadInput, match=r"Odd: weight is .* must be a number above 0"):
        workflow("Odd", weight=weight)


@pytest.mark.parametrize("flags", [{"vus": 0}, {"vus": -1}, {"vus": "5"}, {"vus": 1.5}])
def test_users_are_a_whole_number(flags: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="vus is"):
        users(BROWSE, BUY, **flags)

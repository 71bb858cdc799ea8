"""What a class with a flow may not say, and what its steps are where no user runs them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hyperscale import Workflow, action, check, step
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse


async def flow(self: Any) -> None: ...


async def login(self: Any) -> HTTPResponse: ...


async def view(self: Any) -> HTTPResponse: ...


def make(**attributes: Any) -> type[Workflow]:
    return type("Shop", (Workflow,), attributes)


@pytest.mark.parametrize("decorator", [step, action])
def test_a_flow_orders_its_steps_itself(decorator: Any) -> None:
    with pytest.raises(BadInput, match="has a flow, so view cannot wait for 'login'") as refused:
        make(flow=flow, login=step()(login), view=decorator("login")(view))
    assert "await self.view()" in refused.value.hint


@pytest.mark.parametrize(
    "choice", [{"weight": 2}, {"times": 2}, {"chance": 0.5}, {"when": lambda self: True}]
)
def test_a_flow_decides_itself_what_runs(choice: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="has a flow, so view cannot say itself when it runs"):
        make(flow=flow, view=step(**choice)(view))
    make(view=step(**choice)(view))


def test_checks_of_a_flow_name_their_step() -> None:
    def seen(self: Any, view: HTTPResponse) -> bool: ...

    make(flow=flow, view=step()(view), seen=check("view")(seen))


def test_a_weighted_step_waits_for_none() -> None:
    with pytest.raises(BadInput, match="view has a weight and waits for login"):
        make(login=step()(login), view=step("login", weight=1)(view))


@pytest.mark.parametrize("name", ["flow", "on_start", "on_stop"])
def test_hooks_of_a_user_are_async(name: str) -> None:
    def hook(self: Any) -> None: ...

    with pytest.raises(BadInput, match=rf"^Shop\.{name} is not async"):
        make(**{name: hook}, view=step()(view))


@pytest.mark.parametrize("name", ["flow", "on_start", "on_stop"])
def test_hooks_of_a_user_are_no_steps(name: str) -> None:
    with pytest.raises(BadInput, match=rf"^Shop\.{name} cannot be a step"):
        make(**{name: step()(flow)})


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"weight": 0}, "weight of @step is 0"),
        ({"weight": True}, "weight of @step is True"),
        ({"times": 0}, "times of @step is 0"),
        ({"times": 1.5}, "times of @step is 1.5"),
        ({"chance": 1.1}, "chance of @step is 1.1"),
        ({"when": "always"}, "when of @step is 'always'"),
    ],
)
def test_choices_that_mean_nothing_are_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        step(**choice)


class Shop(Workflow):
    @step(times=3)
    async def price(self, item: int, factor: int = 2):
        return item * factor

    @check("price")
    def cheap(self, price: int) -> bool:
        return price < 10


def test_outside_of_a_run_steps_are_plain_methods() -> None:
    shop = Shop()
    assert asyncio.run(shop.price(3)) == 6
    assert asyncio.run(shop.price(3, factor=5)) == 15
    assert shop.cheap(9)
    shop.metrics.trend("x").add(1)

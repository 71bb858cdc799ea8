"""Mistakes are found when the class is made, and told in one sentence."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperscale import Workflow, action, check, depends, metric, state, step
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse
from hyperscale.workload.hooks import Use, bind_uses
from hyperscale.workload.plan import plan_workflow
from hyperscale.workload.workflow import graph_of, load_settings_of


def make(**attributes: Any) -> type[Workflow]:
    return type("Shop", (Workflow,), attributes)


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"vus": 0}, "Shop: vus is 0 but must be at least 1"),
        ({"vus": "many"}, "Shop: vus is 'many' but must be a whole number"),
        ({"duration": "abc"}, "Shop: duration 'abc' is not a duration"),
        ({"duration": 0}, "Shop: duration is 0 but must be above 0"),
        ({"priority": "urgent"}, "Shop: priority 'urgent' is not a priority"),
        ({"priority": None}, "Shop: priority None is not a priority"),
        ({"rate": 5, "iterations": 3}, "Shop: rate and iterations are both set"),
        ({"warmup": "x"}, "Shop: warmup 'x' is not a duration"),
        ({"timeout": "x"}, "Shop: timeout 'x' is not a duration"),
        ({"thresholds": ["p(95)<"]}, "Shop: threshold 'p[(]95[)]<' is not understood at its end"),
        ({"thresholds": ["pay: avg<5"]}, "Shop: threshold 'avg<5' judges 'pay'"),
        ({"tags": ["a"]}, "Shop: tags is .* but must be a dict"),
        ({"http": {"verify": False}}, "Shop: http is .* but must be HTTPOptions"),
        ({"setup": 5}, "Shop: setup must be a method"),
    ],
)
def test_bad_attributes(attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=f"^{sentence}"):
        make(**attributes)


@pytest.mark.parametrize("written", ["high", "HIGH", " High "])
def test_priority_in_any_case(written: str) -> None:
    assert plan_workflow(make(priority=written)).priority == "high"


def test_an_unknown_step_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(BadInput, match=r"^Shop\.pay waits for 'logn', but Shop has no") as caught:

        class Shop(Workflow):
            @step()
            async def login(self) -> HTTPResponse: ...

            @step("logn")
            async def pay(self) -> HTTPResponse: ...

    assert caught.value.hint == "did you mean 'login'?"


def test_a_step_cannot_wait_for_a_state_method() -> None:
    with pytest.raises(BadInput, match=r"Shop\.pay waits for 'token'"):

        class Shop(Workflow):
            @state("Other")
            def token(self) -> Use[str]: ...

            @step("token")
            async def pay(self) -> HTTPResponse: ...


def test_a_cycle_is_shown() -> None:
    with pytest.raises(BadInput, match="steps of Shop wait for each other: a → b → a"):

        class Shop(Workflow):
            @step("b")
            async def a(self) -> HTTPResponse: ...

            @step("a")
            async def b(self) -> HTTPResponse: ...


@pytest.mark.parametrize("decorator", [step, action])
def test_steps_are_async(decorator: Any) -> None:
    def pay(self: Any) -> HTTPResponse: ...

    with pytest.raises(BadInput, match=r"^Shop\.pay is a @(step|action) but not async"):
        make(pay=decorator()(pay))


@pytest.mark.parametrize("decorator", [check, metric])
def test_judges_may_be_plain_functions(decorator: Any) -> None:
    def paid(self: Any) -> float: ...

    make(paid=decorator()(paid))


@pytest.mark.parametrize("name", ["client", "context", "data", "setup", "vus"])
def test_names_in_use_are_refused(name: str) -> None:
    async def method(self: Any) -> HTTPResponse: ...

    with pytest.raises(BadInput, match=rf"^Shop\.{name} cannot be a step"):
        make(**{name: step()(method)})


@pytest.mark.parametrize("name", ["on_start", "flow", "setup"])
def test_methods_with_a_meaning_take_no_decorator(name: str) -> None:
    async def method(self: Any) -> HTTPResponse: ...

    with pytest.raises(BadInput, match=rf"^Shop\.{name} cannot be a step") as refused:
        make(**{name: step()(method)})
    assert "leave the decorator off" in refused.value.hint


def test_decorators_refuse_what_is_no_name() -> None:
    with pytest.raises(BadInput, match="@step takes names of steps as strings, not 5"):
        step(5)  # type: ignore[call-overload]
    with pytest.raises(BadInput, match="@state takes names of workflows"):
        state(5)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="names no workflow"):
        depends()


def test_subclasses_inherit_steps_in_order_and_may_replace_or_drop_them() -> None:
    class Base(Workflow):
        vus = 3
        duration = "1m"

        @step()
        async def one(self) -> HTTPResponse: ...

        @step("one")
        async def two(self) -> HTTPResponse: ...

    class Derived(Base):
        duration = None
        stages = [("1s", 5)]

        @step()
        async def three(self) -> HTTPResponse: ...

        @step()
        async def two(self) -> HTTPResponse: ...

    class Dropped(Base):
        two = None  # type: ignore[assignment]

    assert graph_of(Derived) == {"one": (), "two": (), "three": ()}
    assert load_settings_of(Derived) == {"vus": 3, "stages": [("1s", 5)]}
    assert graph_of(Dropped) == {"one": ()}
    assert graph_of(Base) == {"one": (), "two": ("one",)}


def test_an_authors_own_decorator_stays_in_place() -> None:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        async def wrapper(self: Any) -> Any:
            return await function(self), await function(self)

        return wrapper

    class Shop(Workflow):
        @twice
        @step()
        async def pay(self) -> HTTPResponse: ...

    (planned,) = plan_workflow(Shop).steps
    assert planned.attribute is planned.call is Shop.pay
    assert planned.hook_type == "test"


def test_a_step_shows_its_last_response() -> None:
    class Shop(Workflow):
        @step()
        async def pay(self) -> HTTPResponse: ...

    plan_workflow(Shop).steps[0].attribute.response = "answer"  # type: ignore[attr-defined]
    assert Shop().pay.response == "answer"  # type: ignore[attr-defined]


def test_a_use_method_answers_with_its_default_until_it_is_bound() -> None:
    class Shop(Workflow):
        @state("Auth")
        def token(self, auth_token: str = "none") -> Use[str]:
            return f"Bearer {auth_token}"

    shop = Shop()
    assert shop.token() == "Bearer none"
    bind_uses(Shop, {"token": "Bearer abc"})
    assert shop.token() == "Bearer abc"
    assert shop.token(auth_token="mine") == "Bearer mine"
    assert plan_workflow(Shop).uses[0].function(shop) == "Bearer none"


def test_an_async_use_method_is_awaited() -> None:
    class Shop(Workflow):
        @state("Auth")
        async def token(self, auth_token: str = "none") -> Use[str]:
            return auth_token

    def value_of(awaitable: Any) -> Any:
        try:
            awaitable.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("it waited")

    assert value_of(Shop().token()) == "none"
    bind_uses(Shop, {"token": "abc"})
    assert value_of(Shop().token()) == "abc"


def test_a_flow_that_yields_is_told_so() -> None:
    with pytest.raises(BadInput, match=r"^Shop\.flow is a generator: it yields"):

        class Shop(Workflow):
            async def flow(self) -> AsyncIterator[int]:
                yield 1

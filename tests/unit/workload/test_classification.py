"""Kinds of hooks from decorator and resolved annotation; annotations here are strings."""

from __future__ import annotations

import pickle
from typing import Annotated, Any, Optional, Union

import cloudpickle
import pytest

from hyperscale import COUNT, RATE, Metric, Workflow, action, check, metric, state, step
from hyperscale.errors import BadInput
from hyperscale.testing import CallResult, CustomResult, HTTPResponse
from hyperscale.workload.hooks import HookType, Provide, Use
from hyperscale.workload.plan import plan_workflow


class QueryResult(CustomResult):
    pass


class SlowQueryResult(QueryResult):
    pass


class Everything(Workflow):
    @step()
    async def direct(self) -> HTTPResponse: ...

    @step()
    async def indirect(self) -> SlowQueryResult: ...

    @step()
    async def base(self) -> CallResult: ...

    @step()
    async def optional(self) -> Optional[HTTPResponse]: ...  # noqa: UP045

    @step()
    async def union(self) -> Union[HTTPResponse, QueryResult, None]: ...  # noqa: UP007

    @step()
    async def annotated(self) -> Annotated[HTTPResponse, "why not"]: ...

    @step()
    async def later(self) -> DefinedLater: ...

    @step
    async def bare(self) -> HTTPResponse: ...

    @step()
    async def step_check(self) -> Exception | None: ...

    @step()
    async def step_check_of_one_kind(self) -> ValueError | None: ...

    @check()
    async def check_of_response(self) -> HTTPResponse: ...

    @check()
    async def plain_check(self): ...

    @step()
    async def step_metric(self) -> Metric[COUNT]: ...

    @metric()
    async def rate_metric(self) -> Metric[RATE]: ...

    @metric()
    async def plain_metric(self) -> float: ...

    @action()
    async def action_with_response(self) -> HTTPResponse: ...

    @step()
    async def step_dict(self) -> dict[str, Any]: ...

    @step()
    async def step_nothing(self) -> None: ...

    @step()
    async def step_unannotated(self): ...

    @step()
    async def step_unknown(self) -> HTTPRespnse: ...  # noqa: F821 - the typo is the point

    @state("Other")
    def given(self) -> Provide[str]: ...

    @state("Other")
    async def taken(self, key: str = "") -> Use[str]: ...


class DefinedLater(CustomResult):
    pass


PLAN = plan_workflow(Everything)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            HookType.TEST,
            ["direct", "indirect", "base", "optional", "union", "annotated", "later", "bare"],
        ),
        (
            HookType.CHECK,
            ["step_check", "step_check_of_one_kind", "check_of_response", "plain_check"],
        ),
        (HookType.METRIC, ["step_metric", "rate_metric", "plain_metric"]),
        (
            HookType.ACTION,
            [
                *("action_with_response", "step_dict", "step_nothing"),
                *("step_unannotated", "step_unknown"),
            ],
        ),
    ],
)
def test_kinds(kind: HookType, names: list[str]) -> None:
    assert [step.name for step in PLAN.steps if step.hook_type is kind] == names


def test_state_methods_are_no_steps() -> None:
    assert [(hook.name, hook.workflows) for hook in PLAN.provides] == [("given", ("Other",))]
    assert [(hook.name, hook.arguments) for hook in PLAN.uses] == [("taken", ("key",))]


def test_kinds_of_metrics() -> None:
    kinds = {step.name: step.metric_kind for step in PLAN.steps if step.metric_kind}
    assert kinds == {
        "step_metric": "count",
        "rate_metric": "rate",
        "plain_metric": "distribution",
    }


class NoTest(Workflow):
    @step()
    async def returns_dict(self) -> dict[str, Any]: ...

    @step()
    async def returns_nothing(self) -> None: ...

    @step()
    async def unannotated(self): ...

    @step()
    async def unknown(self) -> HTTPRespnse: ...  # noqa: F821 - the typo is the point


def test_a_workflow_that_silently_is_no_test_is_told() -> None:
    told = {warning.split(" ")[0]: warning for warning in plan_workflow(NoTest).warnings}
    assert list(told) == [
        "NoTest.returns_dict",
        "NoTest.returns_nothing",
        "NoTest.unannotated",
        "NoTest.unknown",
        "NoTest",
    ]
    assert "dict[str, Any], which is not a response" in told["NoTest.returns_dict"]
    assert "'HTTPRespnse', a name that cannot be resolved" in told["NoTest.unknown"]
    assert "no return annotation" in told["NoTest.unannotated"]
    assert "runs once, on one core, without load" in told["NoTest"]


def test_steps_beside_a_test_need_no_response() -> None:
    assert not PLAN.warnings


def test_names_local_to_a_function_are_resolved() -> None:
    class LocalResult(CustomResult):
        pass

    class Local(Workflow):
        @step()
        async def work(self) -> LocalResult: ...

    def derive() -> type[Workflow]:
        class Derived(Local):
            pass

        return Derived

    assert plan_workflow(Local).is_test
    assert plan_workflow(derive()).is_test
    (copy,) = pickle.loads(cloudpickle.dumps([Local]))
    assert plan_workflow(copy).is_test


def test_a_state_method_must_say_its_direction() -> None:
    class Undecided(Workflow):
        @state("Other")
        def value(self) -> str: ...

    with pytest.raises(BadInput, match=r"Undecided\.value .* neither Provide nor Use"):
        plan_workflow(Undecided)

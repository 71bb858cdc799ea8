from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale import (
    COUNT,
    DependentWorkflow,
    HTTPOptions,
    Metric,
    Workflow,
    check,
    depends,
    feed,
    step,
)
from hyperscale.errors import BadInput
from hyperscale.testing import URL, Headers, HTTPResponse
from hyperscale.workload.load import ClosedVUs, SharedIterations
from hyperscale.workload.plan import Overrides, plan_test, plan_workflow
from hyperscale.workload.selectors import Selector
from tests.fixtures import worked_examples as examples


@pytest.mark.parametrize(
    ("workflow", "is_test", "priority", "stages"),
    [
        (examples.LoadTestWorkflow, True, "high", [["get_users"], ["create_user"]]),
        (examples.SetupWorkflow, False, "auto", [["prepare"]]),
        (examples.UtilityWorkflow, False, "auto", [["transform"]]),
        (examples.DependentLoadTest, True, "auto", [["get_data"]]),
        (examples.APILoadTest, True, "auto", [["first"], ["second"]]),
        (examples.OptimizedAPITest, True, "high", [["search"], ["create"], ["profile"]]),
        (
            examples.APITestWorkflow,
            True,
            "auto",
            [["authenticate"], ["get_users", "get_config"], ["process_data"]],
        ),
        (examples.AuthWorkflow, True, "auto", [["login"]]),
        (examples.DataWorkflow, True, "auto", [["me"]]),
    ],
)
def test_worked_examples(
    workflow: type[Workflow], is_test: bool, priority: str, stages: list[list[str]]
) -> None:
    plan = plan_workflow(workflow)
    assert plan.is_test is is_test
    assert plan.priority == priority
    assert [[step.name for step in stage] for stage in plan.stages] == stages
    if is_test:
        assert plan.load == ClosedVUs(workflow.vus, plan.load.planned_seconds or 0)
        assert not plan.warnings
    else:
        assert plan.load == SharedIterations(1, 1)


def test_optimised_arguments_of_the_worked_example() -> None:
    search, create, profile = plan_workflow(examples.OptimizedAPITest).steps
    assert {name: type(value).__name__ for name, value in search.optimized.items()} == {
        "url": "URL",
        "headers": "Headers",
        "params": "Params",
    }
    assert create.optimized["data"].value == {"name": "ada", "role": "engineer"}
    assert profile.optimized["cookies"].value == {"session": "abc"}
    assert (search.injectable, search.kind, search.method) == ((), "http", "GET")
    assert create.method == "POST"
    assert search.target == f"{examples.TARGET}/items"


def test_dependent_workflows_make_layers() -> None:
    plan = plan_test([examples.DataWorkflow, examples.SetupWorkflow, examples.AuthWorkflow])
    assert plan.layers == (("SetupWorkflow", "AuthWorkflow"), ("DataWorkflow",))
    assert plan.workflow("DataWorkflow").depends == ("AuthWorkflow",)


def test_dependencies_given_from_outside() -> None:
    plan = plan_test(
        [
            DependentWorkflow(examples.APILoadTest, ["SetupWorkflow"]),
            examples.SetupWorkflow(),
        ]
    )
    assert plan.layers == (("SetupWorkflow",), ("APILoadTest",))


def test_unknown_dependencies_cycles_and_doubles_are_refused() -> None:
    @depends("Sutup")
    class Lost(Workflow):
        pass

    class Setup(Workflow):
        pass

    @depends("Second")
    class First(Workflow):
        pass

    @depends(First)
    class Second(Workflow):
        pass

    with pytest.raises(BadInput, match="Lost depends on 'Sutup'") as caught:
        plan_test([Lost, Setup])
    assert caught.value.hint == "did you mean 'Setup'?"
    with pytest.raises(BadInput, match="workflows wait for each other: First → Second → First"):
        plan_test([First, Second])
    with pytest.raises(BadInput, match="two workflows are called Setup"):
        plan_test([Setup, Setup])
    with pytest.raises(BadInput, match="no workflow to run"):
        plan_test([])
    with pytest.raises(BadInput, match="is not a Workflow"):
        plan_test([str])  # type: ignore[list-item]


def test_depends_is_not_inherited() -> None:
    class Derived(examples.DataWorkflow):
        pass

    assert plan_workflow(Derived).depends == ()


class Shop(Workflow):
    http = HTTPOptions(base_url="http://shop")
    timeout = "2s"
    tags = {"team": "a", "tier": "1"}
    thresholds = {"login": ["p(95)<500"], "logins": "count>5"}

    @step(tags={"kind": "auth"}, group="entry")
    async def login(
        self,
        url: URL = "/login",
        headers: Headers | None = None,
        row: dict[str, str] | None = None,
    ) -> HTTPResponse:
        return await self.client.http.post(url)

    @step("login")
    async def logins(self) -> Metric[COUNT]: ...

    @check("login")
    async def welcomed(self, login: HTTPResponse | None = None) -> Exception | None: ...


def test_overrides() -> None:
    plan = plan_workflow(
        Shop,
        Overrides(
            vus=2,
            duration="3s",
            tags={"tier": "2"},
            insecure=True,
            base_url="http://other",
            thresholds=["welcomed: rate>99%", "elsewhere: avg<5"],
        ),
    )
    assert plan.load == ClosedVUs(2, 3)
    assert plan.tags == {"team": "a", "tier": "2"}
    assert (plan.http.verify, plan.http.base_url, plan.http.timeout) == (False, "http://other", 2)
    assert [(t.scope, t.metric, t.selector) for t in plan.thresholds] == [
        ("login", "http_req_duration", Selector(step="login")),
        ("logins", "logins", Selector()),
        ("welcomed", "checks", Selector(check="welcomed")),
    ]
    assert plan_workflow(Shop, Overrides(no_thresholds=True)).thresholds == ()


def test_a_threshold_that_applies_nowhere_is_refused() -> None:
    with pytest.raises(BadInput, match="judges 'welcmed'"):
        plan_test([Shop], Overrides(thresholds=["welcmed: rate>0.9"]))


def test_a_threshold_of_the_file_must_fit_its_metric() -> None:
    class Wrong(Shop):
        thresholds = ("welcomed: p(95)<5",)

    with pytest.raises(BadInput, match=r"Wrong: threshold .* asks for the p of welcomed"):
        plan_workflow(Wrong)


def test_what_a_step_takes() -> None:
    login = plan_workflow(Shop).steps[0]
    assert list(login.optimized) == ["url"]
    assert login.injectable == ("row",)
    assert (login.tags, login.group) == ({"kind": "auth"}, "entry")


def test_bad_arguments_are_named() -> None:
    class NoDefault(Workflow):
        @step()
        async def get(self, url: URL) -> HTTPResponse: ...

    class BadDefault(Workflow):
        @step()
        async def get(self, url: URL = 5) -> HTTPResponse: ...  # type: ignore[assignment]

    with pytest.raises(BadInput, match=r"NoDefault\.get takes url: URL without a default"):
        plan_workflow(NoDefault)
    with pytest.raises(BadInput, match=r"BadDefault\.get has a bad url"):
        plan_workflow(BadDefault)


def test_an_argument_that_comes_too_late_is_told() -> None:
    class Late(Workflow):
        @step()
        async def first(self, second: HTTPResponse | None = None) -> HTTPResponse: ...

        @step()
        async def second(self, first: HTTPResponse | None = None) -> HTTPResponse: ...

    (warning,) = plan_workflow(Late).warnings
    assert warning.startswith("Late.first takes the result of second but does not wait for it")


def test_a_workflow_that_only_judges_runs_once_and_says_so() -> None:
    class Judging(Workflow):
        @check()
        async def judge(self) -> Exception | None: ...

    plan = plan_workflow(Judging)
    assert not plan.is_test
    assert plan.warnings == (
        "Judging has no step that returns a response: it runs once, on one core, without load",
    )


def test_data_is_found_beside_the_test_file(tmp_path: Path) -> None:
    class Fed(Shop):
        data = feed([{"user": "ada"}], per="vu")

    class Lost(Shop):
        data = "nowhere.csv"

    planned = plan_workflow(Fed).feed
    assert planned is not None
    assert planned.per == "vu"
    with pytest.raises(BadInput, match=r"Lost: data file nowhere\.csv does not exist"):
        plan_workflow(Lost)


def test_setup_and_teardown() -> None:
    class Prepared(Shop):
        async def setup(self) -> None: ...

        def teardown(self) -> None: ...

    plan = plan_workflow(Prepared)
    assert (plan.setup, plan.teardown) == (Prepared.setup, Prepared.teardown)
    assert plan_workflow(Shop).setup is None

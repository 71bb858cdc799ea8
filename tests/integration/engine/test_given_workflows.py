"""What a program may hand to a run besides classes, and views that break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import hyperscale.local
from hyperscale import DependentWorkflow, LocalRunner, Workflow, action, run, step
from hyperscale.engine.bundle import bundle
from hyperscale.engine.source import ClassSource, decode_source, encode_source
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse
from hyperscale.workload.given import name_of
from hyperscale.workload.plan import Overrides, plan_test


class Paths(Workflow):
    vus = 2
    iterations = 6

    def __init__(self, path: str, target: str = "") -> None:
        self.path = path
        self.target = target

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(f"{self.target}/{self.path}")


class Again(Workflow):
    iterations = 1

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("http://127.0.0.1:1/")


class Prepare(Workflow):
    @action()
    async def prepare(self) -> None:
        self.context["path"] = "json"


class Uses(Workflow):
    iterations = 2

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(f"/{self.context['path']}")


def test_an_instance_runs_as_it_is(target: str, stats: Callable[[], dict[str, Any]]) -> None:
    instance = Paths("status/204", target)
    instance.iterations = 9
    runner = LocalRunner(workers=2)
    results = asyncio.run(runner.run("instances", [(["smoke"], instance)]))
    assert results.passed, results.workflows
    (get,) = results.workflows[0].steps
    assert get.statuses == {"204": 9}
    assert stats()["requests"] == 9
    assert results.tags == {"smoke": ""}


def test_tags_of_one_workflow_are_not_those_of_another(target: str) -> None:
    given = [
        (["smoke", "slow"], DependentWorkflow(Paths("json", target), ["Prepare"])),
        (["smoke"], Prepare),
        (["smoke", "nightly"], DependentWorkflow(Again, ["Prepare"])),
    ]
    runner = LocalRunner(workers=1)
    results = asyncio.run(runner.run("tags", given, timeout="1m"))  # type: ignore[arg-type]
    assert results.tags == {"smoke": ""}
    assert {one.name: set(one.steps[0].tags) for one in results.workflows if one.is_test} == {
        "Paths": {"smoke", "slow"},
        "Again": {"smoke", "nightly"},
    }


def test_instances_and_dependencies_run_from_one_call(target: str) -> None:
    waits = DependentWorkflow(Paths("json", target), ["Prepare"])
    uses = DependentWorkflow(Uses, ["Prepare"])
    results = run(Prepare, uses, waits, base_url=target, workers=1)
    assert results.passed, [workflow.error for workflow in results.workflows]
    assert {one.name: one.iterations for one in results.workflows if one.is_test} == {
        "Uses": 2,
        "Paths": 6,
    }


def test_an_instance_travels_to_a_cluster_with_its_attributes() -> None:
    instance = Paths("status/204")
    instance.vus = 5
    given = [DependentWorkflow(instance, ["Prepare"]), Prepare]
    there = decode_source(encode_source(bundle(ClassSource(*given)))).load()
    assert [name_of(each) for each in there] == ["Paths", "Prepare"]
    plan = plan_test(there, Overrides()).workflow("Paths")
    assert (plan.depends, plan.load.peak_vus) == (("Prepare",), 5)
    user = plan.make()
    assert isinstance(user, Workflow)
    assert vars(user)["path"] == "status/204"


@pytest.mark.parametrize("given", ["Paths", 7, Workflow, DependentWorkflow])
def test_anything_else_is_refused_before_a_process_starts(given: Any) -> None:
    with pytest.raises(BadInput, match="is not a Workflow"):
        run(given)


def test_two_instances_of_a_class_have_one_name() -> None:
    with pytest.raises(BadInput, match="two workflows are called Paths"):
        run(Paths("a"), Paths("b"))


def test_a_view_that_breaks_costs_no_results(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        async def run(self, source: object) -> None:
            raise ValueError("no such colour")

        def over(self) -> None:
            pass

    monkeypatch.setattr(hyperscale.local, "open_view", lambda mode: Broken())
    with pytest.warns(RuntimeWarning, match="the view failed .* no such colour"):
        results = run(Uses, Prepare, base_url=target, workers=1)
    assert results.workflows

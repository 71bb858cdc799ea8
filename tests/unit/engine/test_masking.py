"""Reports of a generator: their texts without secrets, their values as they were."""

from __future__ import annotations

import pytest

from hyperscale import Workflow, step
from hyperscale.engine.masking import masked
from hyperscale.engine.messages import Done, Failed, Prepared, Progress, Stamped, TornDown
from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    ErrorDelta,
    MetricDelta,
    RequestDelta,
    RequestKey,
    StepDelta,
)
from hyperscale.metrics.histogram import Sparse
from hyperscale.testing import HTTPResponse
from hyperscale.workload import secrets
from hyperscale.workload.plan import plan_workflow


@pytest.fixture(autouse=True)
def one_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", {})
    monkeypatch.setattr(secrets, "_patterns", [])
    secrets.register("KEY", "TOPSECRET")


def test_whatever_is_text() -> None:
    error = ErrorDelta("exception", "TOPSECRET", 1, ["sent TOPSECRET to http://a:b@h/"])
    delta = Delta(
        seq=1,
        steps=[StepDelta("TOPSECRET", errors=[error])],
        checks=[CheckDelta("fine", 0, 1, ["not TOPSEC"])],
    )
    told = masked(Progress(1.0, delta))
    assert isinstance(told, Progress)
    (step,), (check,) = told.delta.steps, told.delta.checks
    assert step.errors[0].detail == "***KEY***"
    assert step.errors[0].samples == ["sent ***KEY*** to http://a:***@h/"]
    assert check.samples == ["not ***"]
    assert step.name == "TOPSECRET", "what results are found by is the plan's"


def test_tags_made_of_a_secret() -> None:
    tags = (("key", "TOPSECRET"),)
    values = Sparse.of([1], [1], low=1, high=1, total=1, squares=1)
    delta = Delta(
        seq=1,
        requests=[RequestDelta(RequestKey("home", tags=tags), count=1)],
        metrics=[MetricDelta("bytes", values, 1.0, "count", tags)],
    )
    masked(Progress(1.0, delta))
    (request,), (metric,) = delta.requests, delta.metrics
    assert request.key.tags == metric.tags == (("key", "***KEY***"),)


def test_tags_of_steps_and_workflows_made_of_a_secret() -> None:
    class Tagged(Workflow):
        tags = {"key": "TOPSECRET"}

        @step(tags={"also": "TOPSECRET"})
        async def home(self) -> HTTPResponse:
            return await self.client.http.get("http://shop/")

    plan = plan_workflow(Tagged)
    assert (plan.tags, plan.steps[0].tags) == ({"key": "***KEY***"}, {"also": "***KEY***"})


def test_how_a_part_ended_and_why_it_broke() -> None:
    value = Stamped(1, 0, b"TOPSECRET")
    done = Done(
        context={"k": value},
        provided={},
        measured_s=1.0,
        peak_vus=1,
        error="TOPSECRET",
        warnings=["a TOPSECRET"],
    )
    told = masked(done)
    assert isinstance(told, Done)
    assert (told.error, told.warnings) == ("***KEY***", ["a ***KEY***"])
    assert told.context == {"k": value}, "steps get what steps gave"
    failed = masked(Failed("TOPSECRET", "or TOPSECRET", detail="line of TOPSECRET"))
    assert failed == Failed("***KEY***", "or ***KEY***", detail="line of ***KEY***")
    assert masked(TornDown("TOPSECRET")) == TornDown("***KEY***")
    prepared = Prepared(1.0, {"k": value})
    assert masked(prepared) == prepared

"""Results and the verdict from aggregates and the course of the run, wherever they were made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperscale import COUNT, Metric, Workflow, check, step
from hyperscale.engine.results import (
    Course,
    aggregate_of,
    assemble,
    carried_out,
    judges_of,
    watch,
)
from hyperscale.errors import BadInput, ExitCode, RunFailed
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.recorder import NAMES_MAX
from hyperscale.metrics.results import Results, StepResult, WorkflowResult
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.facts import WorkflowFacts, facts_of
from hyperscale.workload.plan import plan_workflow


class Shop(Workflow):
    vus = 4
    duration = "10s"
    thresholds = ("p(95)<500", "http_req_failed: rate<0.5 abort")
    tags = {"team": "cart"}

    @step(tags={"page": "home"}, group="browse")
    async def home(self, url: URL = "http://shop/") -> HTTPResponse:
        return await self.client.http.get(url)

    @check()
    async def cheap(self) -> Exception | None:
        return None

    @step()
    async def items(self) -> Metric[COUNT]:
        return Metric(1)


@pytest.fixture
def facts() -> WorkflowFacts:
    """As a manager has them: they came over the wire."""
    made = facts_of(plan_workflow(Shop))
    return msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=WorkflowFacts)


PLANNED = 40.0  # seconds of users


def measured(
    facts: WorkflowFacts, count: int = 100, failed: int = 0, *, offered: float = PLANNED
) -> WorkflowAggregate:
    aggregate = aggregate_of(facts)
    service = Sparse.of([800], [count], low=0.01, high=0.01, total=0.01 * count, squares=0.1)
    steps = [RequestDelta(RequestKey("home"), count=count, failed=failed, service=service)]
    aggregate.apply(0, Delta(seq=1, vus=4, requests=steps, cpu=0.1, offered=offered), 5.0)
    return aggregate


def test_an_aggregate_needs_no_code(facts: WorkflowFacts) -> None:
    result = aggregate_of(facts).freeze()
    assert (result.name, result.is_test, result.load) == ("Shop", True, "4 VUs for 10s")
    assert (result.planned_s, result.planned_iterations, result.open_model) == (10.0, None, False)
    (home,) = result.steps
    assert (home.name, home.workflow, home.group) == ("home", "Shop", "browse")
    assert home.tags == {"team": "cart", "page": "home"}
    assert [c.name for c in result.checks] == ["cheap"]
    assert [(m.name, m.kind) for m in result.metrics] == [("items", "count")]


def exit_of(facts: WorkflowFacts, aggregate: WorkflowAggregate, **course: Any) -> int:
    judges = judges_of([facts])
    return assemble(Course(**course), [aggregate], judges, final=True).exit_code


@pytest.mark.parametrize(
    ("course", "code"),
    [
        ({}, ExitCode.PASSED),
        ({"lost": ["worker w7 lost at 41 s"]}, ExitCode.LOAD_LOST),
        ({"cut": "signal"}, ExitCode.STOPPED),
        ({"cut": "threshold"}, ExitCode.THRESHOLDS_CROSSED),
        ({"cut": "timeout"}, ExitCode.FAILED),
        ({"cut": "worker lost"}, ExitCode.LOAD_LOST),
        ({"failure": BadInput("no"), "cut": "signal"}, ExitCode.BAD_INPUT),
        ({"failure": RunFailed("no")}, ExitCode.FAILED),
    ],
)
def test_the_exit_code_of_a_run_whose_requests_went_well(
    facts: WorkflowFacts, course: dict[str, Any], code: ExitCode
) -> None:
    assert exit_of(facts, measured(facts), **course) == code


def test_a_loss_outranks_the_thresholds_but_not_a_failure(facts: WorkflowFacts) -> None:
    crossed = measured(facts, 100, 60)
    assert exit_of(facts, crossed) == ExitCode.THRESHOLDS_CROSSED
    assert exit_of(facts, measured(facts, 100, 60, offered=36.0)) == ExitCode.LOAD_LOST
    assert exit_of(facts, measured(facts, 100, 100, offered=36.0)) == ExitCode.FAILED
    broken = measured(facts, offered=36.0)
    broken.facts.error = "setup() raised"
    assert exit_of(facts, broken) == ExitCode.FAILED


def test_a_failure_is_the_reason_of_the_cut(facts: WorkflowFacts) -> None:
    results = assemble(Course(failure=RunFailed("no cores")), [measured(facts)], final=True)
    assert (results.cut, results.cut_reason, results.passed) == ("error", "no cores", False)


def test_live_results_tell_how_thresholds_stood_when_last_watched(facts: WorkflowFacts) -> None:
    judges, aggregate = judges_of([facts]), measured(facts, 100, 60)
    results = assemble(Course(state="running"), [aggregate], judges)
    assert results.thresholds == []
    watch(judges, {"Shop": aggregate})
    results = assemble(Course(state="running"), [aggregate], judges)
    assert [threshold.passed for threshold in results.thresholds] == [True, False]
    assert results.thresholds[1].actual_text == "rate=60.00%"
    assert results.workflows[0].steps[0].service.buckets == []
    assert (results.name, results.passed) == ("Shop", False)


def test_parts_of_two_machines_give_one_verdict(facts: WorkflowFacts) -> None:
    """60 % failed on one machine, none on the other: three in ten, which the threshold allows."""
    merged = aggregate_of(facts)
    merged.absorb(measured(facts, 100, 60).export())
    merged.absorb(measured(facts, 100, 0).export(), core_base=1)
    results = assemble(Course(), [merged], judges_of([facts]), final=True)
    assert results.exit_code == ExitCode.PASSED
    assert [t.passed for t in results.thresholds] == [True, True]
    assert "rate=30.00%" in results.thresholds[1].actual_text
    assert [use.core for use in results.core_use] == [0, 1]


def test_only_thresholds_that_may_abort_end_a_run(facts: WorkflowFacts) -> None:
    judges = judges_of([facts])
    assert watch(judges, {"Shop": measured(facts, 100, 10)}) is None
    crossed = watch(judges, {"Shop": measured(facts, 100, 60)})
    assert crossed is not None
    assert crossed.threshold.abort


@pytest.mark.parametrize(
    ("course", "failed", "code"),
    [
        ({}, 0, ExitCode.PASSED),
        ({}, 60, ExitCode.THRESHOLDS_CROSSED),
        ({}, 100, ExitCode.FAILED),
        ({"test_failed": True}, 0, ExitCode.FAILED),
        ({"lost": ["worker w7 lost at 41 s"]}, 0, ExitCode.LOAD_LOST),
        ({"failure": RunFailed("no")}, 0, ExitCode.FAILED),
    ],
)
def test_a_test_that_stopped_itself_is_judged_by_what_ran(
    facts: WorkflowFacts, course: dict[str, Any], failed: int, code: ExitCode
) -> None:
    aggregate = measured(facts, 100, failed)
    assert exit_of(facts, aggregate, cut="test", cut_reason="enough seen", **course) == code


def shop(**step: int) -> WorkflowResult:
    return WorkflowResult(name="Shop", steps=[StepResult(name="home", workflow="Shop", **step)])


class Told(WorkflowAggregate):
    """Stands where numbers come from, with numbers of the test's own."""

    def __init__(self, told: WorkflowResult) -> None:
        super().__init__(told.name)
        self._told = told

    def freeze(self, *, buckets: bool = True) -> WorkflowResult:
        return self._told


def verdict_on(*workflows: WorkflowResult, **course: Any) -> Results:
    return assemble(Course(**course), [Told(each) for each in workflows], final=True)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"count": 5, "failed": 4}, ExitCode.PASSED),
        ({"count": 5, "failed": 5}, ExitCode.FAILED),
        ({"count": 0, "failed": 7, "unsent": 7}, ExitCode.FAILED),
        ({"count": 1, "failed": 8, "unsent": 8}, ExitCode.PASSED),
        ({"runs": 3, "runs_failed": 2}, ExitCode.PASSED),
        ({"runs": 3, "runs_failed": 3}, ExitCode.FAILED),
        ({"runs": 6, "runs_failed": 3, "runs_interrupted": 3}, ExitCode.FAILED),
        ({"runs": 3, "runs_interrupted": 3}, ExitCode.PASSED),
        ({"count": 5, "runs": 5, "runs_failed": 5}, ExitCode.FAILED),
    ],
)
def test_something_must_have_succeeded(step: dict[str, int], code: ExitCode) -> None:
    assert verdict_on(shop(**step)).exit_code == code


def test_steps_that_went_well_in_a_flow_that_raised_are_a_success() -> None:
    flow = StepResult(name="flow", workflow="Shop", runs_failed=5)
    judged = shop(count=5, runs=5)
    judged.steps.append(flow)
    assert verdict_on(judged).exit_code == ExitCode.PASSED
    judged.steps[:] = [flow]
    assert verdict_on(judged).exit_code == ExitCode.FAILED


def test_load_that_did_not_run_never_passes() -> None:
    idle = WorkflowResult(name="Idle", steps=[StepResult(name="home", workflow="Idle")])
    for cut in (None, "test"):
        results = verdict_on(shop(count=5), msgspec.structs.replace(idle), cut=cut)
        assert (results.exit_code, results.passed) == (ExitCode.FAILED, False)
        assert results.workflows[1].error == "Idle ran no step and made no request"
    once = msgspec.structs.replace(idle, is_test=False)
    assert verdict_on(shop(count=5), once).passed
    lost = verdict_on(shop(count=5), idle, lost=["worker w7 lost at 1 s"])
    assert lost.exit_code == ExitCode.LOAD_LOST


def test_coverage_is_the_share_of_the_plan_that_was_offered() -> None:
    users = WorkflowResult(name="a", planned_load=40.0, offered_load=10.0)
    iterations = WorkflowResult(
        name="b", planned_iterations=4, planned_load=4.0, offered_load=3.0, iterations=3
    )
    plain = WorkflowResult(name="c", is_test=False)
    assert carried_out([users, iterations, plain]) == pytest.approx(0.5)
    assert carried_out([plain]) == 1.0
    assert carried_out([WorkflowResult(name="a", planned_load=0.3, offered_load=0.1 * 3)]) == 1.0
    moved_twice = WorkflowResult(name="a", planned_load=10.0, offered_load=10.2)
    assert carried_out([moved_twice]) == 1.0


def test_where_only_the_shape_knows_the_end_every_core_counts() -> None:
    half = WorkflowResult(name="a", planned_load=None, offered_load=5.0, elapsed_s=10.0)
    assert carried_out([half]) == pytest.approx(0.5)


def test_a_worker_of_an_earlier_release_tells_the_time_alone() -> None:
    old = WorkflowResult(name="a", planned_load=40.0, planned_s=10.0, elapsed_s=5.0)
    assert carried_out([old]) == pytest.approx(0.5)


def test_load_that_was_not_offered_is_a_loss_though_nobody_died(facts: WorkflowFacts) -> None:
    results = assemble(Course(), [measured(facts, offered=30.0)], final=True)
    assert (results.exit_code, results.coverage) == (ExitCode.LOAD_LOST, 0.75)
    assert results.lost == ["Shop: 10 of 40 planned seconds of users were not offered"]


@pytest.mark.parametrize("cut", ["signal", "threshold", "timeout", "test"])
def test_who_ends_a_run_wants_no_more_of_it(facts: WorkflowFacts, cut: Any) -> None:
    short = [measured(facts, offered=30.0)]
    assert assemble(Course(cut=cut), short, final=True).coverage == 1.0
    died = Course(cut=cut, lost=["generator process 7 was killed"])
    assert assemble(died, short, final=True).coverage == 0.75


def test_more_names_than_are_kept_apart_are_warned_of(facts: WorkflowFacts) -> None:
    def warnings(names: int) -> list[str]:
        aggregate = measured(facts)
        made = [RequestDelta(RequestKey("home", "GET", f"/{n}"), count=1) for n in range(names)]
        aggregate.apply(0, Delta(seq=2, vus=4, requests=made, cpu=0.1), 6.0)
        return assemble(Course(), [aggregate], final=True).warnings

    assert warnings(NAMES_MAX - 1) == []
    (warning,) = warnings(NAMES_MAX + 1)
    assert warning.startswith("Shop gave its requests more than 500 names")
    assert "in home" in warning
    assert "name=" in warning


def test_a_mix_in_which_one_workflow_never_succeeded_has_not_passed(facts: WorkflowFacts) -> None:
    other = msgspec.structs.replace(facts, name="Other")
    results = assemble(Course(), [measured(facts), measured(other, 10, failed=10)], final=True)
    assert results.exit_code == ExitCode.FAILED
    assert [workflow.error for workflow in results.workflows] == [
        "",
        "nothing that Other did succeeded",
    ]

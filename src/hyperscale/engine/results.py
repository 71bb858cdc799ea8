"""From aggregates to results: one way for a run on this machine and for a run on many.

A local run, the manager that ends a job and the client that watches one all have aggregates and
know how the run went (`Course`). What the view, the files and the exit code say follows from
these alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from hyperscale.engine.thresholds import Judge
from hyperscale.errors import ExitCode, HyperscaleError
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.recorder import NAMES_MAX, OTHER_NAME
from hyperscale.metrics.results import (
    Cut,
    Environment,
    Results,
    State,
    StepResult,
    ThresholdResult,
    WorkflowResult,
    no_iteration_succeeded,
    no_run_succeeded,
)
from hyperscale.metrics.saturation import saturation
from hyperscale.metrics.tiers import POINTS_MAX
from hyperscale.metrics.totals import generator_cost
from hyperscale.workload.facts import StepFacts, WorkflowFacts
from hyperscale.workload.hooks import USER_HOOKS, HookType
from hyperscale.workload.thresholds import reserved_names

# Shares are sums of many small ones; what differs from all by less is all.
ROUNDING = 1e-6

_EXIT_OF_CUT: dict[Cut, ExitCode] = {
    "signal": ExitCode.STOPPED,
    "threshold": ExitCode.THRESHOLDS_CROSSED,
    "worker lost": ExitCode.LOAD_LOST,
}


class Course(msgspec.Struct, kw_only=True):
    """How a run went, besides its numbers."""

    name: str = ""
    started_at: str = ""  # ISO 8601, UTC
    elapsed_s: float = 0.0
    state: State = "preparing"
    cut: Cut | None = None
    cut_reason: str = ""
    test_failed: bool = False  # the test stopped itself and called that a failure
    failure: HyperscaleError | None = None  # what kept the run from being carried out
    coverage: float = 1.0  # while it runs; at its end the numbers say it
    lost: Sequence[str] = ()
    tags: Mapping[str, str] = {}
    warnings: Sequence[str] = ()
    environment: Environment = msgspec.field(default_factory=Environment)


def aggregate_of(facts: WorkflowFacts, points_max: int = POINTS_MAX) -> WorkflowAggregate:
    """An empty aggregate for this workflow; those of its parts can be absorbed by one another."""
    hooks = [StepFacts(name=name, hook_type=HookType.ACTION) for name in USER_HOOKS]
    results = [
        StepResult(
            name=step.name,
            workflow=facts.name,
            kind=step.kind,
            method=step.method,
            target=step.target,
            tags={**facts.tags, **step.tags},
            group=step.group,
        )
        for step in (*facts.steps, *hooks)
    ]
    tests = {step.name for step in facts.steps if step.hook_type is HookType.TEST}
    aggregate = WorkflowAggregate(
        facts.name,
        steps=[step for step in results if step.name in tests],
        checks=[step.name for step in facts.steps if step.hook_type is HookType.CHECK],
        metrics={s.name: s.metric_kind for s in facts.steps if s.metric_kind is not None},
        places=[step for step in results if step.name not in tests],
        reserved=reserved_names(facts.thresholds),
        points_max=points_max,
    )
    known = aggregate.facts
    known.is_test = facts.is_test
    known.load = facts.load.describe() if facts.is_test else "once"
    known.open_model = facts.load.open_model
    known.planned_s = facts.planned_s
    known.planned_iterations = facts.load.planned_iterations if facts.is_test else 1
    known.planned_load = facts.load.planned_load if facts.is_test else None
    return aggregate


def judges_of(workflows: Iterable[WorkflowFacts], datacenters: Container[str] = ()) -> list[Judge]:
    """What names a datacenter is judged where that one is known by its name."""
    return [
        Judge(threshold, facts.name, number)
        for facts in workflows
        for number, threshold in enumerate(facts.thresholds)
        if not (dc := threshold.selector.dc) or dc in datacenters
    ]


def unjudged(workflows: Iterable[WorkflowFacts], datacenters: Container[str] = ()) -> list[str]:
    return [
        f"threshold {threshold.scope}: {threshold.expression} is not judged: it is about "
        f"datacenter {dc}, where the test did not run"
        for facts in workflows
        for threshold in facts.thresholds
        if (dc := threshold.selector.dc) and dc not in datacenters
    ]


def watch(judges: Iterable[Judge], aggregates: Mapping[str, WorkflowAggregate]) -> Judge | None:
    """Look at the thresholds; the first that ends the run.

    To be called about once a second while the load runs."""
    watching = list(judges)
    now = {name: aggregates[name].freeze() for name in {judge.workflow for judge in watching}}
    aborting = [judge for judge in watching if judge.watch(now[judge.workflow])]
    return aborting[0] if aborting else None


def standing(judges: Iterable[Judge]) -> list[ThresholdResult]:
    """How the thresholds stood when they were last watched. A live view asks more often than
    that, and without histograms, which judging takes."""
    return [judge.latest for judge in judges if judge.latest is not None]


def assemble(
    course: Course,
    aggregates: Iterable[WorkflowAggregate],
    judges: Iterable[Judge] = (),
    *,
    final: bool = False,
    apart: Mapping[tuple[str, str], WorkflowResult] | None = None,
) -> Results:
    """Everything known so far; `final` judges the whole run and carries the histograms. `apart`
    are workflows in one datacenter, for thresholds that name it."""
    parts = list(aggregates)
    workflows = [aggregate.freeze(buckets=final) for aggregate in parts]
    uses = [use for aggregate in parts for use in aggregate.core_use()]
    results = Results(
        name=course.name or ", ".join(workflow.name for workflow in workflows),
        started_at=course.started_at,
        elapsed_s=course.elapsed_s,
        state=course.state,
        cut=course.cut,
        cut_reason=course.cut_reason,
        coverage=_coverage(course, workflows) if final else course.coverage,
        lost=list(course.lost),
        tags=dict(course.tags),
        workflows=workflows,
        warnings=list(dict.fromkeys((*course.warnings, *_too_many_names(workflows)))),
        core_use=uses,
        saturation=""
        if _all_failed(workflows)  # a generator busy with failing proves nothing
        else saturation(
            uses,
            dropped=sum(w.dropped_iterations for w in workflows),
            iterations=sum(w.iterations for w in workflows if w.open_model),
            open_model=any(w.open_model for w in workflows),
        ),
        environment=course.environment,
    )
    results.generator = generator_cost(results)
    if not final:
        results.thresholds = standing(judges)
        return results
    if results.coverage < 1 and not results.lost:
        results.lost = [_not_offered(w) for w in workflows if w.is_test and _share(w) < 1]
    by_name = {workflow.name: workflow for workflow in workflows}
    results.thresholds = [
        judge.judge((apart or {})[dc, judge.workflow] if dc else by_name[judge.workflow])
        for judge in judges
        for dc in [judge.threshold.selector.dc]
    ]
    if course.failure is not None:
        results.cut, results.cut_reason = "error", course.failure.message
    if results.cut in (None, "test") and not results.lost and results.coverage >= 1:
        tests = [workflow for workflow in workflows if workflow.is_test and not workflow.error]
        for workflow in tests:
            if _is_idle(workflow):
                workflow.error = f"{workflow.name} ran no step and made no request"
            elif len(tests) > 1 and _all_failed([workflow]):
                workflow.error = f"nothing that {workflow.name} did succeeded"
    results.exit_code = int(_exit_code(results, course))
    results.passed = results.exit_code == ExitCode.PASSED
    return results


def _coverage(course: Course, workflows: Sequence[WorkflowResult]) -> float:
    """Who ends a run early wants no more of its load; a run that failed says so itself."""
    if course.lost or course.cut == "worker lost":
        return carried_out(workflows)
    if course.cut is not None or course.failure is not None:
        return 1.0
    return carried_out(w for w in workflows if w.planned_load is not None and not w.error)


def carried_out(workflows: Iterable[WorkflowResult]) -> float:
    """The share of the planned load of all tests that was offered, each test counting the same."""
    shares = [_share(workflow) for workflow in workflows if workflow.is_test]
    return fmean(shares) if shares else 1.0


def _share(workflow: WorkflowResult) -> float:
    planned, offered = workflow.planned_load, workflow.offered_load
    if offered is None:  # a worker of an earlier release: all that is known is the time
        share = workflow.elapsed_s / workflow.planned_s if workflow.planned_s else 1.0
    elif planned is None:  # only its shape knows when it ends: as much as cores took part in it
        share = offered / workflow.elapsed_s if workflow.elapsed_s else 1.0
    else:
        share = offered / planned
    return share if share < 1.0 - ROUNDING else 1.0


def _not_offered(workflow: WorkflowResult) -> str:
    """Nobody died: a generator process was suspended or got no time, and warns of it."""
    planned = workflow.planned_load or 0.0
    unit = "seconds of users" if workflow.planned_iterations is None else "iterations"
    unit = "arrivals" if workflow.open_model else unit
    missing = (1.0 - _share(workflow)) * planned
    return f"{workflow.name}: {missing:,.0f} of {planned:,.0f} planned {unit} were not offered"


def _too_many_names(workflows: Iterable[WorkflowResult]) -> Iterator[str]:
    for workflow in workflows:
        steps = [s.name for s in workflow.steps if any(r.name == OTHER_NAME for r in s.requests)]
        if steps:
            yield (
                f"{workflow.name} gave its requests more than {NAMES_MAX} names; the rest, in "
                f"{', '.join(steps)}, are told as {OTHER_NAME}: say what they have in common, "
                'such as get(url, name="/items/{id}")'
            )


def _exit_code(results: Results, course: Course) -> ExitCode:
    """A verdict on less load than was planned is no verdict: the loss outranks the thresholds.
    A test that stops itself has had what load it wanted."""
    if course.failure is not None:
        return course.failure.exit_code
    if results.cut not in (None, "test"):
        return _EXIT_OF_CUT.get(results.cut, ExitCode.FAILED)
    tests = [workflow for workflow in results.workflows if workflow.is_test]
    failed = course.test_failed or any(workflow.error for workflow in results.workflows)
    if failed or (tests and (_all_failed(tests) or all(map(_is_idle, tests)))):
        return ExitCode.FAILED
    if results.lost or results.coverage < 1:
        return ExitCode.LOAD_LOST
    if not all(threshold.passed for threshold in results.thresholds):
        return ExitCode.THRESHOLDS_CROSSED
    return ExitCode.PASSED


def _is_idle(workflow: WorkflowResult) -> bool:
    return not any(step.count or step.unsent or step.runs for step in workflow.steps)


def _all_failed(workflows: Sequence[WorkflowResult]) -> bool:
    """Not one call succeeded, or not one run of a step, or not one iteration."""
    steps = [step for workflow in workflows for step in workflow.steps]
    calls = sum(step.count + step.unsent for step in steps)
    nothing = bool(calls) and sum(step.failed for step in steps) >= calls
    return nothing or no_run_succeeded(workflows) or no_iteration_succeeded(workflows)

"""What a node may know of a workflow without running its code.

A plan holds classes and functions and stays in one process. Its facts are plain data: the client
works them out, managers decide by them, and only a generator process ever sees the code.
"""

from __future__ import annotations

import msgspec

from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import Load, SharedIterations
from hyperscale.workload.plan import TestPlan, WorkflowPlan
from hyperscale.workload.step_plan import StepPlan
from hyperscale.workload.thresholds import Threshold


class StepFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    hook_type: HookType
    kind: str = ""  # protocol, for display
    method: str = ""
    target: str = ""
    tags: dict[str, str] = {}
    group: str = ""
    metric_kind: MetricKind | None = None


class WorkflowFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    is_test: bool
    priority: str
    load: Load
    steps: tuple[StepFacts, ...] = ()
    depends: tuple[str, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    tags: dict[str, str] = {}
    provides: dict[str, tuple[str, ...]] = {}  # key -> the workflows it is for
    sets_up: bool = False
    tears_down: bool = False
    per_vu_connections: bool = True
    first_vu: int = 0  # users are numbered from here on: other datacenters have those before

    @property
    def planned_s(self) -> float | None:
        """Seconds of load; None when the end depends on how fast iterations are."""
        return self.load.planned_seconds if self.is_test else None

    @property
    def users(self) -> int:
        """How many cores it can make use of: iterations that are shared may be fewer than users."""
        load = self.load
        most = load.iterations if isinstance(load, SharedIterations) else load.peak_vus
        return max(1, min(load.peak_vus, most)) if self.is_test else 1


def facts_of(plan: WorkflowPlan) -> WorkflowFacts:
    return WorkflowFacts(
        name=plan.name,
        is_test=plan.is_test,
        priority=str(plan.priority),
        load=plan.load,
        steps=tuple(_step_facts(step) for step in plan.steps),
        depends=plan.depends,
        thresholds=plan.thresholds,
        tags=dict(plan.tags),
        provides={state.name: state.workflows for state in plan.provides},
        sets_up=plan.setup is not None,
        tears_down=plan.teardown is not None,
        per_vu_connections=plan.http.connections == "per_vu",
    )


def test_facts(plan: TestPlan) -> list[WorkflowFacts]:
    return [facts_of(workflow) for workflow in plan.workflows]


def _step_facts(step: StepPlan) -> StepFacts:
    return StepFacts(
        name=step.name,
        hook_type=step.hook_type,
        kind=step.kind,
        method=step.method,
        target=step.target,
        tags=dict(step.tags),
        group=step.group,
        metric_kind=step.metric_kind,
    )

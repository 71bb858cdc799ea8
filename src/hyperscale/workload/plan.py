"""The plan of a test: everything the engine needs, worked out before any load.

Making a plan resolves annotations, wraps defaults into optimised arguments, reads data files and
applies the flags of a command line. A plan holds classes and functions, so it stays inside a
process; other processes make the same plan from the same code and `Overrides`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload import graph, load_settings, near_names
from hyperscale.workload import workflow as authoring
from hyperscale.workload.data import Feed
from hyperscale.workload.datacenters import read_datacenters
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.given import AnyWorkflow, name_of, parts_of
from hyperscale.workload.hook_types import Hook, classify
from hyperscale.workload.hooks import HookType
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.load import Load
from hyperscale.workload.mix import Member, shared_flags
from hyperscale.workload.priority import Priority, parse_priority
from hyperscale.workload.step_plan import StepPlan, plan_stages, plan_step
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import Threshold, parse_threshold, parse_thresholds
from hyperscale.workload.workflow import Workflow


class Overrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the flags of a command line change; None and empty leave the test file's value."""

    # Of the load: totals for the workflows of a layer together, but for the first three.
    duration: str | float | None = None
    iterations: int | None = None
    vus_each: int | None = None
    vus: int | None = None
    stages: list[tuple[str | float, str | float]] | None = None
    rate: str | float | None = None
    max_vus: int | None = None
    rps: str | float | None = None
    thresholds: list[str] = []  # added to those of every test workflow they apply to
    no_thresholds: bool = False
    tags: dict[str, str] = {}
    insecure: bool = False
    base_url: str | None = None

    def load_flags(self) -> dict[str, Any]:
        return {
            name: value
            for name in load_settings.FLAGS
            if (value := getattr(self, name)) is not None
        }


@dataclass(frozen=True)
class StatePlan:
    """A `@state` method: PROVIDE to, or USE from, the named workflows."""

    name: str
    function: Callable[..., Any]
    workflows: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class WorkflowPlan:
    workflow: type[Workflow]
    name: str
    is_test: bool  # not a test: one core runs the steps once
    priority: Priority
    steps: tuple[StepPlan, ...]
    stages: tuple[tuple[StepPlan, ...], ...]
    load: Load
    thresholds: tuple[Threshold, ...]
    tags: Mapping[str, str]
    depends: tuple[str, ...]
    provides: tuple[StatePlan, ...]
    uses: tuple[StatePlan, ...]
    http: HTTPOptions
    feed: Feed | None
    flow: Callable[..., Any] | None
    on_start: Callable[..., Any] | None
    on_stop: Callable[..., Any] | None
    setup: Callable[..., Any] | None
    teardown: Callable[..., Any] | None
    instance: Workflow | None = None  # what the program gave, when that was not a class
    warnings: tuple[str, ...] = ()

    def make(self) -> Workflow:
        """A new instance for a user: with the attributes of the one that was given, if any."""
        if self.instance is None:
            return self.workflow()
        made = self.workflow.__new__(self.workflow)
        vars(made).update(vars(self.instance))
        return made

    @property
    def shape(self) -> Callable[[float], int | None] | None:
        """`shape` of an instance that is no user's, if the workflow has one."""
        return getattr(self.make(), "shape", None) if hasattr(self.workflow, "shape") else None


@dataclass(frozen=True)
class TestPlan:
    __test__ = False  # not a test class of pytest

    workflows: tuple[WorkflowPlan, ...]
    layers: tuple[tuple[str, ...], ...]  # names of workflows that may run together, in order
    warnings: tuple[str, ...] = field(default=())
    datacenters: Mapping[str, int] = field(default_factory=dict)  # with their shares; 0: all

    @property
    def reporting(self) -> dict[str, Any]:
        """What workflows say of where their results go, by name."""
        return {plan.name: plan.workflow.reporting for plan in self.workflows}

    def workflow(self, name: str) -> WorkflowPlan:
        return next(plan for plan in self.workflows if plan.name == name)


def plan_test(workflows: Iterable[AnyWorkflow], overrides: Overrides | None = None) -> TestPlan:
    overrides = overrides or Overrides()
    drafts = [_Draft(workflow) for workflow in workflows]
    if not drafts:
        raise BadInput("there is no workflow to run")
    waits = _waits(drafts)
    layers = tuple(tuple(layer) for layer in graph.layers(waits))
    loads, warnings = _plan_loads(drafts, layers, overrides)
    plans = tuple(_plan(draft, overrides, loads[draft.name]) for draft in drafts)
    if not overrides.no_thresholds:
        _refuse_lost_thresholds(overrides, plans)
    warnings += [warning for plan in plans for warning in plan.warnings]
    return TestPlan(plans, layers, tuple(warnings), _datacenters(drafts))


def plan_workflow(
    workflow: AnyWorkflow, overrides: Overrides | None = None, load: Load | None = None
) -> WorkflowPlan:
    """The plan of one workflow. Its part of a mix is worked out where the whole test is known
    (`plan_test`); whoever was told it passes the `load`."""
    overrides, draft = overrides or Overrides(), _Draft(workflow)
    if load is None:
        load = _plan_loads([draft], [[draft.name]], overrides)[0][draft.name]
    return _plan(draft, overrides, load)


def plan_named(
    workflows: Iterable[AnyWorkflow], name: str, overrides: Overrides, load: Load
) -> WorkflowPlan:
    """The plan of one among several workflows, with the load it was given."""
    found = next(each for each in workflows if name_of(each) == name)
    return plan_workflow(found, overrides, load)


class _Draft:
    """A workflow before its load is known, which depends on the others."""

    def __init__(self, workflow: AnyWorkflow) -> None:
        self.cls, self.instance, self.depends = parts_of(workflow)
        self.name = self.cls.__name__
        flows = authoring.has_flow(self.cls)
        self.hooks = [
            classify(self.name, name, method, self.cls.__hyperscale_hints__.get(name, {}), flows)
            for name, method in authoring.methods_of(self.cls).items()
        ]
        self.steps = {
            hook.name: plan_step(self.name, hook)
            for hook in self.hooks
            if hook.hook_type not in (HookType.PROVIDE, HookType.USE)
        }
        self.is_test = flows or any(s.hook_type is HookType.TEST for s in self.steps.values())
        self.stages = () if flows else plan_stages(authoring.graph_of(self.cls), self.steps)


def _plan(draft: _Draft, overrides: Overrides, load: Load) -> WorkflowPlan:
    cls, steps, stages = draft.cls, draft.steps, draft.stages
    with _naming(draft.name):
        near_names.refuse(cls)
        thresholds = _plan_thresholds(cls, overrides, tuple(steps.values()))
        unread = authoring.feed_of(cls)
        feed = unread.read(authoring.directory_of(cls)) if unread else None
    return WorkflowPlan(
        workflow=cls,
        instance=draft.instance,
        name=draft.name,
        is_test=draft.is_test,
        priority=parse_priority(cls.priority),
        steps=tuple(steps.values()),
        stages=stages,
        load=load,
        thresholds=thresholds if draft.is_test else (),
        tags={**authoring.tags_of(cls), **overrides.tags},
        depends=draft.depends,
        provides=_state_plans(draft.hooks, HookType.PROVIDE),
        uses=_state_plans(draft.hooks, HookType.USE),
        http=_plan_http(cls, overrides),
        feed=feed,
        flow=getattr(cls, "flow", None),
        on_start=getattr(cls, "on_start", None),
        on_stop=getattr(cls, "on_stop", None),
        setup=getattr(cls, "setup", None),
        teardown=getattr(cls, "teardown", None),
        warnings=_warnings(draft.name, draft.hooks, steps, stages, draft.is_test),
    )


def _waits(drafts: Sequence[_Draft]) -> dict[str, tuple[str, ...]]:
    """Which workflow waits for which others, all of them part of the run."""
    names = [draft.name for draft in drafts]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"two workflows are called {name}", "give one of them another name")
    waits = {draft.name: draft.depends for draft in drafts}
    for name, dependencies in waits.items():
        for dependency in dependencies:
            if dependency not in waits:
                close = difflib.get_close_matches(dependency, names, n=1)
                raise BadInput(
                    f"{name} depends on {dependency!r}, which is not part of this run",
                    f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}",
                )
    cycle = graph.find_cycle(waits)
    if cycle:
        raise BadInput(
            f"workflows wait for each other: {' → '.join(cycle)}", "remove one of these @depends"
        )
    return waits


@contextmanager
def _naming(workflow: str) -> Iterator[None]:
    """Errors inside speak of what was set; they get the workflow's name in front."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{workflow}: {error.message}", error.hint) from error


def _state_plans(hooks: Iterable[Hook], hook_type: HookType) -> tuple[StatePlan, ...]:
    return tuple(
        StatePlan(
            name=hook.name,
            function=getattr(hook.function, "__wrapped__", hook.function),
            workflows=hook.names,
            arguments=tuple(inspect.signature(hook.function).parameters)[1:],
        )
        for hook in hooks
        if hook.hook_type is hook_type
    )


def _plan_loads(
    drafts: Sequence[_Draft], layers: Iterable[Iterable[str]], overrides: Overrides
) -> tuple[dict[str, Load], list[str]]:
    """The load of each workflow, with its part of what the flags give to a whole layer."""
    by_name = {draft.name: draft for draft in drafts}
    awaited = {name for draft in drafts for name in draft.depends}
    loads: dict[str, Load] = {}
    warnings: list[str] = []
    for layer in layers:
        members = []
        for draft in (by_name[name] for name in layer):
            settings = authoring.load_settings_of(draft.cls)
            if draft.is_test:
                weight = authoring.weight_of(draft.cls)
                members.append(Member(draft.name, settings, weight, draft.name in awaited))
            else:
                loads[draft.name] = load_settings.once(settings)
        flags, told = shared_flags(members, overrides.load_flags())
        warnings += told
        for member in members:
            with _naming(member.name):
                changed = load_settings.override(member.settings, flags[member.name])
                loads[member.name] = load_settings.load_of(changed)
    return loads, warnings


def _datacenters(drafts: Iterable[_Draft]) -> dict[str, int]:
    """Of the whole test: workflows that say where it runs say the same."""
    said: dict[str, dict[str, int]] = {}
    for draft in drafts:
        with _naming(draft.name):
            if found := read_datacenters(draft.cls.datacenters):
                said[draft.name] = found
    for name, found in said.items():
        first = next(iter(said))
        if list(found.items()) != list(said[first].items()):
            raise BadInput(
                f"{first} and {name} name different datacenters, and a test runs as a whole",
                "let one of them say it, or both the same",
            )
    return next(iter(said.values()), {})


def _names(cls: type[Workflow], steps: Iterable[StepPlan], overrides: Overrides) -> Names:
    def of(hook_type: HookType) -> list[StepPlan]:
        return [step for step in steps if step.hook_type is hook_type]

    return authoring.names_of(
        cls,
        (step.name for step in of(HookType.TEST)),
        (step.name for step in of(HookType.CHECK)),
        {step.name: step.metric_kind for step in of(HookType.METRIC) if step.metric_kind},
        {**authoring.tags_of(cls), **overrides.tags},
    )


def _plan_thresholds(
    cls: type[Workflow], overrides: Overrides, steps: tuple[StepPlan, ...]
) -> tuple[Threshold, ...]:
    if overrides.no_thresholds:
        return ()
    own = parse_thresholds(cls.thresholds)
    added = [parse_threshold(expression) for expression in overrides.thresholds]
    if not own and not added:
        return ()
    names = _names(cls, steps, overrides)
    meant = [*own, *(threshold for threshold in added if _applies(threshold, names))]
    return tuple(bind(threshold, names) for threshold in meant)


def _applies(threshold: Threshold, names: Names) -> bool:
    try:
        bind(threshold, names)
    except BadInput:
        return False
    return True


def _refuse_lost_thresholds(overrides: Overrides, plans: Sequence[WorkflowPlan]) -> None:
    """A threshold of the command line must mean something in at least one workflow."""
    if not overrides.thresholds:
        return
    tests = [_names(plan.workflow, plan.steps, overrides) for plan in plans if plan.is_test]
    for threshold in map(parse_threshold, overrides.thresholds):
        if tests and not any(_applies(threshold, names) for names in tests):
            bind(threshold, min(tests, key=lambda names: names.workflow not in threshold.scope))


def _plan_http(cls: type[Workflow], overrides: Overrides) -> HTTPOptions:
    changes: dict[str, Any] = {}
    if cls.timeout is not None:
        changes["timeout"] = parse_duration(cls.timeout, f"{cls.__name__}: timeout")
    if overrides.insecure:
        changes["verify"] = False
    base_url = overrides.base_url if overrides.base_url is not None else authoring.host_of(cls)
    if base_url is not None:
        changes["base_url"] = base_url
    return msgspec.structs.replace(authoring.http_of(cls), **changes)


def _warnings(
    owner: str,
    hooks: Iterable[Hook],
    steps: Mapping[str, StepPlan],
    stages: Sequence[Sequence[StepPlan]],
    is_test: bool,
) -> tuple[str, ...]:
    found = [] if is_test else [hook.warning for hook in hooks if hook.warning]
    judges = any(step.hook_type is not HookType.ACTION for step in steps.values())
    if not is_test and (found or judges):
        found.append(
            f"{owner} has no step that returns a response: it runs once, on one core, without load"
        )
    ran: set[str] = set()
    for stage in stages:
        for step in stage:
            late = [name for name in step.injectable if name in steps and name not in ran]
            found += [
                f"{owner}.{step.name} takes the result of {name} but does not wait for it; "
                f"name it in the decorator: ('{name}')"
                for name in late
            ]
        ran.update(step.name for step in stage)
    return tuple(found)

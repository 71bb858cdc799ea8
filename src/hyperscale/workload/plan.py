"""The plan of a test: everything the engine needs, worked out before any load.

Making a plan resolves annotations, wraps defaults into optimised arguments, reads data files and
applies the flags of a command line. A plan holds classes and functions, so it stays inside a
process; other processes make the same plan from the same code and `Overrides`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload import graph, load_settings
from hyperscale.workload import workflow as authoring
from hyperscale.workload.arguments import OptimizedArgument
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.data import Feed
from hyperscale.workload.display import Display, display_of
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.hooks import DEPENDS, Choice, Hook, HookType, classify, raw_of
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.load import Load, SharedIterations
from hyperscale.workload.priority import Priority, parse_priority
from hyperscale.workload.results import CallResult
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import Threshold, parse_threshold, parse_thresholds
from hyperscale.workload.type_hints import allows_none, alternatives, is_subclass
from hyperscale.workload.workflow import Workflow


class Overrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the flags of a command line change; None and empty leave the test file's value."""

    vus: int | None = None
    duration: str | float | None = None
    iterations: int | None = None
    stages: list[tuple[str | float, str | float]] | None = None
    rate: str | float | None = None
    max_vus: int | None = None
    thresholds: list[str] = []  # added to those of every test workflow they apply to
    no_thresholds: bool = False
    tags: dict[str, str] = {}
    insecure: bool = False
    base_url: str | None = None

    def load_flags(self) -> dict[str, Any]:
        names = ("vus", "duration", "iterations", "stages", "rate", "max_vus")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class StepPlan:
    name: str
    hook_type: HookType
    function: Callable[..., Any]  # as the author wrote it: takes the workflow instance
    call: Callable[..., Any]  # runs it without measuring
    attribute: Callable[..., Any]  # what the class has under its name
    dependencies: tuple[str, ...]
    optimized: Mapping[str, OptimizedArgument]  # always passed, never displaced by the context
    injectable: tuple[str, ...]  # passed when the context has a value of that name
    parameters: tuple[str, ...]  # that a call may give by position
    choice: Choice
    promises: bool  # its annotation says that it returns a response,
    optional: bool  # or None, which means that it was skipped
    tags: Mapping[str, str]
    group: str
    metric_kind: MetricKind | None = None
    kind: str = ""
    method: str = ""
    target: str = ""


@dataclass(frozen=True)
class StatePlan:
    """A `@state` method: PROVIDE to, or USE from, the named workflows."""

    name: str
    function: Callable[..., Any]
    workflows: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class DependentWorkflow:
    """A workflow and what it waits for, where `@depends` cannot be written on the class."""

    workflow: type[Workflow] | Workflow
    dependencies: Sequence[str]


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
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TestPlan:
    __test__ = False  # not a test class of pytest

    workflows: tuple[WorkflowPlan, ...]
    layers: tuple[tuple[str, ...], ...]  # names of workflows that may run together, in order
    warnings: tuple[str, ...] = field(default=())

    def workflow(self, name: str) -> WorkflowPlan:
        return next(plan for plan in self.workflows if plan.name == name)


AnyWorkflow = type[Workflow] | Workflow | DependentWorkflow


def plan_test(workflows: Iterable[AnyWorkflow], overrides: Overrides | None = None) -> TestPlan:
    overrides = overrides or Overrides()
    plans = [plan_workflow(workflow, overrides) for workflow in workflows]
    if not plans:
        raise BadInput("there is no workflow to run")
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"two workflows are called {name}", "give one of them another name")
    waits = {plan.name: plan.depends for plan in plans}
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
    if not overrides.no_thresholds:
        _refuse_lost_thresholds(overrides, plans)
    return TestPlan(
        tuple(plans),
        tuple(tuple(layer) for layer in graph.layers(waits)),
        tuple(warning for plan in plans for warning in plan.warnings),
    )


def plan_workflow(workflow: AnyWorkflow, overrides: Overrides | None = None) -> WorkflowPlan:
    overrides = overrides or Overrides()
    cls, depends = _class_and_dependencies(workflow)
    flows = authoring.has_flow(cls)
    hooks = [
        classify(cls.__name__, name, method, cls.__hyperscale_hints__.get(name, {}), flows)
        for name, method in authoring.methods_of(cls).items()
    ]
    steps = {
        hook.name: _plan_step(cls.__name__, hook)
        for hook in hooks
        if hook.hook_type not in (HookType.PROVIDE, HookType.USE)
    }
    is_test = flows or any(step.hook_type is HookType.TEST for step in steps.values())
    stages = () if flows else _stages(authoring.graph_of(cls), steps)
    try:
        load = _plan_load(cls, overrides, is_test)
        thresholds = _plan_thresholds(cls, overrides, tuple(steps.values())) if is_test else ()
        unread = authoring.feed_of(cls)
        feed = unread.read(authoring.directory_of(cls)) if unread else None
    except BadInput as error:
        raise BadInput(f"{cls.__name__}: {error.message}", error.hint) from error
    return WorkflowPlan(
        workflow=cls,
        name=cls.__name__,
        is_test=is_test,
        priority=parse_priority(cls.priority),
        steps=tuple(steps.values()),
        stages=stages,
        load=load,
        thresholds=thresholds,
        tags={**authoring.tags_of(cls), **overrides.tags},
        depends=depends,
        provides=_state_plans(hooks, HookType.PROVIDE),
        uses=_state_plans(hooks, HookType.USE),
        http=_plan_http(cls, overrides),
        feed=feed,
        flow=getattr(cls, "flow", None),
        on_start=getattr(cls, "on_start", None),
        on_stop=getattr(cls, "on_stop", None),
        setup=getattr(cls, "setup", None),
        teardown=getattr(cls, "teardown", None),
        warnings=_warnings(cls.__name__, hooks, steps, stages, is_test),
    )


def _stages(
    waits: Mapping[str, Sequence[str]], steps: Mapping[str, StepPlan]
) -> tuple[tuple[StepPlan, ...], ...]:
    """What runs one after another; the weighted steps are one stage, where the first of them is."""
    stages = [tuple(steps[name] for name in stage) for stage in graph.stages(waits)]
    weighted = [stage for stage in stages if stage[0].choice.weight is not None]
    if len(weighted) > 1:
        at = stages.index(weighted[0])
        stages = [stage for stage in stages if stage not in weighted]
        stages.insert(at, tuple(step for stage in weighted for step in stage))
    return tuple(stages)


def _class_and_dependencies(workflow: AnyWorkflow) -> tuple[type[Workflow], tuple[str, ...]]:
    more: Sequence[str] = ()
    if isinstance(workflow, DependentWorkflow):
        more = workflow.dependencies
        workflow = workflow.workflow
    cls = workflow if isinstance(workflow, type) else type(workflow)
    if not issubclass(cls, Workflow):
        raise BadInput(f"{workflow!r} is not a Workflow", "pass a class that derives from Workflow")
    declared: tuple[str, ...] = vars(cls).get(DEPENDS, ())
    return cls, tuple(dict.fromkeys([*declared, *more]))


def _plan_step(owner: str, hook: Hook) -> StepPlan:
    optimized: dict[str, OptimizedArgument] = {}
    injectable: list[str] = []
    positional: list[str] = []
    function, call = raw_of(hook.function)
    for parameter in list(inspect.signature(hook.function).parameters.values())[1:]:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        kind = _optimized_type(hook.hints.get(parameter.name))
        if kind is None:
            injectable.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise BadInput(
                f"{owner}.{hook.name} takes {parameter.name}: {kind.__name__} without a default",
                f"write '{parameter.name}: {kind.__name__} = ...', the value is prepared once",
            )
        elif parameter.default is not None:
            optimized[parameter.name] = _wrap(owner, hook.name, parameter, kind)
    shown = (
        display_of(hook.function, hook.returns, optimized.values())
        if hook.hook_type is HookType.TEST
        else Display()
    )
    return StepPlan(
        name=hook.name,
        hook_type=hook.hook_type,
        function=function,
        call=call,
        attribute=hook.function,
        dependencies=hook.names,
        optimized=optimized,
        injectable=tuple(injectable),
        parameters=tuple(positional),
        choice=hook.choice,
        promises=any(is_subclass(kind, CallResult) for kind in alternatives(hook.returns)),
        optional=allows_none(hook.returns),
        tags=hook.tags,
        group=hook.group,
        metric_kind=hook.metric_kind,
        kind=shown.kind,
        method=shown.method,
        target=shown.target,
    )


def hook_plan(name: str, function: Callable[..., Any] | None) -> StepPlan | None:
    """on_start, on_stop or flow as a step, so that the requests made in it have a place."""
    if function is None:
        return None
    return StepPlan(
        name=name,
        hook_type=HookType.ACTION,
        function=function,
        call=function,
        attribute=function,
        dependencies=(),
        optimized={},
        injectable=(),
        parameters=(),
        choice=Choice(),
        promises=False,
        optional=False,
        tags={},
        group="",
    )


def _optimized_type(hint: Any) -> type[OptimizedArgument] | None:
    return next((kind for kind in alternatives(hint) if is_subclass(kind, OptimizedArgument)), None)


def _wrap(
    owner: str, step: str, parameter: inspect.Parameter, kind: type[OptimizedArgument]
) -> OptimizedArgument:
    try:
        return kind.of(parameter.default)
    except BadInput as error:
        raise BadInput(
            f"{owner}.{step} has a bad {parameter.name}: {error.message}", error.hint
        ) from error


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


def _plan_load(cls: type[Workflow], overrides: Overrides, is_test: bool) -> Load:
    settings = authoring.load_settings_of(cls)
    if is_test:
        return load_settings.load_of(load_settings.override(settings, overrides.load_flags()))
    load = load_settings.load_of({"vus": 1, "iterations": 1})
    if "max_duration" in settings and isinstance(load, SharedIterations):
        limit_s = parse_duration(settings["max_duration"], "max_duration")
        return msgspec.structs.replace(load, max_duration_s=limit_s)
    return load


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
    if overrides.base_url is not None:
        changes["base_url"] = overrides.base_url
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

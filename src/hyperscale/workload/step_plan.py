"""The plan of a step: its arguments prepared, its declaration checked, its place in the order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload import graph
from hyperscale.workload.arguments import OptimizedArgument
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.display import Display, display_of
from hyperscale.workload.hook_types import Hook
from hyperscale.workload.hooks import Choice, HookType, raw_of
from hyperscale.workload.results import CallResult
from hyperscale.workload.type_hints import allows_none, alternatives, is_subclass


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


def plan_step(owner: str, hook: Hook) -> StepPlan:
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


def plan_stages(
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

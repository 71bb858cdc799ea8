"""What kind of hook each decorated method is.

The kind comes from the decorator and the resolved return annotation together, when the plan is
made: a step that returns a response is a measured TEST, one that returns `Exception | None` a
CHECK, one that returns `Metric[...]` a METRIC. `@state` methods are PROVIDE or USE. Everything else
is an ACTION: it runs, and nothing is measured.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload import type_hints
from hyperscale.workload.custom_metrics import MetricKind, is_metric, kind_of
from hyperscale.workload.hooks import Choice, Declared, HookType, declared
from hyperscale.workload.results import CallResult


@dataclass(frozen=True, slots=True)
class Hook:
    """A decorated method with its kind."""

    name: str
    hook_type: HookType
    function: Callable[..., Any]  # the attribute of the class, taking the workflow as `self`
    names: tuple[str, ...]
    tags: Mapping[str, str]
    group: str
    choice: Choice
    returns: Any  # the resolved return annotation, or None
    hints: Mapping[str, Any]  # of the parameters, where they could be resolved
    metric_kind: MetricKind | None = None
    warning: str = ""


def classify(
    owner: str,
    name: str,
    attribute: Callable[..., Any],
    known: Mapping[str, Any],
    flows: bool = False,
) -> Hook:
    """The hook a decorated method of class `owner` is; `known` are annotations resolved earlier.

    Of a class with a flow every step is a TEST: calling it measures it, whatever it returns."""
    declaration = declared(attribute)
    assert declaration is not None
    written = inspect.unwrap(attribute)
    hints = {**type_hints.resolve(written, {}), **known}
    returns = hints.pop("return", None)
    hook_type = _hook_type(owner, name, declaration, returns, flows)
    return Hook(
        name=name,
        hook_type=hook_type,
        function=attribute,
        names=declaration.names,
        tags=declaration.tags,
        group=declaration.group,
        choice=declaration.choice,
        returns=returns,
        hints=hints,
        metric_kind=kind_of(returns) if hook_type is HookType.METRIC else None,
        warning=_silent_action(owner, name, declaration, hook_type, written, returns),
    )


def _hook_type(owner: str, name: str, declaration: Declared, returns: Any, flows: bool) -> HookType:
    kinds = type_hints.alternatives(returns)
    match declaration.decorator:
        case "state" if type_hints.provides(returns):
            return HookType.PROVIDE
        case "state" if type_hints.uses(returns):
            return HookType.USE
        case "state":
            raise BadInput(
                f"{owner}.{name} is decorated with @state but returns neither Provide nor Use",
                "annotate it '-> Provide[T]' to give a value or '-> Use[T]' to take one",
            )
        case "step" if any(type_hints.is_subclass(kind, CallResult) for kind in kinds):
            return HookType.TEST
        case "step" if kinds and all(type_hints.is_subclass(kind, Exception) for kind in kinds):
            return HookType.CHECK
        case "step" if any(is_metric(kind) for kind in kinds):
            return HookType.METRIC
        case "step" if flows:
            return HookType.TEST
        case "check":
            return HookType.CHECK
        case "metric":
            return HookType.METRIC
    return HookType.ACTION


def _silent_action(
    owner: str,
    name: str,
    declaration: Declared,
    hook_type: HookType,
    function: Callable[..., Any],
    returns: Any,
) -> str:
    """Why a `@step` alone does not make a load test, when the author may have meant that."""
    if declaration.decorator != "step" or hook_type is not HookType.ACTION:
        return ""
    written = function.__annotations__.get("return", inspect.Signature.empty)
    if written is inspect.Signature.empty:
        return (
            f"{owner}.{name} has no return annotation; "
            f"annotate it '-> HTTPResponse' (or another response) to make {owner} a load test"
        )
    if written is None or returns is type(None):
        return (
            f"{owner}.{name} returns nothing; return the response and annotate it to make "
            f"{owner} a load test, or use @action()"
        )
    text = type_hints.text_of(written)
    if returns is None:
        return (
            f"{owner}.{name} returns {text!r}, a name that cannot be resolved; "
            "import the response type where the test file can see it"
        )
    return (
        f"{owner}.{name} returns {text}, which is not a response; "
        f"return the response to make {owner} a load test, or use @action()"
    )

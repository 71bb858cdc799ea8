"""The decorators a test author writes on methods. A decorator only notes what was declared; what
kind of hook the method is comes with the plan (`hook_types`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeGuard, TypeVar, overload

from hyperscale.errors import BadInput
from hyperscale.workload.secrets import mask
from hyperscale.workload.type_hints import Provide, Use

__all__ = [
    "HookType",
    "Provide",
    "Use",
    "action",
    "bind_uses",
    "check",
    "declared",
    "depends",
    "metric",
    "state",
    "step",
]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
Decorator = Literal["step", "action", "check", "metric", "state"]

# Methods of a user in which requests may be made outside of steps, told under their own names.
USER_HOOKS = ("on_start", "flow", "on_stop")
_DECLARED = "__hyperscale_hook__"
DEPENDS = "__hyperscale_depends__"
_USED = "__hyperscale_used__"
_RAW = "__hyperscale_raw__"
USER = "_hyperscale_user"  # of an instance: the virtual user that runs it


class HookType(StrEnum):
    TEST = "test"
    CHECK = "check"
    METRIC = "metric"
    ACTION = "action"
    PROVIDE = "provide"
    USE = "use"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a decorator was told. `names` are steps, or workflows for `@state`."""

    decorator: Decorator
    names: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    choice: Choice = field(default_factory=lambda: Choice())


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether and how often an iteration runs a step, where no flow says so."""

    weight: float | None = None  # one of the weighted steps runs, this often in proportion
    times: int = 1
    when: Callable[[Any], bool] | None = None  # given the workflow instance
    chance: float | None = None  # 0..1

    @property
    def is_plain(self) -> bool:
        return self == Choice()


@overload
def step(function: F, /) -> F: ...
@overload
def step(
    *names: str,
    tags: Mapping[str, str] | None = None,
    group: str = "",
    weight: float | None = None,
    times: int = 1,
    when: Callable[[Any], bool] | None = None,
    chance: float | None = None,
) -> Callable[[F], F]: ...
def step(
    *names: Any,
    tags: Mapping[str, str] | None = None,
    group: str = "",
    weight: float | None = None,
    times: int = 1,
    when: Callable[[Any], bool] | None = None,
    chance: float | None = None,
) -> Any:
    """A step of the workflow; `names` are the steps that must end before it starts.

    Without a flow, `weight` makes it one of those an iteration picks from, `times` repeats it,
    and `when(self)` and `chance` decide whether it runs.
    """
    choice = _checked_choice(weight, times, when, chance)
    return _declare("step", names, tags, group, choice)


@overload
def action(function: F, /) -> F: ...
@overload
def action(
    *names: str, tags: Mapping[str, str] | None = None, group: str = ""
) -> Callable[[F], F]: ...
def action(*names: Any, tags: Mapping[str, str] | None = None, group: str = "") -> Any:
    """A step that is never measured: set-up, clean-up, preparation of data."""
    return _declare("action", names, tags, group)


@overload
def check(function: F, /) -> F: ...
@overload
def check(
    *names: str, tags: Mapping[str, str] | None = None, group: str = ""
) -> Callable[[F], F]: ...
def check(*names: Any, tags: Mapping[str, str] | None = None, group: str = "") -> Any:
    """A step that judges: it fails by returning or raising an exception, or returning False."""
    return _declare("check", names, tags, group)


@overload
def metric(function: F, /) -> F: ...
@overload
def metric(
    *names: str, tags: Mapping[str, str] | None = None, group: str = ""
) -> Callable[[F], F]: ...
def metric(*names: Any, tags: Mapping[str, str] | None = None, group: str = "") -> Any:
    """A step whose value is recorded; annotate it `-> Metric[COUNT]` or another kind."""
    return _declare("metric", names, tags, group)


def state(*workflows: str | type) -> Callable[[F], F]:
    """Exchange of values between workflows: both sides must name each other.

    A method returning `Provide[T]` gives its value, under its own name, to the workflows named;
    one returning `Use[T]` takes the values its arguments are named after from those workflows.
    """
    names = tuple(_workflow_name(workflow, "@state") for workflow in workflows)

    def decorate(function: F) -> F:
        method: F = _answering_with_used_value(function)
        setattr(method, _DECLARED, Declared("state", names))
        return method

    return decorate


def depends(*workflows: str | type) -> Callable[[C], C]:
    """Run the decorated workflow only after the named ones have ended."""
    names = tuple(_workflow_name(workflow, "@depends") for workflow in workflows)
    if not names:
        raise BadInput("@depends() names no workflow", "write @depends('OtherWorkflow')")

    def decorate(workflow: C) -> C:
        setattr(workflow, DEPENDS, names)
        return workflow

    return decorate


def bind_uses(workflow: type, values: Mapping[str, Any]) -> None:
    """From now on, in this process, calling a `Use` method without arguments gives its value.

    `values` is name of the `Use` method -> what it returned before the load.
    """
    setattr(workflow, _USED, dict(values))


def declared(attribute: object) -> Declared | None:
    found = getattr(attribute, _DECLARED, None)
    return found if isinstance(found, Declared) else None


def _declare(
    decorator: Decorator,
    names: tuple[Any, ...],
    tags: Mapping[str, str] | None,
    group: str,
    choice: Choice = Choice(),
) -> Any:
    if len(names) == 1 and inspect.isfunction(names[0]):
        return _declare(decorator, (), tags, group, choice)(names[0])
    for name in names:
        if not isinstance(name, str):
            raise BadInput(
                f"@{decorator} takes names of steps as strings, not {name!r}",
                f"write @{decorator}('login') for what runs after the step login",
            )
    declaration = Declared(decorator, tuple(names), _text_tags(decorator, tags), group, choice)

    def decorate(function: F) -> F:
        method: F = _measured_when_called(function)
        setattr(method, _DECLARED, declaration)
        return method

    return decorate


def _measured_when_called(function: Any) -> Any:
    """Called by a running user's code, a step measures itself; anywhere else it is a method."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        user = getattr(self, USER, None)
        if user is None:
            return function(self, *args, **kwargs)
        return user.call(function, args, kwargs)

    setattr(call, _RAW, (function, call))
    return call


def raw_of(attribute: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function as the author wrote it, and what to call to run it without measuring: the same,
    unless another decorator stands above ours."""
    function, ours = getattr(attribute, _RAW, (attribute, attribute))
    return function, function if ours is attribute else attribute


def _checked_choice(weight: object, times: object, when: object, chance: object) -> Choice:
    def refuse(what: str, value: object, must: str) -> BadInput:
        return BadInput(f"{what} of @step is {value!r} but must be {must}")

    if weight is not None and (not _is_number(weight) or not weight > 0):
        raise refuse("weight", weight, "a number above 0")
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise refuse("times", times, "a whole number from 1 up")
    if when is not None and not callable(when):
        raise refuse("when", when, "a function of the workflow, such as lambda self: ...")
    if chance is not None and (not _is_number(chance) or not 0 <= chance <= 1):
        raise refuse("chance", chance, "a number from 0 to 1")
    return Choice(weight, times, when, chance)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_tags(decorator: str, tags: Mapping[str, str] | None) -> dict[str, str]:
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        raise BadInput(f"tags of @{decorator} are {tags!r} but must be a dict of names and values")
    return {str(name): mask(str(value)) for name, value in tags.items()}


def _workflow_name(workflow: object, decorator: str) -> str:
    if isinstance(workflow, type):
        return workflow.__name__
    if isinstance(workflow, str) and workflow:
        return workflow
    raise BadInput(f"{decorator} takes names of workflows as strings, not {workflow!r}")


def _answering_with_used_value(function: Any) -> Any:
    """Called without arguments, a `Use` method answers with the value injected before the load."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def answer_later(self: Any, *args: Any, **kwargs: Any) -> Any:
            used = getattr(self, _USED, {})
            if not args and not kwargs and function.__name__ in used:
                return used[function.__name__]
            return await function(self, *args, **kwargs)

        return answer_later

    @functools.wraps(function)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        used = getattr(self, _USED, {})
        if not args and not kwargs and function.__name__ in used:
            return used[function.__name__]
        return function(self, *args, **kwargs)

    return answer

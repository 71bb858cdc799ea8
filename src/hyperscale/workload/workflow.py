"""`Workflow`: the class a test author subclasses. It is checked when the class is made.

Attributes say how much load, for how long and what counts as passing; decorated methods are the
steps. A mistake is one sentence that names the class, the step and the value, before any load.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hyperscale.errors import BadInput
from hyperscale.workload import load_settings, type_hints
from hyperscale.workload.data import Unread, unread
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.graph import find_cycle
from hyperscale.workload.hooks import DEPENDS, Declared, declared
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.priority import parse_priority
from hyperscale.workload.thresholds import parse_thresholds, refuse_unknown_scope

Duration = str | float


class BadStep(BadInput):
    """A step is at fault, not its class: `code` says where it is."""

    def __init__(self, message: str, hint: str, step: Callable[..., Any]) -> None:
        super().__init__(message, hint)
        self.code: types.CodeType = inspect.unwrap(step).__code__


class Workflow:
    """One kind of user: its steps, and how many such users do them for how long.

    A virtual user is one instance that repeats the steps until the load ends, with its own
    connections and cookies. `setup` and `teardown`, if defined, run once per run.
    """

    # How much load. Without rate, stages or iterations: `vus` users for `duration`.
    vus: int = load_settings.DEFAULT_VUS
    duration: Duration | None = load_settings.DEFAULT_DURATION
    rate: Duration | None = None  # iterations started per second: "500/s", "30000/m", 500
    max_vus: int | None = None  # most users a rate may use
    stages: Sequence[tuple[Duration, Duration]] | None = None  # [("30s", 100), ...]: VUs, or rate
    iterations: int | None = None  # in all
    iterations_per_vu: int | None = None
    max_duration: Duration | None = None  # limit of a run by iterations; 10m unless set
    rps: Duration | None = None  # most requests per second of all users together
    # In a mix: what of -u and --rate is this workflow's, or users that stay out of it.
    weight: float | None = None
    fixed_vus: int | None = None

    # How each user behaves.
    think_time: Duration | tuple[Duration, Duration] | None = None  # pause between iterations
    pacing: Duration | None = None  # least time between the starts of two iterations of a user
    timeout: Duration | None = None  # of one call; 30s unless set
    host: str | None = None  # put before URLs that start with "/"
    http: HTTPOptions = HTTPOptions()
    data: Any = None  # "users.csv", a list, a generator function, or feed(...)

    # When it runs and what it reports.
    start_time: Duration | None = None  # wait before the load begins
    warmup: Duration | None = None  # run before the clock starts, not counted
    graceful_stop: Duration | None = None  # for iterations under way at the end; 30s unless set
    priority: str = "auto"  # low, normal, high, exclusive or auto: share of the cores
    thresholds: str | Iterable[str] | Mapping[str, str | Sequence[str]] = ()
    tags: Mapping[str, str] = {}

    # Set by the engine on each virtual user's instance.
    client: Any
    context: dict[str, Any]
    row: Any
    vu_id: int
    iteration: int

    __hyperscale_hints__: ClassVar[dict[str, dict[str, Any]]] = {}
    __hyperscale_file__: ClassVar[str] = ""  # travels with the class; its module may not

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Names local to the function that defines the class are only known now.
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        cls.__hyperscale_file__ = str(Path(file).resolve()) if file else cls.__hyperscale_file__
        made_in = sys._getframe(1).f_locals if "<locals>" in cls.__qualname__ else {}
        cls.__hyperscale_hints__ = {
            **cls.__hyperscale_hints__,
            **{
                name: type_hints.resolve(inspect.unwrap(method), made_in)
                for name, method in vars(cls).items()
                if declared(method)
            },
        }
        _check_steps(cls)
        _check_settings(cls)


# Attributes with a default are settings; the others are set by the engine on each instance.
SETTINGS = frozenset(
    name for name in Workflow.__annotations__ if name in vars(Workflow) and name[0] != "_"
)
# Methods with a meaning of their own that a workflow may define.
METHODS = ("setup", "teardown", "shape")


def methods_of(workflow: type[Workflow]) -> dict[str, Callable[..., Any]]:
    """The decorated methods in definition order, those of base classes first."""
    names: dict[str, None] = {}
    for base in reversed(workflow.__mro__):
        names |= dict.fromkeys(name for name, value in vars(base).items() if declared(value))
    methods = {name: getattr(workflow, name) for name in names}
    return {name: method for name, method in methods.items() if declared(method)}


def graph_of(workflow: type[Workflow]) -> dict[str, tuple[str, ...]]:
    """The steps and what each waits for."""
    return {
        name: declaration.names
        for name, method in methods_of(workflow).items()
        if (declaration := _declared(method)).decorator != "state"
    }


def load_settings_of(workflow: type[Workflow]) -> dict[str, Any]:
    """The load attributes that the author set; None undoes an inherited one."""
    found = {
        name: value
        for name in load_settings.NAMES
        if (value := getattr(workflow, name)) is not None and _is_set(workflow, name)
    }
    shape = getattr(workflow, "shape", None)
    return found if shape is None else {**found, "shape": shape}


def weight_of(workflow: type[Workflow]) -> float | None:
    weight = workflow.weight
    if weight is None:
        return None
    number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not number or not 0 < weight < math.inf:
        raise BadInput(f"weight is {weight!r} but must be a number above 0")
    return weight


def with_settings_of(instance: Workflow) -> type[Workflow]:
    """The class of an instance, with the settings that were changed on the instance."""
    cls = type(instance)
    changed = {name: value for name, value in vars(instance).items() if name in SETTINGS}
    if not changed:
        return cls
    names = ("__module__", "__qualname__", "__doc__", DEPENDS)
    own = {name: vars(cls)[name] for name in names if name in vars(cls)}
    made: type[Workflow] = types.new_class(
        cls.__name__, (cls,), exec_body=lambda body: body.update({**own, **changed})
    )
    return made


def feed_of(workflow: type[Workflow]) -> Unread | None:
    return unread(workflow.data)


def directory_of(workflow: type[Workflow]) -> Path | None:
    """Where the test file is, when the workflow comes from one."""
    return Path(workflow.__hyperscale_file__).parent if workflow.__hyperscale_file__ else None


def tags_of(workflow: type[Workflow]) -> dict[str, str]:
    if not isinstance(workflow.tags, Mapping):
        raise BadInput(f"tags is {workflow.tags!r} but must be a dict of names and values")
    return {str(name): str(value) for name, value in workflow.tags.items()}


def http_of(workflow: type[Workflow]) -> HTTPOptions:
    if not isinstance(workflow.http, HTTPOptions):
        raise BadInput(
            f"http is {workflow.http!r} but must be HTTPOptions",
            "write http = HTTPOptions(verify=False)",
        )
    return workflow.http


def host_of(workflow: type[Workflow]) -> str | None:
    host = workflow.host
    if host is not None and not str(host).startswith(("http://", "https://")):
        raise BadInput(f"host must start with http:// or https://, not {host!r}")
    return host


def _is_set(workflow: type[Workflow], name: str) -> bool:
    return any(name in vars(base) for base in workflow.__mro__ if base not in (Workflow, object))


def _declared(method: object) -> Declared:
    found = declared(method)
    assert found is not None
    return found


def _check_steps(workflow: type[Workflow]) -> None:
    owner = workflow.__name__
    graph = graph_of(workflow)
    methods = methods_of(workflow)
    for name, method in methods.items():
        if name in vars(Workflow) or name in Workflow.__annotations__ or name in METHODS:
            raise BadStep(
                f"{owner}.{name} cannot be a step: every workflow has an attribute {name!r}",
                "give the method another name",
                method,
            )
        decorator = _declared(method).decorator
        if decorator != "state" and not inspect.iscoroutinefunction(inspect.unwrap(method)):
            raise BadStep(
                f"{owner}.{name} is a @{decorator} but not async",
                f"write 'async def {name}(self, ...)' so that other users can go on meanwhile",
                method,
            )
    for name, dependencies in graph.items():
        for dependency in dependencies:
            if dependency not in graph:
                message, hint = _unknown_step(owner, name, dependency, graph)
                raise BadStep(message, hint, methods[name])
    cycle = find_cycle(graph)
    if cycle:
        raise BadStep(
            f"steps of {owner} wait for each other: {' → '.join(cycle)}",
            "remove one of these dependencies",
            methods[cycle[0]],
        )


def _unknown_step(owner: str, name: str, dependency: str, graph: Iterable[str]) -> tuple[str, str]:
    close = difflib.get_close_matches(dependency, [known for known in graph if known != name], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "a step can only wait for steps of its class"
    return f"{owner}.{name} waits for {dependency!r}, but {owner} has no step of that name", hint


def _check_settings(workflow: type[Workflow]) -> None:
    try:
        load_settings.load_of(load_settings_of(workflow))
        parse_priority(workflow.priority)
        for threshold in parse_thresholds(workflow.thresholds):
            refuse_unknown_scope(threshold, workflow.__name__, graph_of(workflow))
        tags_of(workflow)
        http_of(workflow)
        host_of(workflow)
        weight_of(workflow)
        if workflow.timeout is not None:
            parse_duration(workflow.timeout, "timeout")
        for name in METHODS:
            if not callable(getattr(workflow, name, None) or _check_settings):
                raise BadInput(f"{name} must be a method")
    except BadInput as error:
        raise BadInput(f"{workflow.__name__}: {error.message}", error.hint) from None

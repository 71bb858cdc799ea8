"""`Workflow`: the class a test author subclasses. It is checked when the class is made.

Attributes say how much load, for how long and what counts as passing; decorated methods are the
steps. A mistake is one sentence that names the class, the step and the value, before any load.
"""

from __future__ import annotations

import difflib
import inspect
import math
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from hyperscale.errors import BadInput
from hyperscale.workload import load_settings, type_hints
from hyperscale.workload.browser_options import BrowserOptions
from hyperscale.workload.code_words import words_of
from hyperscale.workload.custom_metrics import MetricKind, Metrics
from hyperscale.workload.data import Unread, unread
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.graph import find_cycle
from hyperscale.workload.hooks import DEPENDS, USER, USER_HOOKS, Declared, declared
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.priority import parse_priority
from hyperscale.workload.secrets import mask
from hyperscale.workload.signals import IterationStopped, StepSkipped, TestStopped, UserStopped
from hyperscale.workload.threshold_scopes import Names, refuse_unknown_scope
from hyperscale.workload.thresholds import parse_thresholds

Duration = str | float
SEED = "_hyperscale_seed"  # of an instance: where its dice begin
_DICE = "_hyperscale_dice"


class BadStep(BadInput):
    """A step is at fault, not its class: `code` says where it is."""

    def __init__(self, message: str, hint: str, step: Callable[..., Any]) -> None:
        super().__init__(message, hint)
        self.code: types.CodeType = inspect.unwrap(step).__code__


class Workflow:
    """One kind of user: its steps, and how many such users do them for how long.

    A virtual user is one instance that repeats the steps until the load ends, with its own
    connections and cookies. `async def flow(self)`, if defined, is one iteration: it calls the
    steps it wants. `on_start` and `on_stop` run once per user, `setup` and `teardown` once per run.
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
    # Values handed on may be anything that can be pickled; reading a pickle runs code.
    pickle_values: bool = False
    browser: Any = None  # BrowserOptions(...): the Chromium of self.client.browser
    protocols: Mapping[str, Any] = {}  # clients of your own: {"oracle": OraclePool}

    # When it runs and what it reports.
    start_time: Duration | None = None  # wait before the load begins
    warmup: Duration | None = None  # run before the clock starts, not counted
    graceful_stop: Duration | None = None  # for iterations under way at the end; 30s unless set
    priority: str = "auto"  # low, normal, high, exclusive or auto: share of the cores
    thresholds: str | Iterable[str] | Mapping[str, str | Sequence[str]] = ()
    tags: Mapping[str, str] = {}
    # Through gates: where the whole test runs. ["eu", "us"]: in each; {"eu": 60, "us": 40}: shared.
    datacenters: Sequence[str] | Mapping[str, int] | None = None
    reporting: Any = None  # where results go in the end: a CustomReporter, or several

    # Set by the engine on each virtual user's instance.
    client: Any
    context: dict[str, Any]
    row: Any
    vu_id: int
    iteration: int

    __hyperscale_hints__: ClassVar[dict[str, dict[str, Any]]] = {}
    __hyperscale_file__: ClassVar[str] = ""  # travels with the class; its module may not

    @property
    def random(self) -> random.Random:
        """This user's dice: with --seed the same for each user in every run."""
        dice: random.Random | None = getattr(self, _DICE, None)
        if dice is None:
            dice = random.Random(getattr(self, SEED, None))
            setattr(self, _DICE, dice)
        return dice

    @property
    def metrics(self) -> Metrics:
        """Numbers of your own: `self.metrics.trend("ttfb").add(x, tags={"page": "home"})`."""
        user = getattr(self, USER, None)
        return Metrics(None if user is None else user.measure)

    def skip(self, reason: str = "skipped by the test") -> NoReturn:
        """End this step; it does not count as run."""
        raise StepSkipped(str(reason))

    def stop_iteration(self) -> NoReturn:
        """End this iteration; the user goes on with the next."""
        raise IterationStopped

    def stop_user(self) -> NoReturn:
        """End this virtual user; nobody takes its place."""
        raise UserStopped

    def stop_test(self, reason: str, failed: bool = False) -> NoReturn:
        """End the whole run, everywhere. What ran is judged, and with `failed` it failed."""
        raise TestStopped(str(reason), bool(failed))

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
METHODS = ("setup", "teardown", "shape", *USER_HOOKS)


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
    changed = {name: value for name, value in vars(instance).items() if name in SETTINGS}
    return with_settings(type(instance), changed) if changed else type(instance)


def with_settings(cls: type[Workflow], changed: Mapping[str, Any]) -> type[Workflow]:
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
    return {str(name): mask(str(value)) for name, value in workflow.tags.items()}


def names_of(
    workflow: type[Workflow],
    steps: Iterable[str],
    checks: Iterable[str],
    metrics: Mapping[str, MetricKind],
    tags: Mapping[str, str],
) -> Names:
    """What its thresholds may refer to; `tags` are those of all its requests."""
    declarations = {name: _declared(method) for name, method in methods_of(workflow).items()}
    values = {key: [value] for key, value in tags.items()}
    for declaration in declarations.values():
        for key, value in declaration.tags.items():
            values.setdefault(key, []).append(value)
    return Names(
        workflow.__name__,
        tuple(steps),
        tuple(checks),
        dict(metrics),
        others=(*declarations, *(name for name in USER_HOOKS if hasattr(workflow, name))),
        groups={name: each.group for name, each in declarations.items() if each.group},
        tags={key: tuple(dict.fromkeys(found)) for key, found in values.items()},
        code=words_of(_written(workflow)),
        protocols=tuple(pool.kind for pool in protocols_of(workflow).values()),
    )


def protocols_of(workflow: type[Workflow]) -> dict[str, Any]:
    """The pools of its own clients, by the name that `self.client` has for each."""
    given = workflow.protocols
    if not isinstance(given, Mapping):
        raise BadInput(
            f"protocols is {given!r} but must be a dict of names and pools",
            'write protocols = {"oracle": OraclePool}',
        )
    for name, pool in given.items():
        if not str(name).isidentifier() or not isinstance(getattr(pool, "kind", None), str):
            raise BadInput(
                f"protocols has {name!r}: {pool!r}, but must have names and subclasses of "
                "hyperscale.plugin.ProtocolPool that say their `kind`"
            )
    return dict(given)


def browser_of(workflow: type[Workflow]) -> BrowserOptions | None:
    given = workflow.browser
    if given is None or callable(given):  # a step may have that name
        return None
    if not isinstance(given, BrowserOptions):
        raise BadInput(
            f"browser is {given!r} but must be BrowserOptions",
            'write browser = BrowserOptions(screenshots="shots")',
        )
    return given


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


def _written(workflow: type[Workflow]) -> Iterator[object]:
    """Methods and constants of the author's; settings are no constants that code would use."""
    for base in workflow.__mro__:
        if base not in (Workflow, object):
            for name, value in vars(base).items():
                if callable(value) or not (name in vars(Workflow) or name.startswith("__")):
                    yield value


def _declared(method: object) -> Declared:
    found = declared(method)
    assert found is not None
    return found


def _check_steps(workflow: type[Workflow]) -> None:
    owner = workflow.__name__
    graph = graph_of(workflow)
    methods = methods_of(workflow)
    for name, method in methods.items():
        if name in METHODS:
            raise BadStep(
                f"{owner}.{name} cannot be a step: it has a meaning of its own",
                "leave the decorator off; it is called when it is time",
                method,
            )
        if name in vars(Workflow) or name in Workflow.__annotations__:
            raise BadStep(
                f"{owner}.{name} cannot be a step: every workflow has an attribute {name!r}",
                "give the method another name",
                method,
            )
        declaration = _declared(method)
        decorator = declaration.decorator
        if decorator in ("step", "action") and not _is_async(method):
            raise BadStep(
                f"{owner}.{name} is a @{decorator} but {_instead_of_async(method)}",
                f"write 'async def {name}(self, ...)' so that other users can go on meanwhile",
                method,
            )
        if has_flow(workflow) and decorator in ("step", "action"):
            _refuse_order(owner, name, declaration)
        elif declaration.choice.weight is not None and declaration.names:
            raise BadInput(
                f"{owner}.{name} has a weight and waits for {declaration.names[0]}",
                "an iteration picks one of the weighted steps; what comes before all of them is a "
                "step without weight, or on_start",
            )
    for name in USER_HOOKS:
        if name in dir(workflow) and not _is_async(getattr(workflow, name)):
            instead = _instead_of_async(getattr(workflow, name))
            raise BadInput(f"{owner}.{name} is {instead}", f"write 'async def {name}(self)'")
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


def has_flow(workflow: type[Workflow]) -> bool:
    return hasattr(workflow, "flow")


def _is_async(method: Any) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(method))


def _instead_of_async(method: Any) -> str:
    generates = inspect.isasyncgenfunction(inspect.unwrap(method))
    return "a generator: it yields" if generates else "not async"


def _refuse_order(owner: str, name: str, declaration: Declared) -> None:
    if declaration.names:
        raise BadInput(
            f"{owner} has a flow, so {name} cannot wait for {declaration.names[0]!r}",
            f"write @{declaration.decorator}() and call it in flow: await self.{name}()",
        )
    if not declaration.choice.is_plain:
        raise BadInput(
            f"{owner} has a flow, so {name} cannot say itself when it runs",
            "leave weight, times, when and chance out and write it in flow with if and for",
        )


def _check_thresholds(workflow: type[Workflow]) -> None:
    tags = tags_of(workflow)
    thresholds = parse_thresholds(workflow.thresholds)
    if thresholds:
        methods = graph_of(workflow)
        names = names_of(workflow, methods, methods, {}, tags)
        for threshold in thresholds:
            refuse_unknown_scope(threshold, names)


def _unknown_step(owner: str, name: str, dependency: str, graph: Iterable[str]) -> tuple[str, str]:
    close = difflib.get_close_matches(dependency, [known for known in graph if known != name], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "a step can only wait for steps of its class"
    return f"{owner}.{name} waits for {dependency!r}, but {owner} has no step of that name", hint


def _check_settings(workflow: type[Workflow]) -> None:
    try:
        load_settings.load_of(load_settings_of(workflow))
        parse_priority(workflow.priority)
        _check_thresholds(workflow)
        http_of(workflow)
        host_of(workflow)
        weight_of(workflow)
        protocols_of(workflow)
        browser_of(workflow)
        if workflow.timeout is not None:
            parse_duration(workflow.timeout, "timeout")
        for name in METHODS:
            if not callable(getattr(workflow, name, None) or _check_settings):
                raise BadInput(f"{name} must be a method")
    except BadInput as error:
        raise BadInput(f"{workflow.__name__}: {error.message}", error.hint) from None

"""Jobs for a simulated cluster: facts made by hand, in the shapes that tests have.

What a workflow does wrong is its tag `mishap`, see `sim.stage`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from hyperscale.nodes.protocol.jobs import Body
from hyperscale.workload.facts import StepFacts, WorkflowFacts
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import ArrivalRate, ClosedVUs, Load, SharedIterations
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import Threshold, parse_threshold

GRACE_S: Final = 1.0
# Virtual requests take 10 to 30 ms (`sim.stage`), so it is known who keeps which promise.
KEPT: Final = "p(95)<500"
BROKEN: Final = "p(95)<5"
ABORTING: Final = "p(95)<5 abort"
# Planned for a job that a threshold must end: far beyond what any fault can make of it.
ENDLESS_S: Final = 150.0
NEVER_END_TIMEOUT_S: Final = 30.0
_STEP = StepFacts(name="get", hook_type=HookType.TEST)


def _closed(dice: Random) -> Load:
    """Short, or long enough that a worker's death is noticed and its part goes on elsewhere."""
    longest_s = dice.choice((6.0, 6.0, 30.0))
    seconds = round(dice.uniform(longest_s / 3, longest_s), 1)
    return ClosedVUs(vus=dice.randint(1, 8), duration_s=seconds, graceful_stop_s=GRACE_S)


def _iterations(dice: Random) -> Load:
    return SharedIterations(
        vus=dice.randint(1, 6),
        iterations=dice.randint(10, 120),
        max_duration_s=60.0,
        graceful_stop_s=GRACE_S,
    )


def _arrivals(dice: Random) -> Load:
    return ArrivalRate(
        rate=float(dice.randint(4, 20)),
        duration_s=round(dice.uniform(1.0, 5.0), 1),
        max_vus=dice.randint(2, 8),
        graceful_stop_s=GRACE_S,
    )


def load_test(name: str, load: Load, *, mishap: str = "", **more: Any) -> WorkflowFacts:
    return WorkflowFacts(
        name=name,
        is_test=True,
        priority=more.pop("priority", "auto"),
        load=load,
        steps=(_STEP,),
        tags={"mishap": mishap} if mishap else {},
        **more,
    )


def errand(name: str, *, mishap: str = "", **more: Any) -> WorkflowFacts:
    """A workflow that is no test."""
    return WorkflowFacts(
        name=name,
        is_test=False,
        priority="auto",
        load=ClosedVUs(vus=1, duration_s=1.0, graceful_stop_s=GRACE_S),
        tags={"mishap": mishap} if mishap else {},
        **more,
    )


def _one(dice: Random) -> list[WorkflowFacts]:
    return [load_test("Load", _closed(dice))]


def _by_iterations(dice: Random) -> list[WorkflowFacts]:
    return [load_test("Load", _iterations(dice))]


def _layers(dice: Random) -> list[WorkflowFacts]:
    """Something to begin with, a test that uses it, and one after that."""
    handed_on = {"token": ("Second", "Third")}
    first = errand("First", provides=handed_on)
    if dice.random() < 0.4:
        first = load_test("First", _closed(dice), provides=handed_on)
    return [
        first,
        load_test("Second", _closed(dice), depends=("First",), provides={"more": ("Third",)}),
        load_test("Third", _arrivals(dice), depends=("Second",)),
    ]


def _wide(dice: Random) -> list[WorkflowFacts]:
    priorities = ("auto", "low", "normal", "high")
    tests = [
        load_test(f"Load{number}", _closed(dice), priority=dice.choice(priorities))
        for number in range(1, dice.randint(2, 3) + 1)
    ]
    return [*tests, errand("Beside")]


def _set_up(dice: Random) -> list[WorkflowFacts]:
    mishap = dice.choice(("", "", "teardown fails"))
    return [load_test("Load", _closed(dice), sets_up=True, tears_down=True, mishap=mishap)]


def _exclusive(dice: Random) -> list[WorkflowFacts]:
    alone = load_test("Load", _closed(dice), priority="exclusive")
    return [alone, load_test("Beside", _closed(dice))] if dice.random() < 0.5 else [alone]


def _failing(dice: Random) -> list[WorkflowFacts]:
    """One fails, what depends on it is not run, what does not is."""
    mishap = dice.choice(("raises in prepare", "raises in run", "dies"))
    return [
        load_test("Fails", _closed(dice), mishap=mishap, tears_down=dice.random() < 0.3),
        load_test("Beside", _closed(dice)),
        load_test("After", _closed(dice), depends=("Fails",)),
    ]


def _promises(*expressions: str) -> tuple[Threshold, ...]:
    names = Names("Load", steps=(_STEP.name,))
    return tuple(bind(parse_threshold(text), names) for text in expressions)


def _judged(dice: Random) -> list[WorkflowFacts]:
    chosen = dice.choice(((KEPT,), (BROKEN,), (KEPT, BROKEN)))
    return [load_test("Load", _closed(dice), thresholds=_promises(*chosen))]


def _aborted(dice: Random) -> list[WorkflowFacts]:
    load = ClosedVUs(vus=dice.randint(1, 8), duration_s=ENDLESS_S, graceful_stop_s=GRACE_S)
    return [load_test("Load", load, thresholds=_promises(KEPT, ABORTING))]


def _never_ending(dice: Random) -> list[WorkflowFacts]:
    return [load_test("Endless", _closed(dice), mishap="never ends")]


def _long(dice: Random) -> list[WorkflowFacts]:
    seconds = round(dice.uniform(40.0, 90.0), 1)
    load = ClosedVUs(vus=dice.randint(1, 3), duration_s=seconds, graceful_stop_s=GRACE_S)
    return [load_test("Long", load)]


SHAPES: Final[dict[str, Callable[[Random], list[WorkflowFacts]]]] = {
    "one": _one,
    "iterations": _by_iterations,
    "layers": _layers,
    "wide": _wide,
    "set up": _set_up,
    "exclusive": _exclusive,
    "failing": _failing,
    "never ending": _never_ending,
    "judged": _judged,
    "aborted": _aborted,
    "long": _long,
}
_OFTEN: Final = (5, 4, 5, 3, 4, 2, 2, 1, 2, 3, 0)  # a long one only where it is asked for


def draw_shape(dice: Random) -> str:
    return dice.choices(list(SHAPES), _OFTEN)[0]


def body_of(shape: str, dice: Random) -> Body:
    return Body(
        workflows=tuple(SHAPES[shape](dice)),
        source=b"",
        overrides=b"",
        name=shape,
        timeout_s=NEVER_END_TIMEOUT_S if shape == "never ending" else None,
    )

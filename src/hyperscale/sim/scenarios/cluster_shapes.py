"""Jobs for a simulated cluster: facts made by hand, in the shapes that tests have.

What a workflow does wrong is its tag `mishap`, see `sim.part_runner`.
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
VUS_MAX: Final = 8
# Virtual requests take 10 to 30 ms (`sim.part_runner`), so it is known who keeps which promise.
KEPT: Final = "p(95)<500"
BROKEN: Final = "p(95)<5"
ABORTING: Final = "p(95)<5 abort"
# Planned for a job that a threshold must end: far beyond what any fault can make of it.
ENDLESS_S: Final = 150.0
NEVER_END_TIMEOUT_S: Final = 30.0
# What counts as stuck in simulated clusters; phases last longer, hanging loads much longer.
STUCK_S: Final = 20.0
STALLED_S: Final = 5.0
HANGING_S: Final = 150.0
# A load that is over in time, if nobody holds against it that there was no leader.
TIGHT_S: Final = 8.0
TIGHT_TIMEOUT_S: Final = 16.0
HANGS: Final = "Hangs"
TIGHT: Final = "Tight"
# A test that has all cores, for so long that the load of a lost worker is missed after the faults.
FULL_S: Final = 100.0
FULL_VUS: Final = 64
# Two such cores of load are more than a process can bear.
HOT_PERCENT: Final = 60
_STEP = StepFacts(name="get", hook_type=HookType.TEST)


def _closed(dice: Random) -> Load:
    """Short, or long enough that a worker's death is noticed and its part goes on elsewhere."""
    longest_s = dice.choice((6.0, 6.0, 30.0))
    seconds = round(dice.uniform(longest_s / 3, longest_s), 1)
    return ClosedVUs(vus=dice.randint(1, VUS_MAX), duration_s=seconds, graceful_stop_s=GRACE_S)


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


def load_test(
    name: str, load: Load, *, mishap: str = "", cpu_percent: int = 0, **more: Any
) -> WorkflowFacts:
    tags = {"mishap": mishap} if mishap else {}
    return WorkflowFacts(
        name=name,
        is_test=True,
        priority=more.pop("priority", "auto"),
        load=load,
        steps=(_STEP,),
        tags=tags | ({"cpu": str(cpu_percent)} if cpu_percent else {}),
        **more,
    )


def without_load(name: str, *, mishap: str = "", **more: Any) -> WorkflowFacts:
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
    """In one of eight a generator process dies, again and again."""
    load = _closed(dice)
    return [load_test("Load", load, mishap="dies" if load.peak_vus == VUS_MAX else "")]


def _by_iterations(dice: Random) -> list[WorkflowFacts]:
    return [load_test("Load", _iterations(dice))]


def _layers(dice: Random) -> list[WorkflowFacts]:
    """Something to begin with, a test that uses it, and one after that."""
    handed_on = {"token": ("Second", "Third")}
    first = without_load("First", provides=handed_on)
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
    return [*tests, without_load("Beside")]


def _set_up(dice: Random) -> list[WorkflowFacts]:
    mishap = dice.choice(("", "", "teardown fails"))
    return [load_test("Load", _closed(dice), sets_up=True, tears_down=True, mishap=mishap)]


def _exclusive(dice: Random) -> list[WorkflowFacts]:
    alone = load_test("Load", _closed(dice), priority="exclusive")
    return [alone, load_test("Beside", _closed(dice))] if dice.random() < 0.5 else [alone]


def _failing(dice: Random) -> list[WorkflowFacts]:
    """One fails, what depends on it is not run, what does not is."""
    mishap = dice.choice(("raises in prepare", "raises in run", "dies", "dies"))
    load, luck = _closed(dice), dice.random()
    fails = load_test("Fails", load, mishap=mishap, tears_down=luck < 0.3)
    if mishap == "dies" and luck > 0.6:
        fails = without_load("Fails", mishap=mishap)
    return [
        fails,
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


def _hanging(dice: Random) -> list[WorkflowFacts]:
    """All users wait for what never comes; perhaps beside others that do not."""
    load = ClosedVUs(vus=dice.randint(1, 4), duration_s=HANGING_S, graceful_stop_s=GRACE_S)
    hangs = load_test(HANGS, load, mishap="hangs")
    return [hangs, load_test("Moves", _closed(dice))] if dice.random() < 0.3 else [hangs]


def _late(dice: Random) -> list[WorkflowFacts]:
    """Nothing to see for longer than a load may stand still: it waits, or warms up."""
    start_s, warmup_s = dice.choice(((28.0, 0.0), (0.0, 28.0), (24.0, 6.0)))
    load = ClosedVUs(
        vus=dice.randint(1, 4),
        duration_s=round(dice.uniform(2.0, 5.0), 1),
        start_time_s=start_s,
        warmup_s=warmup_s,
        graceful_stop_s=GRACE_S,
    )
    return [load_test("Late", load)]


def _tight(dice: Random) -> list[WorkflowFacts]:
    load = ClosedVUs(vus=dice.randint(1, 4), duration_s=TIGHT_S, graceful_stop_s=GRACE_S)
    return [load_test(TIGHT, load)]


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
# Drawn beside the others: what is said of time.
TIMED: Final[dict[str, Callable[[Random], list[WorkflowFacts]]]] = {
    "hanging": _hanging,
    "late": _late,
    "tight": _tight,
}
_TIMEOUTS: Final = {"never ending": NEVER_END_TIMEOUT_S, "tight": TIGHT_TIMEOUT_S}
_OFTEN: Final = (5, 4, 5, 3, 4, 2, 2, 1, 2, 3, 0)  # a long one only where it is asked for


def draw_shape(dice: Random) -> str:
    return dice.choices(list(SHAPES), _OFTEN)[0]


def full_body(dice: Random) -> Body:
    """No core is free while it runs."""
    load = ClosedVUs(vus=FULL_VUS, duration_s=FULL_S, graceful_stop_s=GRACE_S)
    hot = HOT_PERCENT if dice.random() < 0.3 else 0
    return Body(
        workflows=(load_test("Load", load, cpu_percent=hot),),
        source=b"",
        overrides=b"",
        name="full",
        lost_load=dice.choice(("squeeze", "squeeze", "squeeze", "squeeze", "move", "drop")),
    )


def body_of(shape: str, dice: Random) -> Body:
    return Body(
        workflows=tuple((SHAPES | TIMED)[shape](dice)),
        source=b"",
        overrides=b"",
        name=shape,
        timeout_s=_TIMEOUTS.get(shape),
    )

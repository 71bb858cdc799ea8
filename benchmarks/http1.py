"""Every figure the project promises for one machine and HTTP/1.1, as one table.

    python benchmarks/http1.py                      all of it, about a quarter of an hour
    python benchmarks/http1.py --only get,flow      some rows
    python benchmarks/http1.py --rounds 2 --seconds 2 --minutes 0
    python benchmarks/http1.py --only before,tasks,six --before CHECKOUT

A difference of a few hundredths between two runs of ours is judged by requests per second of CPU
time, of all processes of the tool; everything else by requests per second.
Progress goes to stderr, Markdown to stdout. Exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import accuracy
import memory
import startup
from contenders import (
    HYPERSCALE,
    IN_TERMINAL,
    K6,
    LOCUST,
    WITH_VIEW,
    WRK,
    Contender,
    Load,
    before,
    measured_rate,
    per_cpu_second,
)
from harness import (
    Figure,
    NotMeasured,
    failed,
    interleave,
    machine,
    note,
    raise_open_file_limit,
    table,
)
from targets import Target, find_target

VUS = 64
SIX_VUS = 60  # ten each, or all in one workflow
MANY_VUS = 5_000
# Connecting 5,000 users takes a while on one core; the window opens when all of them are there.
MANY_SLACK_S = 10.0


@dataclass(frozen=True)
class Part:
    """Some rows of the table and the rounds behind them."""

    figures: list[Figure]
    detail: str = ""


def race(
    target: Target,
    turns: Sequence[tuple[str, Contender, Load]],
    rounds: int,
    measure: Callable[[Contender, Load, Target], float] = measured_rate,
) -> tuple[Callable[..., Figure], str]:
    taken = interleave(
        [
            (label, functools.partial(measure, contender, load, target))
            for label, contender, load in turns
        ],
        rounds,
    )
    unit = "requests/s" if measure is measured_rate else "requests per CPU second"
    return taken.figure, taken.report(unit)


def get(target: Target, options: argparse.Namespace) -> Part:
    load = Load("get", VUS, options.seconds)
    turns = [(tool.name, tool, load) for tool in (HYPERSCALE, WRK, K6, LOCUST)]
    figure, detail = race(target, turns, options.rounds)
    what = f"GET, {VUS} VUs, one core"
    return Part(
        [
            figure(what, "hyperscale", "wrk", 0.5, " (aim 0.7)"),
            figure(what, "hyperscale", "k6", 5),
            figure(what, "hyperscale", "Locust", 12),
        ],
        detail,
    )


def flow(target: Target, options: argparse.Namespace) -> Part:
    load = Load("flow", VUS, options.seconds)
    turns = [(tool.name, tool, load) for tool in (HYPERSCALE, K6, LOCUST)]
    figure, detail = race(target, turns, options.rounds)
    what = "two steps, JSON parsed, header from context"
    return Part(
        [figure(what, "hyperscale", "k6", 5), figure(what, "hyperscale", "Locust", 12)],
        detail,
    )


def view(target: Target, options: argparse.Namespace) -> Part:
    load = Load("get", VUS, options.seconds)
    turns = [("view full", WITH_VIEW, load), ("view none", IN_TERMINAL, load)]
    figure, detail = race(target, turns, options.rounds)
    return Part([figure("the live view", "view full", "view none", 0.97)], detail)


def growth(target: Target, options: argparse.Namespace) -> Part:
    many = Load("get", MANY_VUS, options.seconds, MANY_SLACK_S)
    turns = [
        (f"{MANY_VUS} VUs", HYPERSCALE, many),
        (f"{VUS} VUs", HYPERSCALE, Load("get", VUS, options.seconds)),
    ]
    figure, detail = race(target, turns, options.rounds)
    return Part([figure("cost as work grows", turns[0][0], turns[1][0], 0.6)], detail)


def against_before(target: Target, options: argparse.Namespace) -> Part:
    one = "one-request step, per CPU second"
    if not options.before:
        reason = "not measured: --before names no checkout of earlier code"
        return Part([Figure(one, "≥ 0.98 × before; through flow ≥ 0.95", reason, None)])
    get, flow = Load("get", VUS, options.seconds), Load("get_flow", VUS, options.seconds)
    turns = [
        ("before", before(options.before), get),
        ("graph", HYPERSCALE, get),
        ("flow", HYPERSCALE, flow),
    ]
    figure, detail = race(target, turns, options.rounds, per_cpu_second)
    return Part(
        [
            figure(one, "graph", "before", 0.98),
            figure("the same through flow", "flow", "before", 0.95),
        ],
        detail,
    )


def tasks(target: Target, options: argparse.Namespace) -> Part:
    ten, weighted = Load("ten", VUS, options.seconds), Load("weighted", VUS, options.seconds)
    turns = [
        (f"{tool.name}, {load.flow}", tool, load)
        for load in (ten, weighted)
        for tool in (HYPERSCALE, LOCUST)
    ]
    figure, detail = race(target, turns, options.rounds, per_cpu_second)
    return Part(
        [
            figure("ten calls in one step, per CPU second", turns[0][0], turns[1][0], 12),
            figure("weighted tasks, per CPU second", turns[2][0], turns[3][0], 12),
        ],
        detail,
    )


def six(target: Target, options: argparse.Namespace) -> Part:
    turns = [
        ("six workflows", HYPERSCALE, Load("six", SIX_VUS, options.seconds)),
        ("one workflow", HYPERSCALE, Load("get", SIX_VUS, options.seconds)),
    ]
    figure, detail = race(target, turns, options.rounds, per_cpu_second)
    what = f"six workflows at once, {SIX_VUS} VUs, one core, per CPU second"
    return Part([figure(what, "six workflows", "one workflow", 0.95)], detail)


def footprint(target: Target, options: argparse.Namespace) -> Part:
    return Part(memory.per_vu(target, MANY_VUS))


def soak(target: Target, options: argparse.Namespace) -> Part:
    return Part([memory.over_time(target, options.minutes)])


def enter(target: Target, options: argparse.Namespace) -> Part:
    return Part([startup.first_request(options.rounds * 2), startup.imports(options.rounds * 2)])


def truth(target: Target, options: argparse.Namespace) -> Part:
    return Part(accuracy.figures())


PARTS: dict[str, tuple[str, Callable[[Target, argparse.Namespace], Part]]] = {
    "get": ("GET against its peers", get),
    "flow": ("A two-step flow against its peers", flow),
    "view": ("The price of the live view", view),
    "growth": ("From 64 to 5,000 virtual users", growth),
    "before": ("One request an iteration, against the code before", against_before),
    "tasks": ("Ten calls in a step and weighted tasks against Locust", tasks),
    "six": ("Six workflows on one core", six),
    "memory": ("Memory of a virtual user", footprint),
    "soak": ("Memory over time", soak),
    "startup": ("From enter to the first request", enter),
    "accuracy": ("Accuracy", truth),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each window")
    parser.add_argument("--minutes", type=float, default=6.0, help="of the memory run; 0 skips it")
    parser.add_argument("--before", metavar="CHECKOUT", help="of earlier code, to compare with")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"unknown part {', '.join(unknown)}: choose from {', '.join(PARTS)}")
    raise_open_file_limit()

    figures: list[Figure] = []
    details: list[str] = []
    environment = machine()
    with find_target() as target:
        for name in chosen:
            if name == "soak" and not options.minutes:
                continue
            title, measure = PARTS[name]
            note(title)
            try:
                part = measure(target, options)
            except NotMeasured as error:
                part = Part([failed(title, "", error)])
            figures += part.figures
            if part.detail:
                details.append(f"### {title}\n\n{part.detail}\n")

    print(f"{environment}; the target is {target.name}.")
    print(f"Medians of {options.rounds} interleaved rounds of {options.seconds:g} s (range).\n")
    print(table(figures))
    print("\n" + "\n".join(details))
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())

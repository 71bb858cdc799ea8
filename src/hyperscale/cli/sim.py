"""`hyperscale sim`: cluster histories in virtual time, many seeds at a time.

A seed that fails is printed with the command that replays it; with `--trace` that command tells
the whole history, message by message.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.sim.scenario import Scenario

SEEDS_DEFAULT = "1..100"


def sim(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="what to simulate; none lists them")
    ] = "",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="A..B", help="which histories (1..100)")
    ] = SEEDS_DEFAULT,
    jobs: Annotated[
        str, typer.Option("-j", "--jobs", metavar="N", help="processes (one for each core)")
    ] = "",
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="N", help="hosts (the scenario knows)")
    ] = "",
    planted_bug: Annotated[
        str, typer.Option("--bug", metavar="NAME", help="plant a bug the checkers must catch")
    ] = "",
    trace: Annotated[
        bool, typer.Option("--trace", help="print the timeline; takes a single seed")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
    debug: flags.Debug = False,
) -> int:
    """Run simulated clusters through faults, by seed."""
    from hyperscale.sim.scenarios import find, scenarios

    if not scenario:
        streams.say(_listing(scenarios()))
        return int(ExitCode.PASSED)
    chosen = find(scenario)
    if planted_bug and planted_bug not in chosen.planted_bugs:
        known = ", ".join(chosen.planted_bugs) or "none"
        raise BadInput(f"{scenario} has no planted bug {planted_bug!r}", f"there are: {known}")
    numbers = _seeds(seeds)
    count = _number("--nodes", nodes, 0)
    processes = _number("--jobs", jobs, os.cpu_count() or 1)
    if trace:
        return _tell(chosen, numbers, count, planted_bug)
    return _sweep(chosen, numbers, count, planted_bug, processes, json)


def _tell(scenario: type[Scenario], seeds: range, nodes: int, planted_bug: str) -> int:
    from hyperscale.sim.runner import run

    if len(seeds) != 1:
        raise BadInput(
            f"--trace tells one history, not {len(seeds):,}", f"name one: --seeds {seeds[0]}"
        )
    report = run(scenario(nodes, planted_bug), seeds[0], streams.say)
    faults = ", ".join(report.faults) or "none"
    outcome = "passed" if report.ok else "FAILED"
    streams.say(f"\nseed {report.seed} {outcome}; faults: {faults}; trace {report.trace_hash}")
    for failure in report.failures:
        streams.say(f"  {failure}")
    return int(ExitCode.PASSED if report.ok else ExitCode.FAILED)


def _sweep(
    scenario: type[Scenario], seeds: range, nodes: int, planted_bug: str, jobs: int, json: bool
) -> int:
    from hyperscale.sim.runner import sweep
    from hyperscale.sim.summary import Summary

    summary = Summary(scenario, nodes, planted_bug)
    began = time.perf_counter()
    for report in sweep(scenario, seeds, jobs, nodes, planted_bug):
        summary.add(report)
        if not report.ok:
            streams.note(f"seed {report.seed} failed: {report.failures[0]}")
    summary.elapsed_s = time.perf_counter() - began
    if json:
        import msgspec

        streams.say(msgspec.json.format(msgspec.json.encode(summary.as_data())).decode())
    else:
        streams.say("\n".join(summary.lines()))
    return int(ExitCode.FAILED if summary.failed else ExitCode.PASSED)


def _listing(found: dict[str, type[Scenario]]) -> str:
    rows = [f"  {name:<14}{scenario.summary}" for name, scenario in found.items()]
    return "\n".join(["Scenarios:", *rows, "", "Example: hyperscale sim echo --seeds 1..500"])


def _seeds(text: str) -> range:
    """`7` or `1..500`, both ends included."""
    first, dots, last = text.strip().partition("..")
    last = last if dots else first
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise BadInput(f"--seeds takes one seed such as 7 or a range such as 1..500, not {text!r}")
    return range(int(first), int(last) + 1)


def _number(option: str, text: str, default: int) -> int:
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"{option} takes a whole number from 1 on, not {text!r}")
    return int(text)

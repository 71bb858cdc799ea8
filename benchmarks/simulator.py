"""Speed of the simulator with the real membership on a quiet network.

    python benchmarks/simulator.py [--rounds N]      (Markdown on stdout)

Virtual seconds per second of this process's CPU, so that other work on the machine counts little.
The nodes know each other from the start and nothing happens to them: what is left is the protocol
at rest, which is most of every history. Exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from harness import Figure, machine, note, table
from membership import Measured

from hyperscale.cluster.membership import Change, MembershipConfig
from hyperscale.sim import World, run

REQUIRED = {5: 500.0, 100: 20.0}
# Enough that a round takes about a second, and the start of the nodes does not count.
VIRTUAL_S = {5: 600.0, 100: 60.0}


class AtRest(Measured):
    liveness_s = 1.0

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes, MembershipConfig())
        self.safety_s = VIRTUAL_S[nodes] + 10.0
        self.times_real = 0.0

    async def during(self, world: World) -> None:
        await self.all_acquainted(world)
        began, began_at = time.process_time(), world.now
        await world.sleep(VIRTUAL_S[self.nodes])
        self.times_real = (world.now - began_at) / (time.process_time() - began)


def times_real(nodes: int, seed: int) -> float:
    scenario = AtRest(nodes)
    report = run(scenario, seed)
    assert report.ok, report.failures
    loud = [event for _, _, event in scenario.told if event.change is not Change.DISCOVERED]
    assert all(event.change is Change.JOINED for event in loud), "it was not quiet"
    return scenario.times_real


def figure(nodes: int, reached: Sequence[float]) -> Figure:
    middle, required = statistics.median(reached), REQUIRED[nodes]
    measured = f"{middle:.0f} × ({min(reached):.0f}–{max(reached):.0f})"
    what = f"quiet cluster of {nodes}, real membership"
    return Figure(what, f"≥ {required:g} × real time", measured, middle >= required)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{machine()}\n")
    reached: dict[int, list[float]] = {nodes: [] for nodes in REQUIRED}
    for number in range(1, options.rounds + 1):
        for nodes, series in reached.items():
            series.append(times_real(nodes, number))
            note(f" round {number} of {options.rounds}, {nodes} nodes: {series[-1]:.0f} x")
    figures = [figure(nodes, series) for nodes, series in reached.items()]
    print(table(figures))
    return int(any(one.ok is False for one in figures))


if __name__ == "__main__":
    sys.exit(main())

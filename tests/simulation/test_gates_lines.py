"""Lines between gates and datacenters that are cut, one way or both, TCP or UDP or all: nobody is
given up for what is wrong with the line of a gate."""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.gates import GatesScenario
from hyperscale.sim.scenarios.gates_bugs import LINE_BUGS

SEEDS = range(1, 7)
BUG_SEEDS = range(1, 13)
PATHS = {"cut: uplink", "cut: datacenter", "cut: all", "cut: streams", "given up", "places apart"}


class LinesAlone(GatesScenario):
    lines_alone_share = 1.0


def test_only_who_is_cut_off_from_the_gates_is_given_up() -> None:
    met: set[str] = set()
    for seed in SEEDS:
        report = run(LinesAlone(), seed)
        assert report.ok, (seed, report.failures)
        met |= report.coverage.keys()
    assert met >= PATHS


@pytest.mark.parametrize("planted_bug", LINE_BUGS)
def test_planted_bugs_show_within_a_few_cuts(planted_bug: str) -> None:
    assert prove(LinesAlone, planted_bug, BUG_SEEDS) is not None

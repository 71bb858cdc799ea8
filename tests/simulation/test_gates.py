"""Gates and three datacenters in the simulator: crashes, cuts, pauses, broken disks.

`make soak` runs thousands of seeds; here some, every planted bug, and one history twice.
"""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.gates import GatesScenario
from hyperscale.sim.scenarios.gates_bugs import LINE_BUGS
from hyperscale.sim.summary import Summary

# The fourth failed once: a gate that had just taken over said that a job was unknown.
SEEDS = range(1, 13)
BUG_SEEDS = 12
BUG_FIRST = {"told-is-forgotten": 11}  # a datacenter is lost that had told much
PATHS = (
    "exact numbers",
    "submitted twice",
    "cancel done",
    "ended cancelled",
    "ended completed",
    "withdrawn",
)


def test_no_seed_fails_and_every_path_is_met() -> None:
    summary = Summary(GatesScenario)
    met: set[str] = set()
    for seed in SEEDS:
        report = run(GatesScenario(), seed)
        summary.add(report)
        met |= report.coverage.keys()
    assert summary.failed == []
    assert [path for path in PATHS if path not in met] == []


@pytest.mark.parametrize(
    "planted_bug", sorted(GatesScenario.planted_bugs.keys() - LINE_BUGS.keys())
)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    first = BUG_FIRST.get(planted_bug, 1)
    assert prove(GatesScenario, planted_bug, range(first, first + BUG_SEEDS)) is not None


def test_one_seed_is_one_history() -> None:
    assert run(GatesScenario(), 3).trace_hash == run(GatesScenario(), 3).trace_hash

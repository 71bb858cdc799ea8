"""Membership in the simulator: a fixed budget of seeds, and every checker proven."""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.membership import MembershipScenario

SEEDS = range(1, 21)
# Where a planted bug is known to show; a little room for changes of timing.
BUG_FROM = {"never-refutes": 8, "never-reconnects": 7, "hoards-news": 9}
BUG_SEEDS = 30


def test_seeds_hold_and_faults_are_hit() -> None:
    coverage: dict[str, int] = {}
    for seed in SEEDS:
        report = run(MembershipScenario(), seed)
        assert report.ok, f"seed {seed}: {report.failures}"
        for fault, hits in report.coverage.items():
            coverage[fault] = coverage.get(fault, 0) + hits
    wanted = ("loss", "duplicate", "partition", "isolate", "one-way", "clog", "pause", "crash-torn")
    assert all(coverage.get(fault) for fault in wanted), coverage


@pytest.mark.parametrize("nodes", [2, 3, 12])
def test_other_sizes(nodes: int) -> None:
    for seed in range(1, 6):
        report = run(MembershipScenario(nodes), seed)
        assert report.ok, f"seed {seed}: {report.failures}"


def test_a_hundred_nodes() -> None:
    """Seed 8: a node that had never heard the victim missed the news of its death."""
    report = run(MembershipScenario(100), 8)
    assert report.ok, report.failures
    assert report.figures["largest_datagram"] <= 1_200


@pytest.mark.parametrize("planted_bug", sorted(MembershipScenario.planted_bugs))
def test_each_checker_catches_its_planted_bug(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    assert prove(MembershipScenario, planted_bug, range(first, first + BUG_SEEDS)) is not None


def test_the_same_seed_tells_the_same_story() -> None:
    one, two = (run(MembershipScenario(), 7) for _ in range(2))
    assert one.trace_hash == two.trace_hash

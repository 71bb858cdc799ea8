"""A flooded node in the simulator, and the planted bugs its checkers must see."""

from __future__ import annotations

from collections import Counter

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.flood import Flood


def test_a_flooded_node_stays_calm() -> None:
    coverage: Counter[str] = Counter()
    for seed in range(1, 9):
        report = run(Flood(), seed)
        assert report.ok, f"seed {seed}: {report.failures}"
        coverage.update(report.coverage)
    assert min(coverage[f"shed-{kind}"] for kind in ("low", "normal", "high")) > 0
    assert coverage["shed-critical"] == 0


def test_same_seed_same_trace() -> None:
    assert run(Flood(), 3).trace_hash == run(Flood(), 3).trace_hash


@pytest.mark.parametrize("planted_bug", sorted(Flood.planted_bugs))
def test_every_checker_sees_its_planted_bug(planted_bug: str) -> None:
    assert prove(Flood, planted_bug, range(1, 6)) is not None

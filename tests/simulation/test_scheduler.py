"""The scheduler in the simulator: crashes, pauses, wrong clocks, a store that is late or silent.

`make soak` runs thousands of seeds; here some, every planted bug, and one history twice.
"""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.scheduler import SchedulerScenario
from hyperscale.sim.summary import Summary

# With 21 a drained worker that had been taken for dead took jobs when it was heard again.
SEEDS = (*range(1, 16), 21)
BUG_SEEDS = 40
PATHS = (
    "attempt LOST",
    "attempt RELEASED",
    "ended CANCELLED",
    "ended COMPLETED",
    "late at the store, or from it",
    "lost answer of the store",
    "ticks",
)


def test_no_seed_fails_and_every_path_is_met() -> None:
    summary = Summary(SchedulerScenario)
    met: set[str] = set()
    for seed in SEEDS:
        report = run(SchedulerScenario(), seed)
        summary.add(report)
        met |= report.coverage.keys()
    assert summary.failed == []
    assert [path for path in PATHS if path not in met] == []


@pytest.mark.parametrize("planted_bug", SchedulerScenario.planted_bugs)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    assert prove(SchedulerScenario, planted_bug, range(1, 1 + BUG_SEEDS)) is not None


def test_one_seed_is_one_history() -> None:
    assert run(SchedulerScenario(), 3).trace_hash == run(SchedulerScenario(), 3).trace_hash

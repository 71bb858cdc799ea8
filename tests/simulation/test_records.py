"""Job records in the simulator: crashes, torn disks, partitions, leaders that do not know.

`make soak` runs thousands of seeds; here some, every planted bug, and one history twice.
"""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.records import RecordsScenario
from hyperscale.sim.summary import Summary

SEEDS = range(1, 13)
# Where a planted bug is known to show; a little room for changes of timing.
BUG_FROM = {"no-conflict-check": 8, "apply-uncommitted": 3, "obey-the-old": 23}
BUG_SEEDS = 40
PATHS = ("Append", "Recover", "Fetch", "FetchState", "Install")


def test_no_seed_fails_and_every_fault_and_path_is_met() -> None:
    summary = Summary(RecordsScenario)
    met: set[str] = set()
    for seed in SEEDS:
        report = run(RecordsScenario(), seed)
        summary.add(report)
        met |= report.coverage.keys()
    assert summary.failed == []
    assert summary.never_hit() == []
    assert [path for path in PATHS if f"records {path}" not in met] == []


@pytest.mark.parametrize("planted_bug", RecordsScenario.planted_bugs)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    assert prove(RecordsScenario, planted_bug, range(first, first + BUG_SEEDS)) is not None


def test_one_seed_is_one_history() -> None:
    assert run(RecordsScenario(), 3).trace_hash == run(RecordsScenario(), 3).trace_hash

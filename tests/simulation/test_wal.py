"""Logs in the simulator: under crashes and broken disks, watched by checkers from outside.

`make soak` runs thousands of seeds; here some, every planted bug, and the seeds that once found
something.
"""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.wal import Wal
from hyperscale.sim.summary import Summary

SEEDS = range(1, 16)
# Where a planted bug is known to show; a little room for changes of timing.
BUG_FROM = {"sync-again": 7, "silent-repair": 22, "lose-waiters": 9, "compact-too-far": 3}
BUG_SEEDS = 50


def test_no_seed_fails_and_every_fault_is_met() -> None:
    summary = Summary(Wal, nodes=2)
    for seed in SEEDS:
        summary.add(run(Wal(), seed))
    assert summary.failed == []
    assert summary.never_hit() == []


@pytest.mark.parametrize("planted_bug", Wal.planted_bugs)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    assert prove(Wal, planted_bug, range(first, first + BUG_SEEDS)) is not None


@pytest.mark.parametrize(
    ("seed", "story"),
    [
        (306, "a segment got its name, the sync of the directory failed, the next start went on"),
        (243, "a start cut a torn tail and died before it could tell; the next one did not know"),
    ],
)
def test_what_once_went_wrong(seed: int, story: str) -> None:
    report = run(Wal(), seed)
    assert report.ok, f"{story}: {report.failures}"


def test_one_seed_is_one_history() -> None:
    assert run(Wal(), 5).trace_hash == run(Wal(), 5).trace_hash

"""Workers that lose what is between them and others, one transport, one direction, one peer or all
of it, in the simulator: their load ends in time, and goes on elsewhere."""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.cluster import ClusterScenario

SEEDS = range(1, 9)
BUG_SEEDS = range(1, 7)


class OnlyCuts(ClusterScenario):
    cuts_alone_share = 1.0


def test_parts_of_workers_that_are_cut_off_move_in_time() -> None:
    met: set[str] = set()
    for seed in SEEDS:
        report = run(OnlyCuts(), seed)
        assert report.ok, (seed, report.failures)
        met |= report.coverage.keys()
    assert met >= {"cut of streams from leader", "cut of streams from managers", "part taken over"}
    assert met >= {"cut of calls from managers", "cut of datagrams from everybody"}


@pytest.mark.parametrize(
    "planted_bug", ["no-fence", "fence-by-probes", "wait-for-probes", "outlive"]
)
def test_planted_bugs_show_within_a_few_cuts(planted_bug: str) -> None:
    assert prove(OnlyCuts, planted_bug, BUG_SEEDS) is not None


@pytest.mark.parametrize(
    ("seed", "promise"),
    [
        (15, "a part has ended by the word of its worker, whose end never arrives"),
        (18, "a worker that is heard and hears nothing is not under command"),
    ],
)
def test_what_once_broke_holds(seed: int, promise: str) -> None:
    report = run(OnlyCuts(), seed)
    assert report.ok, (promise, report.failures)

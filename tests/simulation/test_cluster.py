"""The whole cluster in the simulator: real managers, workers and clients, virtual load.

`make soak` runs thousands of seeds; here some, every planted bug, one history twice, and the seeds
that once found something.
"""

from __future__ import annotations

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.cluster import ClusterScenario

SEEDS = range(1, 13)
# Where a planted bug is known to show; a little room for changes of timing.
CANARY_FROM = {"show-anything": 92}
CANARY_SEEDS = 15
RECORDS = ("Submitted", "Dispatched", "Started", "PartEnded", "PartLost", "Steered", "Finished")


def test_no_seed_fails_and_every_sort_of_record_is_met() -> None:
    met: set[str] = set()
    for seed in SEEDS:
        report = run(ClusterScenario(), seed)
        assert report.ok, (seed, report.failures)
        met |= report.coverage.keys()
    assert [kind for kind in RECORDS if f"record {kind}" not in met] == []
    assert {"leader killed", "part taken over", "submitted twice", "looked away"} <= met


@pytest.mark.parametrize("canary", ClusterScenario.canaries)
def test_every_planted_bug_is_caught(canary: str) -> None:
    first = CANARY_FROM.get(canary, 1)
    assert prove(ClusterScenario, canary, range(first, first + CANARY_SEEDS)) is not None


def test_one_seed_is_one_history() -> None:
    assert run(ClusterScenario(), 3).trace_hash == run(ClusterScenario(), 3).trace_hash


def test_a_manager_whose_disk_fails_while_it_takes_over_gives_up_in_order() -> None:
    report = run(ClusterScenario(), 38)
    assert report.ok, report.failures


def test_a_command_that_was_accepted_outlives_the_manager_that_took_it() -> None:
    report = run(ClusterScenario(), 50)
    assert report.ok, report.failures

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
BUG_FROM = {
    "no-fence": 10,
    "fence-by-probes": 10,
    "decide-alone": 4,
    "say-cancelled": 6,
    "count-twice": 6,
    "show-anything": 43,
    "leave-none-alone": 57,
    "leave-at-once": 2,
    "forget-never": 6,
    "abort-nothing": 6,
    "pause-nothing": 7,
    "limits-at-once": 18,
    "call-it-complete": 20,
    "leave-lost-load": 8,
    "squeeze-anybody": 9,
}
BUG_SEEDS = 25
RECORDS = ("Submitted", "Dispatched", "Started", "PartEnded", "PartLost", "Steered", "Finished")


def test_no_seed_fails_and_every_sort_of_record_is_met() -> None:
    met: set[str] = set()
    for seed in SEEDS:
        report = run(ClusterScenario(), seed)
        assert report.ok, (seed, report.failures)
        met |= report.coverage.keys()
    assert [kind for kind in RECORDS if f"record {kind}" not in met] == []
    assert met >= {"leader killed", "part taken over", "submitted twice", "looked away"}
    assert met >= {"leader left", "worker left at work", "job aborted", "job forgotten"}


@pytest.mark.parametrize("planted_bug", ClusterScenario.planted_bugs)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    assert prove(ClusterScenario, planted_bug, range(first, first + BUG_SEEDS)) is not None


def test_one_seed_is_one_history() -> None:
    assert run(ClusterScenario(), 3).trace_hash == run(ClusterScenario(), 3).trace_hash


@pytest.mark.parametrize(
    ("seed", "promise"),
    [
        (66, "a new leader asks a worker what it took along into a later incarnation"),
        (890, "a job that is asked for again when it was forgotten is waited for"),
        (18, "a client that died while it asked again asks no more"),
        (6780, "who hears that a job is unknown knows which of two it had asked for"),
        (98, "a threshold that ended a job is its end, whoever leads by then"),
        (155, "no iteration is made twice, though nobody alive has heard of it"),
        (224, "no iteration is made twice, though its worker is started again"),
        (1027, "no iteration is made twice, though only the leader before had heard of it"),
        (1225, "a manager that is still starting says so, whatever it is asked"),
        (715, "no iteration is made twice, though its leader knows only how long others ran"),
        (2012, "no iteration is made twice, though its worker was lost before it told of any"),
        (3263, "no iteration is made twice, though pieces of its part have unequal shares"),
    ],
)
def test_what_once_broke_holds(seed: int, promise: str) -> None:
    report = run(ClusterScenario(), seed)
    assert report.ok, (promise, report.failures)

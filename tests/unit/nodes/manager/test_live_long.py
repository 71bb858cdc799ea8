"""A job of more than a day: who comes late sees all of it, the newest finest."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.results import WorkflowResult
from hyperscale.metrics.tiers import POINTS_MAX
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.protocol.jobs import Snapshot
from tests.unit.nodes.manager.cases import FACTS, JOB, delta, hear, placement, progress

HOUR_S = 3_600
STEP_S = 120


def seen_by_a_newcomer(live: Live) -> WorkflowResult:
    snapshot = live.since(JOB, "Shop", None)
    assert isinstance(snapshot, Snapshot)
    whole = aggregate_of(FACTS)
    whole.absorb(snapshot.state)
    return whole.freeze()


@pytest.mark.parametrize("parts", [2, 12])
def test_the_whole_run_is_seen_however_long_it_was(parts: int) -> None:
    live = Live()
    for number in range(parts):
        live.follow(FACTS, placement(number), fresh=True, parts=parts)
    seq = 0
    for at_s in range(STEP_S, 26 * HOUR_S + 1, STEP_S):
        seq += 1
        for number in (0, 1):
            hear(live, progress(placement(number), float(at_s), delta(seq, 10, 1)))
        live.turn()
    seen = seen_by_a_newcomer(live)
    assert seen.requests == sum(point.requests for point in seen.series) == 20 * seq
    assert len(seen.series) <= POINTS_MAX
    assert seen.elapsed_s == 26 * HOUR_S
    assert all(a.at_s + a.width_s == pytest.approx(b.at_s) for a, b in pairwise(seen.series))
    assert seen.series[0].width_s == HOUR_S
    assert {point.width_s for point in seen.series if 3 * HOUR_S < point.at_s < 24 * HOUR_S} == {
        60.0
    }
    assert seen.series[-3].width_s == 1.0

    # One of them is lost: what is put together from the parts is as long, and coarser at the most.
    lost_s, _, left = live.close(placement(0).part, placement(0).fence)
    live.keep(FACTS, placement(0).part, left)
    again = seen_by_a_newcomer(live)
    assert lost_s == 26 * HOUR_S
    assert again.requests == sum(point.requests for point in again.series) == 20 * seq
    assert max(point.width_s for point in again.series) <= HOUR_S

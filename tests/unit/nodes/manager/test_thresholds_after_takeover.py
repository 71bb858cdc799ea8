"""A new leader judges no workflow before it has been told all of it."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.packed import pack
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.workload.thresholds import parse_threshold
from tests.unit.nodes.manager.cases import FACTS, delta
from tests.unit.nodes.manager.lone_manager import LoneManager, play

ENOUGH = msgspec.structs.replace(
    parse_threshold("http_reqs: rate>50 abort after 5s"), metric="http_reqs"
)
SHOP = msgspec.structs.replace(FACTS, thresholds=(ENOUGH,))


@pytest.mark.parametrize("snapshot_after_s", [0.1, 2.0])
def test_load_that_was_told_to_the_leader_before_is_not_missed(snapshot_after_s: float) -> None:
    async def story(lone: LoneManager) -> None:
        manager, clock = lone.manager, lone.manager.host.clock
        order = await lone.running(SHOP)
        job = manager.jobs.job("j1")
        assert job is not None
        whole, began, seq = aggregate_of(SHOP), clock.now(), 0

        async def load(seconds: float) -> None:
            """100 requests a second, twice what is wanted."""
            nonlocal seq
            for _ in range(round(seconds * 10)):
                await clock.sleep(0.1)
                seq += 1
                new = delta(seq, 10)
                whole.apply(0, new, clock.now() - began)
                tell(deltas=(pack(new),), settled_seq=seq - 1)

        def tell(**numbers: object) -> None:
            facts = {"part": order.part, "fence": order.fence, "state": "running"}
            lone.report(Progress(elapsed_s=clock.now() - began, **facts, **numbers))  # type: ignore[arg-type]

        await load(20.0)
        manager.thresholds.clear()
        manager._take_over(manager.leadership.term)
        lone.register()
        await load(snapshot_after_s)
        tell(snapshot=whole.export(), snapshot_seq=seq, settled_seq=seq)
        await load(5.0)
        assert (job.ending, job.reason) == ("", "")

    play(story)

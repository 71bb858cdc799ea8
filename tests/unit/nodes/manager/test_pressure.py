"""The more numbers come in, the less often workers are asked to send them (A-46)."""

from __future__ import annotations

import pytest

from hyperscale.cluster.overload import LoadLevel
from hyperscale.nodes.manager.worker_api import DELAYS_MS, PRESSURE_S
from hyperscale.wire.errors import Refused
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def test_the_level_follows_what_comes_in_and_is_told_with_every_answer() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        most = manager.settings.progress_per_s_max
        lone.register()
        assert lone.report(free=2).level == 0
        told = []
        for share in (0.69, 0.71, 0.86, 0.96, 5.0, 0.0):
            await manager.host.clock.sleep(PRESSURE_S)
            manager.worker_api.deltas += int(share * most * PRESSURE_S)
            answer = lone.report(free=2)
            assert answer.delay_ms == DELAYS_MS[answer.level]
            told.append(answer.level)
        assert told == [0, 1, 2, 3, 3, 0]

    play(story)


@pytest.mark.parametrize(("lag_s", "load"), [(0.0, LoadLevel.HEALTHY), (0.13, LoadLevel.BUSY)])
def test_a_loop_that_runs_late_asks_for_less_before_it_refuses(
    lag_s: float, load: LoadLevel
) -> None:
    async def story(lone: LoneManager) -> None:
        detector = lone.manager.node.admission.detector
        now = lone.manager.now()
        lone.register()
        for _ in range(10):
            detector.record(now, 0.001)
        for _ in range(20):
            detector.record(now, lag_s)
        detector.assess(now)
        assert detector.load is load
        answer = lone.report(free=2)
        assert (answer.level, answer.delay_ms) == ((2, 200) if load else (0, 0))
        for _ in range(20):
            detector.record(now, 0.3)
        detector.assess(now)
        with pytest.raises(Refused):
            lone.report(free=2)

    play(story)

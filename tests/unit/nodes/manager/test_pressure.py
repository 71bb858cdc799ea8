"""The more numbers come in, the less often workers are asked to send them (A-46)."""

from __future__ import annotations

from hyperscale.nodes.manager.foreman import DELAYS_MS, PRESSURE_S
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
            manager.foreman.deltas += int(share * most * PRESSURE_S)
            answer = lone.report(free=2)
            assert answer.delay_ms == DELAYS_MS[answer.level]
            told.append(answer.level)
        assert told == [0, 1, 2, 3, 3, 0]

    play(story)

"""Workers that tell nonsense: it costs them their part, never the manager."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator

import pytest

from hyperscale.nodes.protocol.parts import PartEnd
from tests.unit.nodes.manager.cases import delta, progress, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


@pytest.fixture(autouse=True)
def _no_endless_loop() -> Iterator[None]:
    """A loop that never yields would hold up the whole suite."""

    def over(_signal: int, _frame: object) -> None:
        raise TimeoutError("the manager's event loop was held up")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, 20.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def test_a_part_runs_to_its_end() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, 1.0, delta(1, 10)))
        assert await lone.tell(
            PartEnd(
                part=order.part,
                fence=order.fence,
                worker="w1",
                outcome="completed",
                measured_s=60.0,
                iterations=10,
                state=state(10),
            )
        )
        await lone.until(lambda: lone.manager.jobs.job("j1").is_over)

    play(story)


@pytest.mark.parametrize("numbers", [b"garbage", state(10)[:-3]])
def test_an_end_whose_numbers_cannot_be_read_harms_nobody_else(numbers: bytes) -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        await lone.tell(
            PartEnd(
                part=order.part,
                fence=order.fence,
                worker="w1",
                outcome="completed",
                measured_s=60.0,
                iterations=10,
                state=numbers,
            )
        )
        await lone.until(lambda: lone.manager.jobs.job("j1").is_over)
        assert (await lone.submit(job_id="j2")).accepted

    play(story)


@pytest.mark.parametrize("elapsed_s", [math.inf, math.nan, -5.0, 1e300])
def test_a_load_time_that_cannot_be_is_not_believed(elapsed_s: float) -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, elapsed_s, delta(1, 10)))
        lone.report(progress(order, 2.0, delta(2, 10)))
        assert lone.manager.live.elapsed_s("j1", "Shop") <= 10.0
        assert lone.manager.jobs.load_s(lone.manager.now(), "j1", "Shop") <= 10.0

    play(story)

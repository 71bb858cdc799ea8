"""A manager under stress refuses reports: what it refused to hear is not work that is missing."""

from __future__ import annotations

import msgspec

from hyperscale.cluster.overload import LoadLevel
from hyperscale.metrics.packed import pack
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.wire.errors import Refused
from hyperscale.workload.load import ClosedVUs
from tests.unit.nodes.manager.cases import FACTS, delta
from tests.unit.nodes.manager.lone_manager import LoneManager, play

LONG = msgspec.structs.replace(FACTS, load=ClosedVUs(vus=10, duration_s=900.0))


class Telling:
    def __init__(self, lone: LoneManager, order: object) -> None:
        self.lone = lone
        self.order = order
        self.refused = 0
        self._seq = 0

    async def for_s(self, seconds: int, *, idle: bool = False) -> None:
        """Once a second, as a worker does that has something to tell."""
        clock = self.lone.manager.host.clock
        for second in range(1, seconds + 1):
            await clock.sleep(1.0)
            self._seq += 1
            told = Progress(
                part=self.order.part,  # type: ignore[attr-defined]
                fence=self.order.fence,  # type: ignore[attr-defined]
                state="running",
                elapsed_s=clock.now(),
                deltas=(pack(delta(self._seq, 10)),),
                moved=0 if idle else self._seq,
                idle_s=float(second) if idle else 0.0,
            )
            try:
                self.lone.report(told)
            except Refused:
                self.refused += 1
                self._seq -= 1


def stress(lone: LoneManager, load: LoadLevel) -> None:
    detector = lone.manager.node.admission.detector
    detector.assess = lambda *_: None  # type: ignore[method-assign]
    detector._load = load


def test_a_stressed_manager_times_nobody_out() -> None:
    async def story(lone: LoneManager) -> None:
        telling = Telling(lone, await lone.running(LONG))
        await telling.for_s(5)
        stress(lone, LoadLevel.STRESSED)
        await telling.for_s(300)
        assert telling.refused == 300
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert (job.status, job.ending) == ("running", "")

    play(story)


def test_numbers_without_movement_are_no_progress() -> None:
    async def story(lone: LoneManager) -> None:
        telling = Telling(lone, await lone.running(LONG))
        await telling.for_s(125, idle=True)
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert job.ending == "timeout"
        assert job.reason.startswith("stuck: no progress for 12")

    play(story)

"""A worker that says it is not well is asked last, and never drained (B-31)."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.jobs.inputs import CpuUse
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.packed import PackedDelta, pack
from hyperscale.nodes.member.queries import Vitals
from hyperscale.nodes.protocol.parts import DispatchPart, Progress, WorkerPulse, WorkerState
from tests.unit.nodes.manager.cases import FACTS
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def pulse(state: WorkerState) -> bytes:
    return msgspec.msgpack.encode(WorkerPulse(state=state, total_cores=2, free_cores=2, version=1))


def test_what_a_worker_says_of_its_condition_reaches_the_core() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        lone.register()
        views = []
        for state in ("healthy", "degraded", "healthy"):
            manager.node.vitals["w1"] = Vitals(0, 1, "m1", pulse(state))  # type: ignore[arg-type]
            await manager.host.clock.sleep(1.0)
            assert lone.report(free=2).known
            (view,) = manager.worker_api.views()
            views.append((view.state, view.routing))
        assert views == [("healthy", "route"), ("degraded", "route"), ("healthy", "route")]

    play(story)


@pytest.mark.parametrize("told", [b"", b"no pulse"])
def test_a_worker_that_says_nothing_is_well(told: bytes) -> None:
    async def story(lone: LoneManager) -> None:
        lone.register()
        lone.manager.node.vitals["w1"] = Vitals(0, 1, "m1", told)
        assert lone.report(free=2).known
        assert [view.state for view in lone.manager.worker_api.views()] == ["healthy"]

    play(story)


def test_how_busy_a_machine_and_its_busiest_generator_are_reaches_the_core() -> None:
    """The mean with what was told before."""

    async def story(lone: LoneManager) -> None:
        order = await lone.running(FACTS)
        seen: list[CpuUse | None] = []
        for seq, (machine_percent, generator) in enumerate([(10.0, 0.4), (60.0, 0.1)], 1):
            await lone.manager.host.clock.sleep(1.0)
            told = progress(order, pack(Delta(seq=seq, cpu=generator)))
            lone.report(told, cpu_percent=machine_percent)
            seen.append(lone.manager.jobs.pool.workers["w1"].cpu)
        assert seen == [CpuUse(10.0, 40.0), CpuUse(35.0, 25.0)]

    play(story)


def progress(order: DispatchPart, *deltas: PackedDelta) -> Progress:
    return Progress(
        part=order.part, fence=order.fence, state="running", elapsed_s=1.0, deltas=deltas
    )

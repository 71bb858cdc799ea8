"""What a worker says of parts that are not placed on it: refused, or taken for nothing."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.nodes.protocol.parts import (
    PARTS,
    DispatchPart,
    PartEnd,
    PartEvent,
    PartPrepared,
    PartStatus,
    PartTornDown,
    Progress,
    RegisterWorker,
    ReportProgress,
    TellEvent,
    TestStop,
)
from hyperscale.wire.errors import Refused
from hyperscale.wire.messages import decode_body
from tests.unit.nodes.manager.cases import delta, progress, state
from tests.unit.nodes.manager.lone_manager import LoneManager, Node, play


def node(name: str) -> Node:
    return Node(name, 1, "worker", "local", ("10.0.0.8", 7_000), ("10.0.0.8", 7_000))


def joins(lone: LoneManager, *parts: PartStatus) -> None:
    ask = RegisterWorker(node=node("w2"), total_cores=1, free_cores=0, draining=True, parts=parts)
    lone.manager.worker_api.register(lone.call("register.worker", node_id="w2"), ask)


async def tells(lone: LoneManager, event: PartEvent) -> None:
    await lone.manager.worker_api.event(
        lone.call("tell.event", node_id="w2"), TellEvent(event=event)
    )


def reports(lone: LoneManager, told: Progress) -> None:
    report = ReportProgress(worker="w2", incarnation=1, free_cores=0, parts=(told,))
    lone.manager.worker_api.progress(lone.call("report.progress", node_id="w2"), report)


def ended(order: DispatchPart) -> PartEnd:
    return PartEnd(part=order.part, fence=order.fence, worker="w2", outcome="completed")


def torn_down(order: DispatchPart) -> PartTornDown:
    return PartTornDown(part=order.part, fence=order.fence, worker="w2")


def prepared(order: DispatchPart) -> PartPrepared:
    return PartPrepared(part=order.part, fence=order.fence, worker="w2", seconds=0.1)


@pytest.mark.parametrize("event", [ended, torn_down, prepared])
def test_an_event_about_it_is_refused_and_says_whose_it_is(event) -> None:  # type: ignore[no-untyped-def]
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        joins(lone)
        with pytest.raises(Refused, match="is placed on w1, not on w2"):
            await tells(lone, event(order))
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert not job.is_over

    play(story)


def test_numbers_of_it_are_not_taken() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, 1.0, delta(1, 10)))
        joins(lone)
        reports(lone, progress(order, 2.0, delta(2, 1_000)))
        frozen = msgspec.structs.replace(
            progress(order, 50.0), snapshot=state(0), snapshot_seq=2**40
        )
        reports(lone, frozen)
        assert lone.manager.live.totals("j1", "Shop") == (10, 0)
        lone.report(progress(order, 2.0, delta(2, 5)))
        assert lone.manager.live.totals("j1", "Shop") == (15, 0)
        assert lone.manager.live.elapsed_s("j1", "Shop") == 2.0

    play(story)


def test_it_does_not_stop_the_test() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        joins(lone)
        stop = TestStop("I say so", failed=True)
        reports(lone, msgspec.structs.replace(progress(order, 1.0), test_stop=stop))
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert not job.ending

    play(story)


def test_registering_with_it_takes_nothing_over() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, 1.0, delta(1, 10)))
        lone.manager.live.clear()
        joins(lone, PartStatus(part=order.part, fence=order.fence, state="running"))
        assert lone.manager.live.workflow("j1", "Shop") is None

    play(story)


@pytest.mark.parametrize("cores", [0, -1, 4_097, 2**63 - 1])
def test_a_number_of_cores_no_machine_has_is_not_decoded(cores: int) -> None:
    told = RegisterWorker(node=node("w2"), total_cores=cores, free_cores=1)
    with pytest.raises(Refused, match="malformed"):
        decode_body(PARTS.by_struct[RegisterWorker], msgspec.msgpack.encode(told))


@pytest.mark.parametrize("field", ["snapshot_seq", "settled_seq", "moved", "cores_done"])
@pytest.mark.parametrize("number", [-1, 2**60])
def test_a_number_no_part_reaches_is_not_decoded(field: str, number: int) -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        told = msgspec.structs.replace(progress(order, 1.0), **{field: number})
        report = ReportProgress(worker="w1", incarnation=1, free_cores=0, parts=(told,))
        with pytest.raises(Refused, match="malformed"):
            decode_body(PARTS.by_struct[ReportProgress], msgspec.msgpack.encode(report))

    play(story)

"""What a worker says of parts that are not placed on it: refused, or taken for nothing."""

from __future__ import annotations

import math

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.protocol.parts import (
    PARTS,
    DispatchPart,
    HeldParts,
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
    await lone.manager.part_events.tell(
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


def test_a_life_nobody_reaches_does_not_keep_the_worker_out() -> None:
    async def story(lone: LoneManager) -> None:
        assert lone.register(incarnation=3).accepted
        forged = lone.register(incarnation=2**53)
        assert (forged.accepted, forged.reason) == (False, "nobody lives that often")
        assert lone.register(incarnation=4).accepted

    play(story)


def test_a_life_that_was_never_heard_of_may_not_be_that_late_either() -> None:
    async def story(lone: LoneManager) -> None:
        forged = lone.register(incarnation=2**53)
        assert (forged.accepted, forged.reason) == (False, "nobody lives that often")
        assert lone.register(incarnation=1).accepted

    play(story)


def test_a_later_life_that_falls_silent_gives_way_to_the_one_that_speaks() -> None:
    async def story(lone: LoneManager) -> None:
        assert lone.register(incarnation=2**20).accepted
        refused = lone.register(incarnation=1)
        assert (refused.accepted, refused.reason) == (False, "a later life of this worker is known")
        await lone.manager.host.clock.sleep(5.0)
        assert lone.register(incarnation=1).accepted
        assert lone.report().known

    play(story)


def test_a_later_life_with_parts_keeps_its_place() -> None:
    async def story(lone: LoneManager) -> None:
        lone.register(incarnation=7)
        await lone.submit()
        await lone.until(lambda: bool(lone.dispatched()))
        await lone.manager.host.clock.sleep(5.0)
        assert not lone.register(incarnation=1).accepted

    play(story)


MANY = tuple(
    Progress(part=Part(f"j{number}", "Shop", 0), fence=Fence(1, 1, 1), state="running", elapsed_s=1)
    for number in range(4_097)
)
HELD = tuple(PartStatus(part=one.part, fence=one.fence, state=one.state) for one in MANY)
DELTAS = (delta(1, 1),) * 4_097


@pytest.mark.parametrize(
    "told",
    [
        RegisterWorker(node=node("w2"), total_cores=1, free_cores=0, parts=HELD),
        ReportProgress(worker="w2", incarnation=1, free_cores=0, parts=MANY),
        ReportProgress(
            worker="w2",
            incarnation=1,
            free_cores=0,
            parts=(msgspec.structs.replace(MANY[0], deltas=DELTAS),),
        ),
        HeldParts(worker="w2", incarnation=1, total_cores=1, free_cores=0, parts=HELD),
    ],
    ids=["registering", "reporting", "deltas", "asked"],
)
def test_more_parts_than_a_worker_can_have_are_not_decoded(told: msgspec.Struct) -> None:
    with pytest.raises(Refused, match="length <= 4096"):
        decode_body(PARTS.by_struct[type(told)], msgspec.msgpack.encode(told))


@pytest.mark.parametrize("field", ["cpu_percent", "memory_percent"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0, 1e9])
def test_a_share_of_a_machine_that_cannot_be_is_not_decoded(field: str, number: float) -> None:
    report = ReportProgress(worker="w2", incarnation=1, free_cores=0, **{field: number})  # type: ignore[arg-type]
    with pytest.raises(Refused, match="malformed"):
        decode_body(PARTS.by_struct[ReportProgress], msgspec.msgpack.encode(report))


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

"""What comes twice, late, or from a former life changes nothing."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.identity import Node
from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.effects import Command, Start
from hyperscale.cluster.jobs.records import Part, PartLost, Placement
from hyperscale.cluster.membership.messages import Alive
from hyperscale.nodes.manager.part_end import encode_end
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd
from hyperscale.runtime.host import Address
from tests.unit.nodes.manager.cases import delta, progress, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


async def write_again(lone: LoneManager, record: job_records.JobRecord) -> None:
    """As a leader does that was not told whether its first try was held."""
    await lone.manager.records.append(
        record.job_id, 1, job_records.encode(record), Fence(lone.manager.leadership.term)
    )


def loss_of(order: DispatchPart, requests: int) -> PartLost:
    end = PartEnd(
        part=order.part, fence=order.fence, worker="w1", outcome="cut off",
        state=state(requests),
    )  # fmt: skip
    return PartLost("j1", 5.0, order.part, order.fence, "w1", 5.0, 0, encode_end(end), "gone")


def test_a_loss_that_is_written_twice_is_counted_once() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, 5.0, delta(1, 10)))
        await write_again(lone, loss_of(order, 10))
        await lone.until(lambda: len(lone.dispatched()) == 2)
        again = lone.dispatched()[-1]
        await lone.prepare(again)
        lone.report(progress(again, 6.0, delta(1, 3)))
        assert lone.manager.live.totals("j1", "Shop") == (13, 0)
        await write_again(lone, loss_of(order, 10))
        assert lone.manager.live.totals("j1", "Shop") == (13, 0)
        lone.report(progress(again, 7.0, delta(2, 4)))
        assert lone.manager.live.totals("j1", "Shop") == (17, 0), "the part that runs is followed"

    play(story)


def test_a_former_life_of_a_worker_does_not_take_the_place_of_the_present_one() -> None:
    async def story(lone: LoneManager) -> None:
        assert lone.register(incarnation=2, port=7_002).accepted
        late = lone.register(incarnation=1, port=7_001)
        peer = lone.manager.commands.sender.peer("w1")
        assert peer is not None
        assert peer.address == Address("10.0.0.9", 7_002), "commands go to a worker that is gone"
        assert not late.accepted

    play(story)


def test_commands_to_parts_whose_names_read_the_same_do_not_replace_each_other() -> None:
    async def story(lone: LoneManager) -> None:
        keys: list[tuple[str, ...]] = []
        lone.manager.commands.sender.send = (  # type: ignore[method-assign]
            lambda key, *_args, **_more: keys.append(key)
        )
        for part in (Part("a/b", "c", 0), Part("a", "b/c", 0)):
            where = Placement(part, Fence(1, 1, 1), "w1", 1, 0, 1)
            lone.manager.commands.start(Start(where, b""))
        assert len(set(keys)) == 2

    play(story)


def test_of_pause_and_resume_only_the_last_is_under_way() -> None:
    async def story(lone: LoneManager) -> None:
        keys: list[tuple[str, ...]] = []
        lone.manager.commands.sender.send = (  # type: ignore[method-assign]
            lambda key, *_args, **_more: keys.append(key)
        )
        where = Placement(Part("j", "w", 0), Fence(1, 1, 1), "w1", 1, 0, 1)
        for action in ("pause", "resume", "scale", "cancel"):
            lone.manager.commands.command(Command(where, action))  # type: ignore[arg-type]
        assert keys[0] == keys[1], "a resume takes the place of a pause that has not arrived"
        assert len(set(keys)) == 3

    play(story)


def test_a_worker_that_registers_is_known_to_be_there() -> None:
    """Its own probes come round to us once in a lap of the whole cluster."""

    async def story(lone: LoneManager) -> None:
        core, where = lone.manager.node.membership.core, ("10.0.0.9", 7_000)
        core._rumors.hear(Alive(Node("w1", 1, "worker", "local", where, where)))
        assert core.awaited("w1") is not None
        assert lone.register().accepted
        assert core.awaited("w1") is None

    play(story)

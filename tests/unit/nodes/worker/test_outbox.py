"""Events wait until a leader has settled them, however often that fails."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.protocol.parts import PartEnd, PartEvent, PartPrepared
from hyperscale.nodes.worker.outbox import BACKOFF, Outbox, key_of

FENCE = Fence(1, 1, 1)


def prepared(number: int = 0) -> PartPrepared:
    return PartPrepared(part=Part("j", "w", number), fence=FENCE, worker="w1", seconds=0.1)


def ended(number: int = 0) -> PartEnd:
    return PartEnd(part=Part("j", "w", number), fence=FENCE, worker="w1", outcome="completed")


def outbox(events_max: int = 8) -> Outbox:
    return Outbox(events_max, Random(1))


def test_an_event_goes_out_at_once_and_once() -> None:
    box = outbox()
    box.put(5.0, ended())

    assert box.take(5.0, 9) == [ended()]
    assert box.take(6.0, 9) == []
    assert box.next_due is None


def test_a_settled_event_is_forgotten() -> None:
    box = outbox()
    box.put(5.0, ended())
    box.take(5.0, 9)

    box.settled(key_of(ended()))

    assert len(box) == 0


def test_an_unsettled_event_comes_again_after_a_growing_pause() -> None:
    box = outbox()
    box.put(0.0, ended())
    now, pauses = 0.0, []
    for _ in range(8):
        assert box.take(now, 9) == [ended()]
        box.unsettled(now, key_of(ended()))
        due = box.next_due
        assert due is not None
        pauses.append(due - now)
        now = due
    caps = [min(BACKOFF.base_delay_s * 2**n, BACKOFF.delay_max_s) for n in range(8)]
    assert all(cap / 2 <= pause <= cap for pause, cap in zip(pauses, caps, strict=True))


def test_a_new_leader_is_told_at_once() -> None:
    box = outbox()
    box.put(0.0, ended())
    for _ in range(5):
        box.take(1e9, 9)
        box.unsettled(100.0, key_of(ended()))

    box.hasten(100.0)

    assert box.take(100.0, 9) == [ended()]


def test_the_end_makes_the_beginning_pointless() -> None:
    box = outbox()
    box.put(0.0, prepared())
    box.put(1.0, ended())

    assert box.take(1.0, 9) == [ended()]
    assert box.parts() == [(Part("j", "w", 0), FENCE)]


def test_only_so_many_go_out_together_oldest_first() -> None:
    box = outbox()
    for number in range(5):
        box.put(0.0, ended(number))

    assert box.take(0.0, 2) == [ended(0), ended(1)]
    assert box.take(0.0, 2) == [ended(2), ended(3)]


def test_a_full_box_says_so_and_still_takes_what_must_be_told() -> None:
    box = outbox(events_max=2)
    box.put(0.0, ended(0))
    assert not box.full
    box.put(0.0, ended(1))

    assert box.full
    box.put(0.0, ended(2))
    assert len(box) == 3


@given(st.lists(st.sampled_from(["put", "take", "settled", "unsettled", "hasten"]), max_size=60))
def test_nothing_is_lost_before_it_is_settled(actions: list[str]) -> None:
    box = outbox(1_000)
    now, put, under_way = 0.0, 0, list[PartEvent]()
    settled: set[int] = set()
    for action in actions:
        now += 1.0
        if action == "put":
            box.put(now, ended(put))
            put += 1
        elif action == "take":
            under_way += box.take(now, 3)
        elif action == "hasten":
            box.hasten(now)
        elif under_way:
            event = under_way.pop(0)
            if action == "settled":
                box.settled(key_of(event))
                settled.add(event.part.number)
            else:
                box.unsettled(now, key_of(event))
    for event in under_way:
        box.unsettled(now, key_of(event))
    rest = {event.part.number for event in box.take(now + 1e6, 1_000)}
    assert rest | settled == set(range(put))
    assert not rest & settled

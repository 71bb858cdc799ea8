"""What a leader has heard of a part outlives it on the other managers, and is written down when the
part is lost."""

from __future__ import annotations

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.exported import spread
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.protocol.records import Note, NoteParts
from tests.unit.nodes.manager.cases import FACTS, delta, hear, placement, progress, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def heard() -> Live:
    live = Live()
    live.follow(FACTS, placement(0), fresh=True)
    for seq in range(1, 101):
        hear(live, progress(placement(0), seq / 10, delta(seq, 15, 1)))
    return live


def test_a_note_is_all_numbers_without_their_course() -> None:
    live = heard()
    note = live.backup(placement(0).part)
    assert note is not None
    assert (note.at_s, note.fence) == (10.0, placement(0).fence)
    assert len(note.state) < len(live.close(placement(0).part, note.fence)[2]) / 2
    whole = aggregate_of(FACTS)
    whole.absorb(spread(note.state))
    result = whole.freeze()
    assert (result.requests, result.failed, result.elapsed_s) == (1500, 100, 10.0)
    assert sum(point.requests for point in result.series) == 1500
    assert {point.width_s for point in result.series} == {1}
    assert {point.requests for point in result.series[:10]} == {150}


def test_a_part_that_went_on_elsewhere_is_spread_over_its_own_time() -> None:
    note = heard().backup(placement(0).part)
    assert note is not None
    whole = aggregate_of(FACTS)
    whole.absorb(spread(note.state, since_s=5.0))
    assert [point.requests for point in whole.freeze().series[:10]] == [0] * 5 + [300] * 5


def test_nothing_is_told_of_a_part_that_was_not_heard_of() -> None:
    live = Live()
    live.follow(FACTS, placement(0), fresh=True)
    assert live.backup(placement(0).part) is None
    live.follow(FACTS, placement(1), fresh=False)
    assert live.seen(placement(1).part) is None


def test_the_next_leader_writes_down_what_the_one_before_it_had_heard() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        order = await lone.running()
        place = manager.jobs.replicated.placement(order.part)
        assert place is not None
        note = Note(
            part=order.part, fence=order.fence, at_s=30.0, iterations=9,
            state=state(1500, elapsed_s=30.0, offered=300.0),
        )  # fmt: skip
        term, manager.leadership.term = manager.leadership.term, 0  # before it led
        call = lone.call("note.parts", "manager", "m2")
        manager.progress_backup.heard(call, NoteParts(term=term, notes=(note,)))
        manager.leadership.term = term
        manager.live.clear()
        manager.live.follow(FACTS, place, fresh=False)

        at_s, iterations, told = manager._heard_of(place)
        assert (at_s, iterations) == (30.0, 9)
        whole = aggregate_of(FACTS)
        whole.absorb(told)
        assert (whole.requests, whole.offered) == (1500, 300.0)

        manager.live.clear()  # what the worker itself tells it counts more
        manager.live.follow(FACTS, place, fresh=True)
        manager.live.heard(progress(place, 40.0, delta(1, 1600)), place.worker)
        assert manager._heard_of(place)[0] == 40.0

    play(story)

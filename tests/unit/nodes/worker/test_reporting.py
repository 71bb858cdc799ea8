"""Numbers on their way: merged, repeated unchanged, never lost and never counted twice."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, StepDelta
from hyperscale.nodes.protocol.parts import Progress, ProgressAnswer
from hyperscale.nodes.worker.reporting import Held, Pace, ReportBuffer

PART, FENCE = Part("j", "w", 0), Fence(1, 1, 1)
HELD = [Held(PART, FENCE, "running", 1.0)]


def did(count: int, vus: int = 1, seq: int = 1) -> Delta:
    return Delta(seq=seq, vus=vus, steps=[StepDelta("get", count=count)])


def count_of(entry: Progress) -> int:
    return sum(step.count for delta in entry.deltas for step in delta.steps)


def buffer() -> ReportBuffer:
    made = ReportBuffer()
    made.open(PART, FENCE)
    return made


def take(made: ReportBuffer, snapshot: bytes | None = None) -> Progress:
    given_ = None if snapshot is None else (PART, snapshot)
    (entry,) = made.take(HELD, given_, numbers=True)
    return entry


def test_a_thousand_updates_between_two_flushes_are_one_delta() -> None:
    made = buffer()
    for number in range(1_000):
        made.add(PART, FENCE, number % 2, did(1, vus=number % 2 + 3))

    entry = take(made)

    assert len(entry.deltas) == 1
    assert count_of(entry) == 1_000
    assert entry.deltas[0].vus == 7  # of each core the last word


def test_what_was_not_answered_is_repeated_unchanged() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))
    first = take(made)
    made.add(PART, FENCE, 0, did(4))

    assert take(made) == first
    made.answered([first])
    second = take(made)
    assert (count_of(second), second.deltas[0].seq) == (4, first.deltas[0].seq + 1)


def test_a_snapshot_covers_what_waited_and_what_was_under_way() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))
    take(made)
    made.add(PART, FENCE, 0, did(4))
    made.want([PART])
    assert made.next_snapshot() == (PART, FENCE)

    entry = take(made, b"all")

    assert (entry.snapshot, entry.snapshot_seq, entry.deltas) == (b"all", 2, ())
    made.answered([entry])
    assert made.next_snapshot() is None
    assert take(made).deltas == ()


def test_states_are_told_while_numbers_are_held_back() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))

    (entry,) = made.take(HELD, None, numbers=False)

    assert (entry.state, entry.deltas) == ("running", ())
    assert count_of(take(made)) == 3


def test_numbers_of_another_attempt_are_not_mixed_in() -> None:
    made = buffer()
    made.add(PART, Fence(1, 2, 2), 0, did(5))

    assert not made.waiting


def test_an_ended_part_leaves_nothing_behind() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))
    made.drop(PART, FENCE)

    assert (len(made), made.waiting) == (0, False)
    assert take(made).deltas == ()


@given(st.integers(0, 10_000))
def test_a_leader_that_hears_some_of_it_counts_all_of_it_once(seed: int) -> None:
    """Messages and answers are lost at will, leaders change and ask for snapshots."""
    dice = Random(seed)
    made, truth, asked = buffer(), WorkflowAggregate("w", ["get"]), True
    leader = WorkflowAggregate("w", ["get"])
    heard = 0
    for number in range(60):
        if dice.random() < 0.8:
            made.add(PART, FENCE, 0, did(1))
            truth.apply(0, did(1, seq=number + 1))
        if dice.random() < 0.1:  # a new leader knows nothing and asks
            leader, heard, asked = WorkflowAggregate("w", ["get"]), 0, True
            made.want([PART])
        if dice.random() < 0.6:
            wanted = made.next_snapshot() is not None
            entry = take(made, truth.export() if wanted else None)
            if dice.random() < 0.7:  # it arrives
                heard, asked = receive(leader, entry, heard, asked)
                if asked:
                    made.want([PART])
                if dice.random() < 0.7:  # so does the answer
                    made.answered([entry])
        assert leader.requests <= truth.requests
    for _ in range(20):
        wanted = asked or made.next_snapshot() is not None
        made.want([PART] if asked else [])
        entry = take(made, truth.export() if wanted and made.next_snapshot() else None)
        heard, asked = receive(leader, entry, heard, asked)
        made.answered([entry])
    assert leader.requests == truth.requests


def receive(
    leader: WorkflowAggregate, entry: Progress, heard: int, asked: bool
) -> tuple[int, bool]:
    """As a leader does: a snapshot stands for all before it, later deltas follow in order."""
    if entry.snapshot and (asked or entry.snapshot_seq > heard):
        fresh = WorkflowAggregate("w", ["get"])
        fresh.absorb(entry.snapshot)
        leader.__dict__.update(fresh.__dict__)
        return entry.snapshot_seq, False
    if asked:
        return heard, asked
    for delta in entry.deltas:
        if delta.seq > heard:
            assert delta.seq == heard + 1, "a gap"
            leader.apply(1_000 + delta.seq, delta)
            heard = delta.seq
    return heard, asked


# -- pace ----------------------------------------------------------------------------------------


def test_numbers_go_out_every_fifty_milliseconds() -> None:
    pace = Pace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)

    assert pace.due_at(waiting=True) == 10.05
    assert pace.due_at(waiting=False) == 11.0


def test_a_busy_leader_is_told_less_often() -> None:
    pace = Pace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=1, delay_ms=450))

    assert pace.due_at(waiting=True) == 10.5
    assert not pace.holding_back


def test_an_overloaded_leader_hears_of_us_every_second_only() -> None:
    pace = Pace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=3, delay_ms=100))

    assert pace.holding_back
    assert pace.due_at(waiting=True) == 11.0


def test_what_cannot_wait_does_not_and_a_new_leader_starts_anew() -> None:
    pace = Pace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=3))
    pace.hasten()
    assert pace.due_at(waiting=False) == 10.0
    assert pace.holding_back

    pace.begin_anew()
    assert not pace.holding_back

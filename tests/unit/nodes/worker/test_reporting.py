"""Numbers on their way: merged, repeated unchanged, never lost and never counted twice."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.protocol.parts import Progress, ProgressAnswer
from hyperscale.nodes.worker.reporting import (
    QUIET_MAX,
    UNDER_WAY_MAX,
    PartView,
    ReportBuffer,
    ReportPace,
)
from tests.unit.nodes.manager.cases import FACTS

PART, FENCE = Part("j", "Shop", 0), Fence(1, 1, 1)
HELD = [PartView(PART, FENCE, "running", 1.0)]


def did(count: int, vus: int = 1, seq: int = 1) -> Delta:
    return Delta(seq=seq, vus=vus, requests=[RequestDelta(RequestKey("buy"), count=count)])


def count_of(entry: Progress) -> int:
    return sum(delta.requests for delta in entry.deltas)


def seqs_of(entry: Progress) -> list[int]:
    return [delta.seq for delta in entry.deltas]


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


def test_what_nobody_answers_for_is_repeated_unchanged() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))
    first = take(made)
    made.add(PART, FENCE, 0, did(4))
    made.unanswered()

    assert take(made) == first
    made.answered([first], [1])
    second = take(made)
    assert (count_of(second), seqs_of(second), second.settled_seq) == (4, [2], 1)


def test_each_report_tells_only_what_is_new_until_the_leader_says_how_far_it_is() -> None:
    made = buffer()
    entries = []
    for number in range(1, 6):
        made.add(PART, FENCE, 0, did(number))
        entries.append(take(made))

    assert [seqs_of(entry) for entry in entries] == [[1], [2], [3], [4], [5]]
    assert not made.waiting
    made.answered([entries[-1]], [3])  # the fourth was lost on its way
    assert made.waiting
    made.add(PART, FENCE, 0, did(6))
    again = take(made)
    assert (seqs_of(again), count_of(again), again.settled_seq) == ([4, 5], 9, 3)
    assert seqs_of(take(made)) == [6]


def test_what_is_under_way_is_bounded_while_nobody_answers() -> None:
    made = buffer()
    for _ in range(3 * UNDER_WAY_MAX):
        made.add(PART, FENCE, 0, did(1))
        take(made)
    made.unanswered()
    told = take(made)
    assert (len(told.deltas), count_of(told)) == (UNDER_WAY_MAX, UNDER_WAY_MAX)
    made.answered([told], [UNDER_WAY_MAX])
    assert count_of(take(made)) == 2 * UNDER_WAY_MAX


def test_a_snapshot_covers_what_waited_and_what_was_under_way() -> None:
    made = buffer()
    made.add(PART, FENCE, 0, did(3))
    take(made)
    made.add(PART, FENCE, 0, did(4))
    made.want([PART])
    assert made.next_snapshot() == (PART, FENCE)

    entry = take(made, b"all")

    assert (entry.snapshot, entry.snapshot_seq, entry.deltas) == (b"all", 2, ())
    made.answered([entry], [2])
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
    """Messages and answers are lost at will, most ask for none, leaders change and ask for
    snapshots."""
    dice = Random(seed)
    made, truth = buffer(), WorkflowAggregate("Shop", ["buy"])
    leader = leading()
    for number in range(60):
        if dice.random() < 0.8:
            made.add(PART, FENCE, 0, did(1))
            truth.apply(0, did(1, seq=number + 1))
        if dice.random() < 0.05:  # a new leader knows nothing and asks
            leader = leading(fresh=False)
            made.unanswered()
        if dice.random() < 0.7:
            exchange(made, leader, truth, dice, losing=0.3)
        assert leader.totals(PART.job_id, PART.workflow)[0] <= truth.requests
    for _ in range(5):
        exchange(made, leader, truth, dice, losing=0.0)
    assert leader.totals(PART.job_id, PART.workflow) == (truth.requests, 0)


def leading(*, fresh: bool = True) -> Live:
    made = Live()
    made.follow(FACTS, Placement(PART, FENCE, "w1", 1, 0, 1), fresh=fresh)
    return made


def exchange(
    made: ReportBuffer, leader: Live, truth: WorkflowAggregate, dice: Random, losing: float
) -> None:
    wanted = made.next_snapshot() is not None
    entry = take(made, truth.export() if wanted else None)
    quiet = not wanted and losing > 0 and dice.random() < 0.7
    arrives = dice.random() >= losing
    complete = leader.heard(entry, "w1") if arrives else True
    if quiet:
        return
    if arrives and dice.random() >= losing:
        made.answered([entry], [leader.taken(entry)])
        made.want([] if complete else [PART])
    else:
        made.unanswered()


# -- pace ----------------------------------------------------------------------------------------


def test_numbers_go_out_every_fifty_milliseconds() -> None:
    pace = ReportPace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)

    assert pace.due_at(waiting=True) == 10.05
    assert pace.due_at(waiting=False) == 11.0


def test_a_busy_leader_is_told_less_often() -> None:
    pace = ReportPace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=1, delay_ms=450))

    assert pace.due_at(waiting=True) == 10.5
    assert not pace.holding_back


def test_an_overloaded_leader_hears_of_us_every_second_only() -> None:
    pace = ReportPace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=3, delay_ms=100))

    assert pace.holding_back
    assert pace.due_at(waiting=True) == 11.0


def test_what_cannot_wait_does_not_and_a_new_leader_starts_anew() -> None:
    pace = ReportPace(0.0, flush_s=0.05, contact_s=1.0)
    pace.sent(10.0)
    pace.hear(ProgressAnswer(level=3))
    pace.hasten()
    assert pace.due_at(waiting=False) == 10.0
    assert pace.holding_back

    pace.begin_anew()
    assert not pace.holding_back


def asked(pace: ReportPace, now: float, answer: ProgressAnswer | None = None) -> None:
    pace.sent(now)
    pace.hear(answer or ProgressAnswer())


def test_between_two_answers_reports_need_none() -> None:
    pace = ReportPace(0.0, flush_s=0.1, contact_s=1.0)
    assert not pace.may_be_quiet(0.0)
    asked(pace, 0.0)
    quiet = []
    for tenth in range(1, 22):
        quiet.append(pace.may_be_quiet(tenth / 10))
        pace.sent(tenth / 10, quiet=quiet[-1])
        if not quiet[-1]:
            pace.hear(ProgressAnswer())
    assert quiet == [True] * 9 + [False] + [True] * 9 + [False] + [True]


def test_an_answer_is_needed_while_none_came() -> None:
    pace = ReportPace(0.0, flush_s=0.1, contact_s=1.0)
    asked(pace, 0.0)
    pace.sent(0.5)
    assert not pace.may_be_quiet(0.6)


def test_a_leader_that_asks_for_patience_is_not_asked_more_often() -> None:
    pace = ReportPace(0.0, flush_s=0.1, contact_s=1.0)
    asked(pace, 0.2, ProgressAnswer(level=2, delay_ms=200))
    assert pace.may_be_quiet(0.5)
    asked(pace, 0.5, ProgressAnswer(level=3, delay_ms=450))
    assert not pace.may_be_quiet(0.9)
    assert pace.due_at(waiting=True) == 1.5


def test_what_cannot_wait_is_answered_and_a_new_leader_answers_first() -> None:
    pace = ReportPace(0.0, flush_s=0.1, contact_s=1.0)
    asked(pace, 0.0)
    pace.hasten()
    assert not pace.may_be_quiet(0.1)
    asked(pace, 0.1)
    assert pace.may_be_quiet(0.2)
    pace.begin_anew()
    pace.sent(0.2, quiet=True)
    assert not pace.may_be_quiet(0.3)


def test_reports_without_an_answer_are_counted() -> None:
    pace = ReportPace(0.0, flush_s=0.001, contact_s=1.0)
    asked(pace, 0.0)
    for number in range(QUIET_MAX):
        assert pace.may_be_quiet(0.001 * number)
        pace.sent(0.001 * number, quiet=True)
    assert not pace.may_be_quiet(0.1)

"""The replica core, rule by rule, with messages passed by hand."""

from __future__ import annotations

import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.records import Record, RecordsSettings
from hyperscale.ledger.records.entries import Entry, EntryLog
from hyperscale.ledger.records.messages import Append, Appended, Fetch, Recover, Recovered
from hyperscale.ledger.records.replica import Promise, Replica, Write
from hyperscale.ledger.records.states import TRANSITIONS, Role, Trigger, next_role

SETTINGS = RecordsSettings(batch_records_max=3, pipeline_max=2)
VOTERS = ("a", "b", "c")


def entry(index: int, term: int) -> Entry:
    return Entry(index, term, Record(index, "job", index, b"", Fence(term)))


def replica(*terms: int, name: str = "b", commit: int = 0) -> Replica:
    """With a log of entries of these terms, all on its disk."""
    entries = [entry(index, term) for index, term in enumerate(terms, 1)]
    return Replica(name, VOTERS, SETTINGS, EntryLog(0, 0, entries), commit_index=commit)


def terms_of(one: Replica) -> list[int]:
    return [found.term for found in one.log.after(one.log.base_index)]


def leader(*terms: int) -> Replica:
    """Leads the term after, with nothing missing anywhere."""
    one = replica(*terms, name="a", commit=len(terms))
    term = max(terms, default=0) + 1
    assert one.lead(term)
    one.written(one.write)
    last = one.log.last_index
    one.answered("b", term, Recovered(term, True, last, one.log.last_term, last))
    assert one.donor() == "a"
    one.begin()
    one.written(one.write)
    request = one.next_for("b")
    assert request is not None
    one.confirmed("b", request, Appended(term, True, one.log.last_index))
    assert one.ready
    return one


def test_no_move_is_missing_and_none_is_made_up() -> None:
    for role in Role:
        for trigger in Trigger:
            if trigger in TRANSITIONS[role]:
                assert next_role(role, trigger) is TRANSITIONS[role][trigger]
            else:
                with pytest.raises(InvariantBroken):
                    next_role(role, trigger)


def test_a_promise_is_written_and_keeps_older_leaders_out() -> None:
    one = replica(1, 1)
    assert one.recover("c", Recover(4)) == Recovered(4, True, 2, 1, 0)
    assert one.take_writes() == [Promise(4)]
    assert one.append("a", Append(3, 2, 1, 0, (entry(3, 3),))) == Appended(4, False)
    assert one.recover("a", Recover(3)) == Recovered(4, False)
    assert one.recover("c", Recover(4)).granted, "asked again by the same leader"
    assert one.take_writes() == []


def test_a_second_leader_in_a_term_is_a_rival() -> None:
    one = replica(1)
    assert one.recover("a", Recover(2)).granted
    assert not one.recover("c", Recover(2)).granted
    assert not one.append("c", Append(2, 1, 1, 0)).done


def test_entries_are_taken_where_they_fit() -> None:
    one = replica(1, 1)
    assert one.append("a", Append(1, 5, 1, 0)) == Appended(1, False, 2), "it ends before that"
    assert one.append("a", Append(1, 2, 1, 1, (entry(3, 1),))) == Appended(1, True, 3)
    assert one.commit_index == 1
    assert one.take_writes() == [Write(entry(3, 1), 0)]
    assert one.append("a", Append(1, 1, 1, 9, (entry(2, 1), entry(3, 1)))) == Appended(1, True, 3)
    assert one.take_writes() == [], "what is there is not written again"
    assert one.commit_index == 3, "no further than what was compared"


def test_entries_of_another_leader_give_way() -> None:
    one = replica(1, 2, 2, 2, commit=1)
    assert one.append("a", Append(4, 4, 3, 1)) == Appended(4, False, 1), "the whole term is skipped"
    assert one.append("a", Append(4, 1, 1, 1, (entry(2, 4),))) == Appended(4, True, 2)
    assert terms_of(one) == [1, 4]


def test_what_is_committed_does_not_give_way() -> None:
    one = replica(1, 2, 2, commit=3)
    with pytest.raises(InvariantBroken):
        one.append("a", Append(4, 1, 1, 1, (entry(2, 4),)))


def test_what_was_replaced_and_came_back_is_stable_when_it_is_written_again() -> None:
    one = replica(1)
    one.append("a", Append(2, 1, 1, 0, (entry(2, 2), entry(3, 2))))
    written_first = one.write
    one.append("c", Append(3, 1, 1, 0, (entry(2, 3),)))
    one.append("a", Append(4, 1, 1, 0, (entry(2, 2), entry(3, 2))))
    one.written(written_first)
    assert one.log.stable_index == 1
    one.written(one.write)
    assert one.log.stable_index == 3


def test_a_leader_takes_the_log_with_the_highest_last_term_then_the_longest() -> None:
    one = replica(1, 1, 1, 1, name="a")
    assert one.lead(5)
    one.answered("b", 5, Recovered(5, True, 2, 3))
    assert one.donor() is None, "its own promise is not on the disk yet"
    one.written(one.write)
    assert one.donor() == "b"
    one.answered("c", 5, Recovered(5, True, 3, 3))
    assert one.donor() == "c"
    one.unanswered("c")
    assert one.donor() == "b"


def test_an_old_answer_counts_for_nothing() -> None:
    one = replica(name="a")
    one.lead(2)
    one.lead(5)
    one.written(one.write)
    one.answered("b", 2, Recovered(2, True))
    assert one.donor() is None
    one.answered("b", 5, Recovered(7, False))
    assert (one.role, one.term) == (Role.FOLLOWER, 7)


def test_a_donor_gives_what_is_asked_only_to_whom_it_promised() -> None:
    one = replica(1, 1, 2, 2, 2)
    one.recover("a", Recover(3))
    assert not one.fetch("c", Fetch(3, 1)).granted
    assert not one.fetch("a", Fetch(2, 1)).granted
    assert [found.index for found in one.fetch("a", Fetch(3, 2)).entries] == [2, 3, 4]
    assert one.fetch("a", Fetch(3, 6)).entries == ()
    one.log.drop(3)
    assert one.fetch("a", Fetch(3, 3)).dropped
    assert [found.index for found in one.fetch("a", Fetch(3, 4)).entries] == [4, 5]


def test_copies_of_older_terms_commit_nothing_before_the_barrier() -> None:
    one = replica(1, 2, name="a")
    one.lead(4)
    one.written(one.write)
    one.answered("b", 4, Recovered(4, True, 1, 1))
    one.begin()
    one.written(one.write)
    request = one.next_for("b")
    assert request is not None
    one.confirmed("b", request, Appended(4, True, 2))
    assert (one.commit_index, one.ready) == (0, False)
    request = one.next_for("b")
    assert request is not None
    one.confirmed("b", request, Appended(4, True, 3))
    assert (one.commit_index, one.ready) == (3, True)


def test_the_leaders_own_copy_counts_when_it_is_written() -> None:
    one = leader(1)
    proposed = one.propose(Record(0, "job", 1, b"", Fence(2)))
    assert proposed.record is not None
    assert proposed.record.index == proposed.index
    for peer in ("b", "c"):
        while (request := one.next_for(peer)) is not None:
            one.confirmed(peer, request, Appended(2, True, proposed.index))
    assert one.commit_index == proposed.index, "two others are a majority"
    assert one.applicable_index < proposed.index, "but it is not applied here"
    one.written(one.write)
    assert one.applicable_index == proposed.index


def test_requests_are_sent_ahead_once_the_logs_agree() -> None:
    one = leader(1)
    for _ in range(8):
        one.propose(Record(0, "job", 1, b"", Fence(2)))
    first, second = one.next_for("b"), one.next_for("b")
    assert first is not None
    assert second is not None
    assert [len(first.entries), len(second.entries)] == [3, 3]
    assert second.previous_index == first.previous_index + 3
    assert one.next_for("b") is None, "two are under way"
    one.lost("b", first)
    assert one.next_for("b") is None, "the other may still arrive"
    one.confirmed("b", second, Appended(2, False, first.previous_index))
    again = one.next_for("b")
    assert again is not None
    assert again.previous_index == first.previous_index


def test_who_lacks_dropped_entries_gets_the_state() -> None:
    one = leader(1, 1, 1, 1)
    request = one.next_for("c", ping=True)
    assert request is not None
    one.log.drop(4)
    one.confirmed("c", request, Appended(2, False, 1))
    assert one.lacks("c")
    assert one.next_for("c", ping=True) is None
    one.installing("c")
    assert not one.lacks("c")
    one.installed("c", 2, 4)
    request = one.next_for("c")
    assert request is not None
    assert request.previous_index == 4


@pytest.mark.parametrize(
    ("terms", "kept"), [((1, 1, 1, 1), [1, 1]), ((1, 2, 2, 2), []), ((1,), [])]
)
def test_a_new_state_keeps_what_follows_it(terms: tuple[int, ...], kept: list[int]) -> None:
    one = replica(*terms, commit=1)
    assert one.install(2, 1)
    assert (one.log.base_index, one.log.base_term, one.commit_index) == (2, 1, 2)
    assert terms_of(one) == kept
    assert not one.install(2, 1), "nothing newer"


def test_it_leads_a_term_once() -> None:
    one = leader(1)
    assert one.lead(2), "asked again"
    one.step_down()
    assert not one.lead(2)
    assert not one.lead(1)
    assert one.lead(3)
    restarted = Replica("a", VOTERS, SETTINGS, one.log, term=3)
    assert not restarted.lead(3)

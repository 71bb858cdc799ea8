"""The table of keys: every state against every trigger, time, room, conflicts."""

from __future__ import annotations

import pytest

from hyperscale.ledger.idempotency import (
    IdempotencySettings,
    IdempotencyTable,
    State,
    Verdict,
    content_digest,
    fingerprint,
)
from hyperscale.ledger.idempotency.table import TRANSITIONS, Trigger

MARK = fingerprint("key")
DIGEST = content_digest(b"content")


def made(state: State, now: float = 0.0) -> IdempotencyTable:
    table = IdempotencyTable(IdempotencySettings())
    if state is not State.ABSENT:
        table.reserve(now, MARK, "key", "job", DIGEST)
    if state is State.COMMITTED:
        table.commit(now, MARK, b"yes")
    if state is State.REJECTED:
        table.reject(now, MARK, b"no")
    return table


def state_of(table: IdempotencyTable, now: float = 0.0) -> State:
    entry = table.look(now, MARK)
    return State.ABSENT if entry is None else entry.state


def pull(table: IdempotencyTable, trigger: Trigger) -> bool:
    match trigger:
        case Trigger.RESERVED:
            return table.reserve(0.0, MARK, "key", "job", DIGEST).verdict is Verdict.NEW
        case Trigger.ACCEPTED:
            return table.commit(0.0, MARK, b"second yes")
        case Trigger.REFUSED:
            return table.reject(0.0, MARK, b"second no")
        case Trigger.RELEASED:
            return table.release(MARK)
        case Trigger.EXPIRED:
            return table.expire(MARK)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("trigger", Trigger)
def test_the_table_of_transitions_is_what_happens(state: State, trigger: Trigger) -> None:
    table = made(state)
    before = table.look(0.0, MARK)
    wanted = TRANSITIONS[state].get(trigger)
    assert pull(table, trigger) is (wanted is not None)
    if wanted is None:
        assert table.look(0.0, MARK) == before
    else:
        assert state_of(table) is wanted
    assert len(table) == (state_of(table) is not State.ABSENT)


def test_the_numbers_of_states_are_frozen() -> None:
    assert [(s.name, s.value) for s in State] == [
        ("ABSENT", 0),
        ("PENDING", 1),
        ("COMMITTED", 2),
        ("REJECTED", 3),
    ]


def test_a_duplicate_finds_what_the_first_left() -> None:
    assert made(State.PENDING).check(0, MARK, DIGEST).verdict is Verdict.PENDING  # type: ignore[union-attr]
    ruling = made(State.COMMITTED).reserve(0, MARK, "key", "other job", DIGEST)
    assert ruling.verdict is Verdict.ANSWERED
    assert ruling.entry is not None
    assert (ruling.entry.job_id, ruling.entry.answer) == ("job", b"yes")


@pytest.mark.parametrize("state", [State.PENDING, State.COMMITTED, State.REJECTED])
def test_other_content_under_the_same_key_is_a_conflict(state: State) -> None:
    ruling = made(state).reserve(0, MARK, "key", "job", content_digest(b"else"))
    assert ruling.verdict is Verdict.CONFLICT


@pytest.mark.parametrize(("state", "ttl_s"), [(State.COMMITTED, 300), (State.REJECTED, 60)])
def test_an_answer_is_kept_for_its_time_and_not_longer(state: State, ttl_s: float) -> None:
    table = made(state, 5.0)
    assert state_of(table, 5.0 + ttl_s - 0.001) is state
    assert state_of(table, 5.0 + ttl_s) is State.ABSENT
    assert table.reserve(5.0 + ttl_s, MARK, "key", "job 2", DIGEST).verdict is Verdict.NEW
    assert len(table) == 1


def test_a_reservation_is_named_when_overdue_and_stays() -> None:
    table = made(State.PENDING)
    assert table.sweep(60.0, 10).overdue == []
    (overdue,) = table.sweep(61.0, 10).overdue
    assert (overdue.key, overdue.job_id, overdue.content) == ("key", "job", DIGEST)
    assert state_of(table, 61.0) is State.PENDING
    assert table.sweep(62.0, 10).overdue == []
    assert table.sweep(122.0, 10).overdue == [overdue]


def test_a_sweep_forgets_a_few_at_a_time() -> None:
    table = IdempotencyTable(IdempotencySettings())
    for number in range(100):
        mark = fingerprint(str(number))
        table.reserve(0.0, mark, str(number), "job", DIGEST)
        table.commit(0.0, mark, b"")
    assert table.sweep(100.0, 1_000).looked == 100
    sizes = []
    while table.sweep(302.0, 30).looked:
        sizes.append(len(table))
    assert sizes == [70, 40, 10, 0]
    assert table.lsn_min() is None


def test_a_full_table_starts_nothing_new_but_answers() -> None:
    table = IdempotencyTable(IdempotencySettings(entries_max=2))
    for name in ("a", "b"):
        table.reserve(0.0, fingerprint(name), name, "job", DIGEST)
    assert table.reserve(1.0, fingerprint("c"), "c", "job", DIGEST).verdict is Verdict.FULL
    assert table.reserve(1.0, fingerprint("a"), "a", "job", DIGEST).verdict is Verdict.PENDING
    table.commit(1.0, fingerprint("a"), b"")
    assert table.reserve(302.0, fingerprint("c"), "c", "job", DIGEST).verdict is Verdict.NEW
    assert len(table) == 2


def test_eviction_takes_the_answer_that_ends_next_and_never_a_reservation() -> None:
    table = IdempotencyTable(IdempotencySettings())
    table.reserve(0.0, fingerprint("pending"), "pending", "job", DIGEST)
    for name, at in (("first", 1.0), ("second", 2.0)):
        table.reserve(at, fingerprint(name), name, "job", DIGEST)
        table.commit(at, fingerprint(name), b"")
    assert table.evict(3.0)
    assert table.look(3.0, fingerprint("first")) is None
    assert table.evict(3.0)
    assert not table.evict(3.0)
    assert table.counts() == (1, 1, 0, 0)


def test_the_oldest_record_still_needed_moves_with_time() -> None:
    table = IdempotencyTable(IdempotencySettings())
    table.reserve(0.0, MARK, "key", "job", DIGEST, 5)
    table.commit(0.0, MARK, b"", 9)
    assert table.lsn_min() == 5
    table.sweep(100.0, 10)
    assert table.lsn_min() == 9
    table.sweep(302.0, 10)
    assert table.lsn_min() is None


def test_a_digest_of_another_size_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        made(State.ABSENT).reserve(0, MARK, "key", "job", b"short")

"""Whom a worker asks to take it in, and when it looks for another."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.protocol.parts import Registered
from hyperscale.nodes.worker.registration import HINT_PAUSE_S, ROUND_BACKOFF, Registration
from hyperscale.runtime.host import Address

A, B, C = (Address("10.0.0.1", port) for port in (1, 2, 3))


def yes(term: int = 1) -> Registered:
    return Registered(accepted=True, term=term)


def no(leader: Address | None = None, term: int = 1) -> Registered:
    return Registered(accepted=False, term=term, leader_address=leader)


def seeking(*managers: Address) -> Registration:
    made = Registration(0.0, Random(1))
    made.know(managers)
    return made


def test_a_leader_that_takes_us_in_ends_the_search() -> None:
    made = seeking(A, B)

    assert made.whom(0.0) == A
    assert made.answered(0.1, A, yes())
    assert (made.registered, made.leader, made.whom(0.2)) == (True, A, None)


def test_who_does_not_lead_names_who_does() -> None:
    made = seeking(A, B, C)
    made.whom(0.0)
    made.answered(0.1, A, no(C))

    assert made.whom(0.1) == C


def test_a_likely_leader_outside_the_list_is_asked_too() -> None:
    made = seeking(A)
    made.whom(0.0)
    made.answered(0.1, A, no(C))

    assert made.whom(0.1) == C
    assert made.answered(0.2, C, yes())


def test_everybody_is_asked_once_a_round_and_rounds_pause() -> None:
    made = seeking(A, B)
    assert [made.whom(0.0), made.whom(0.0), made.whom(0.0)] == [A, B, None]

    assert 0.25 <= made.next_at <= 0.5
    made.failed(A)
    assert made.whom(made.next_at) == A
    assert made.whom(made.next_at) is None  # of B the first answer is still to come


def test_news_of_a_leader_shortens_the_pause_and_a_repetition_does_not() -> None:
    made = seeking(A, B)
    for _ in range(3):
        made.whom(0.0)
    made.answered(0.01, A, no(C))
    assert made.next_at == 0.01 + HINT_PAUSE_S

    now = made.next_at
    assert made.whom(now) == C
    made.failed(C)
    made.answered(now, B, no(C))
    while made.whom(now) is not None:
        made.failed(C)
    paused_until = made.next_at
    made.answered(now, A, no(C))
    assert made.next_at == paused_until > now + HINT_PAUSE_S


def test_a_second_acceptance_changes_nothing() -> None:
    made = seeking(A, B)
    made.whom(0.0)
    made.whom(0.0)

    assert made.answered(0.1, A, yes())
    assert not made.answered(0.2, B, no(A))
    assert made.leader == A


def test_rounds_never_pause_so_long_that_managers_forget_us() -> None:
    made, now = seeking(A), 0.0
    for _ in range(20):
        while made.whom(now) is not None:
            made.failed(A)
        assert made.next_at - now <= ROUND_BACKOFF.delay_max_s
        now = made.next_at


def test_a_new_term_means_a_new_leader() -> None:
    made = seeking(A, B)
    made.whom(0.0)
    made.answered(0.0, A, yes(term=3))

    assert made.hear_term(1.0, 4, B)
    assert (made.registered, made.whom(1.0)) == (False, B)


def test_an_old_term_is_from_the_past() -> None:
    made = seeking(A, B)
    made.whom(0.0)
    made.answered(0.0, A, yes(term=3))

    assert not made.hear_term(1.0, 2, B)
    assert made.registered


def test_a_leader_of_the_past_does_not_take_us_in() -> None:
    made = seeking(A, B)
    made.hear_term(0.0, 5, None)
    made.whom(0.0)

    assert not made.answered(0.1, A, yes(term=4))
    assert not made.registered


def test_a_lost_leader_is_asked_first_and_then_the_others() -> None:
    made = seeking(A, B)
    made.whom(0.0)
    made.answered(0.0, A, yes())
    made.seek(5.0, A)

    assert [made.whom(5.0), made.whom(5.0)] == [A, B]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), max_size=40))
def test_terms_never_fall_and_one_leader_at_a_time(
    answers: list[tuple[int, int, bool]],
) -> None:
    made, now, terms = seeking(A, B, C), 0.0, [0]
    for number, term, accepts in answers:
        now = max(now, made.next_at)
        asked = made.whom(now)
        if asked is None:
            made.seek(now, (A, B, C)[number])
            continue
        made.answered(now, asked, yes(term) if accepts else no((A, B, C)[number], term))
        terms.append(made.term)
        assert made.registered == (made.leader is not None)
    assert terms == sorted(terms)

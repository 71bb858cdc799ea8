"""How long load may run without an answer from managers that can decide something."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.worker.contact import Contact

VOTERS = ("m1", "m2", "m3")


def contact(fence_s: float = 6.0) -> Contact:
    made = Contact(100.0, fence_s)
    made.know(VOTERS)
    return made


def free(made: Contact, asked_at: float, manager: str, for_s: float = 60.0, term: int = 1) -> None:
    """The manager says at once that it has supported nobody for so long."""
    made.heard(asked_at, asked_at, manager, term, for_s)


def test_silence_for_the_fence_cuts_off() -> None:
    alone = contact()

    assert not alone.is_cut_off(105.9)
    assert alone.is_cut_off(106.0)
    assert alone.silent_s(107.0) == 7.0


def test_the_answer_of_a_leader_counts_from_when_it_was_asked_for() -> None:
    led = contact()
    led.led(101.0, "m1", 1)

    assert led.remaining_s(104.0) == 3.0
    led.led(100.5, "m1", 1)  # an older question, answered late
    assert led.remaining_s(104.0) == 3.0


def test_an_answer_after_the_cut_lets_load_run_again() -> None:
    back = contact()
    assert back.is_cut_off(110.0)

    back.led(109.0, "m1", 1)

    assert back.remaining_s(110.0) == 5.0


def test_one_manager_of_three_that_does_not_lead_is_nobody() -> None:
    minority = contact()
    for at in range(101, 120):
        free(minority, at, "m1")

    assert minority.is_cut_off(106.0)


def test_a_majority_without_a_leader_will_do() -> None:
    several = contact()
    free(several, 104.0, "m1")
    free(several, 103.0, "m3")

    assert several.remaining_s(105.0) == 4.0, "as old as the older of the two"
    free(several, 104.5, "m2")
    assert several.remaining_s(105.0) == 5.0


def test_followers_of_a_leader_out_of_reach_are_no_contact() -> None:
    """They answer as ever, and their leader gives our work away."""
    several = contact()
    several.led(101.0, "m1", 1)
    for at in range(102, 110):
        free(several, at, "m2", for_s=0.0)
        free(several, at, "m3", for_s=0.0)

    assert several.is_cut_off(107.0)


def test_followers_that_had_no_leader_one_after_the_other_are_no_contact() -> None:
    """Each lost sight of it for a while, and it never lost both."""
    several = contact()
    several.led(100.0, "m1", 1)
    several.heard(103.0, 103.0, "m2", 1, 1.0)
    several.heard(105.0, 105.0, "m3", 1, 1.5)

    assert several.heard_at == 100.0


def test_what_a_late_answer_says_of_the_past_counts_from_when_it_came() -> None:
    """It may have been written at any time since it was asked for."""
    slow = contact()
    for manager in ("m2", "m3"):
        slow.heard(104.0, 105.0, manager, 1, 0.5)

    assert slow.heard_at == 100.0


def test_managers_that_were_all_started_again_are_contact_before_they_may_vote() -> None:
    """What they promised before they forgot; but whom they promised it to is among them."""
    again = contact()
    again.led(102.0, "m1", 4)
    again.heard(104.0, 104.2, "m1", 4, 0.0)
    free(again, 104.5, "m2", for_s=0.0, term=4)

    assert again.heard_at == 102.0, "m1 may have led when it was asked"
    free(again, 105.0, "m1", for_s=0.0, term=4)
    assert again.heard_at == 104.5


def test_a_majority_that_knows_of_a_later_term_may_have_a_leader() -> None:
    later = contact()
    later.led(102.0, "m1", 4)
    for at in (104.0, 105.0):
        free(later, at, "m1", for_s=0.0, term=4)
        free(later, at, "m2", for_s=0.0, term=5)
        free(later, at, "m3", for_s=0.0, term=5)

    assert later.heard_at == 102.0


def test_without_the_word_of_the_leader_itself_promises_must_have_ended() -> None:
    lost = contact()
    lost.led(102.0, "m1", 4)
    for at in (104.0, 105.0):
        free(lost, at, "m2", for_s=0.0, term=4)
        free(lost, at, "m3", for_s=0.0, term=4)

    assert lost.heard_at == 102.0


def test_a_leader_that_is_back_is_deposed_no_more() -> None:
    back = contact()
    back.led(101.0, "m1", 4)
    free(back, 102.0, "m1", for_s=0.0, term=4)
    back.led(103.0, "m2", 5)
    free(back, 104.0, "m1", for_s=0.0, term=5)
    free(back, 104.0, "m3", for_s=0.0, term=5)

    assert back.heard_at == 103.0


def test_strangers_are_no_majority() -> None:
    several = contact()
    free(several, 104.0, "m1")
    free(several, 104.0, "m9")

    assert several.remaining_s(105.0) == 1.0


def test_a_lone_manager_is_a_majority_of_itself() -> None:
    lone = Contact(100.0, 6.0)
    lone.know(["m1"])
    free(lone, 104.0, "m1")

    assert lone.remaining_s(105.0) == 5.0


def test_half_of_the_time_gone_is_time_to_ask_everybody() -> None:
    fading = contact()

    assert not fading.is_fading(102.9)
    assert fading.is_fading(103.0)


times = st.floats(0, 1_000)
words = st.tuples(times, st.floats(0, 3), st.sampled_from(VOTERS), st.floats(0, 20))


@given(st.lists(words, max_size=30), st.lists(times, max_size=3), times)
def test_there_was_a_leader_or_a_moment_at_which_two_of_three_had_none(
    heard: list[tuple[float, float, str, float]], led: list[float], now: float
) -> None:
    known = Contact(0.0, 6.0)
    known.know(VOTERS)
    for at in led:
        known.led(at, "m9", 1)
    spans: dict[str, tuple[float, float]] = {}
    for at, took_s, manager, for_s in heard:
        known.heard(at, at + took_s, manager, 1, for_s)
        if at > spans.get(manager, (0.0, -1.0))[1]:
            spans[manager] = (at + took_s - for_s, at)

    moments = [
        at
        for _, at in spans.values()
        if sum(since < at <= until for since, until in spans.values()) >= 2
    ]
    assert known.heard_at == max(0.0, *led, *moments, 0.0)
    assert known.remaining_s(now) == max(0.0, known.heard_at + 6.0 - now)
    assert known.is_cut_off(now) == (known.remaining_s(now) == 0.0)

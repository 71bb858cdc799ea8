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


def test_silence_for_the_fence_cuts_off() -> None:
    alone = contact()

    assert not alone.is_cut_off(105.9)
    assert alone.is_cut_off(106.0)
    assert alone.silent_s(107.0) == 7.0


def test_the_answer_of_a_leader_counts_from_when_it_was_asked_for() -> None:
    led = contact()
    led.led(101.0)

    assert led.remaining_s(104.0) == 3.0
    led.led(100.5)  # an older question, answered late
    assert led.remaining_s(104.0) == 3.0


def test_an_answer_after_the_cut_lets_load_run_again() -> None:
    back = contact()
    assert back.is_cut_off(110.0)

    back.led(109.0)

    assert back.remaining_s(110.0) == 5.0


def test_one_manager_of_three_that_does_not_lead_is_nobody() -> None:
    minority = contact()
    for at in range(101, 120):
        minority.heard(at, "m1")

    assert minority.is_cut_off(106.0)


def test_a_majority_will_do_while_nobody_leads() -> None:
    several = contact()
    several.heard(104.0, "m1")
    several.heard(103.0, "m3")

    assert several.remaining_s(105.0) == 4.0, "as old as the older of the two"
    several.heard(104.5, "m2")
    assert several.remaining_s(105.0) == 5.0


def test_strangers_are_no_majority() -> None:
    several = contact()
    several.heard(104.0, "m1")
    several.heard(104.0, "m9")

    assert several.remaining_s(105.0) == 1.0


def test_a_lone_manager_is_a_majority_of_itself() -> None:
    lone = Contact(100.0, 6.0)
    lone.know(["m1"])
    lone.heard(104.0, "m1")

    assert lone.remaining_s(105.0) == 5.0


def test_half_of_the_time_gone_is_time_to_ask_everybody() -> None:
    fading = contact()

    assert not fading.is_fading(102.9)
    assert fading.is_fading(103.0)


answers = st.lists(st.tuples(st.floats(0, 1e6), st.sampled_from([*VOTERS, ""])), max_size=30)


@given(answers, st.floats(0.1, 100), st.floats(0, 1e6))
def test_what_remains_depends_on_the_leader_or_on_the_second_of_three(
    heard: list[tuple[float, str]], fence_s: float, now: float
) -> None:
    """An empty name stands for whoever leads."""
    known = Contact(0.0, fence_s)
    known.know(VOTERS)
    latest = dict.fromkeys(VOTERS, float("-inf"))
    led_at = 0.0
    for at, name in heard:
        if name:
            known.heard(at, name)
            latest[name] = max(latest[name], at)
        else:
            known.led(at)
            led_at = max(led_at, at)

    since = max(led_at, sorted(latest.values())[1])
    assert known.heard_at == since
    assert known.remaining_s(now) == max(0.0, since + fence_s - now)
    assert known.is_cut_off(now) == (known.remaining_s(now) == 0.0)

"""How long load may run without an answer from a manager."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.worker.contact import Contact


def test_silence_for_the_fence_cuts_off() -> None:
    contact = Contact(100.0, fence_s=6.0)

    assert not contact.is_cut_off(105.9)
    assert contact.is_cut_off(106.0)
    assert contact.silent_s(107.0) == 7.0


def test_an_answer_counts_from_when_it_was_asked_for() -> None:
    contact = Contact(100.0, fence_s=6.0)
    contact.heard(101.0)

    assert contact.remaining_s(104.0) == 3.0
    contact.heard(100.5)  # an older question, answered late
    assert contact.remaining_s(104.0) == 3.0


def test_an_answer_after_the_cut_lets_load_run_again() -> None:
    contact = Contact(100.0, fence_s=6.0)
    assert contact.is_cut_off(110.0)

    contact.heard(109.0)

    assert contact.remaining_s(110.0) == 5.0


@given(st.lists(st.floats(0, 1e6), max_size=30), st.floats(0.1, 100), st.floats(0, 1e6))
def test_what_remains_depends_on_the_latest_answer_only(
    asked: list[float], fence_s: float, now: float
) -> None:
    contact = Contact(0.0, fence_s)
    for at in asked:
        contact.heard(at)

    latest = max([0.0, *asked])
    assert contact.remaining_s(now) == max(0.0, latest + fence_s - now)
    assert contact.is_cut_off(now) == (contact.remaining_s(now) == 0.0)

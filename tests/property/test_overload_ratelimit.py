"""The exact bounds of the sliding-window counter, and honest waits."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.overload import (
    LoadLevel,
    Priority,
    RateLimiter,
    RateLimitSettings,
    SlidingWindow,
)

WINDOW_S = 10.0
limits = st.integers(1, 20)
gaps = st.lists(
    st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.floats(0.0, 25.0)), min_size=1, max_size=200
)


def admitted(limit: int, pauses: list[float]) -> tuple[list[float], SlidingWindow]:
    window = SlidingWindow(0.0, WINDOW_S)
    now, taken = 0.0, []
    for pause in pauses:
        now += pause
        if window.try_take(now, limit) == 0.0:
            taken.append(now)
    return taken, window


@settings(max_examples=300)
@given(limits, gaps)
def test_never_more_than_the_limit_in_a_counting_window(limit: int, pauses: list[float]) -> None:
    window = SlidingWindow(0.0, WINDOW_S)
    now = 0.0
    for pause in pauses:
        now += pause
        wait_s = window.try_take(now, limit)
        assert 0 <= window.current <= limit
        assert window.effective(now) <= limit
        assert wait_s >= 0.0


@settings(max_examples=300)
@given(limits, gaps)
def test_at_most_twice_the_limit_less_one_in_any_stretch(limit: int, pauses: list[float]) -> None:
    taken, _ = admitted(limit, pauses)
    for first, begin in enumerate(taken):
        assert bisect_left(taken, begin + WINDOW_S) - first <= 2 * limit - 1


def test_that_bound_is_reached() -> None:
    limit = 10
    window = SlidingWindow(0.0, WINDOW_S)
    taken = [9.99] * sum(window.try_take(9.99, limit) == 0.0 for _ in range(limit))
    taken += [
        now for tick in range(10_000) if window.try_take(now := 10.0 + tick / 1_000, limit) == 0.0
    ]
    assert bisect_left(taken, 9.99 + WINDOW_S) == 2 * limit - 1


@settings(max_examples=300)
@given(limits, gaps)
def test_waiting_as_told_is_enough_and_not_too_long(limit: int, pauses: list[float]) -> None:
    _, window = admitted(limit, pauses)
    now = sum(pauses)
    wait_s = window.wait_s(now, limit)
    assert wait_s <= 2 * WINDOW_S
    if wait_s > 0.002:
        assert window.wait_s(now + wait_s - 0.001, limit) > 0.0
    assert window.try_take(now + wait_s + 1e-6, limit) == 0.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 3.0)), max_size=200))
def test_under_stress_a_client_gets_no_more_than_its_share(asks: list[tuple[str, float]]) -> None:
    """With k clients known from the start nobody gets more than the budget over one."""
    limiter = RateLimiter(RateLimitSettings(stressed_budget=6, limits={"x": 1_000}))
    now = 0.0
    admitted_at: dict[str, list[float]] = {}
    for client, pause in asks:
        now += pause
        if limiter.check(now, client, "x", Priority.HIGH, LoadLevel.STRESSED) is None:
            admitted_at.setdefault(client, []).append(now)
    for times in admitted_at.values():
        for first, begin in enumerate(times):
            assert bisect_left(times, begin + 10.0) - first <= 2 * 6 - 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(Priority), st.floats(0.0, 30.0)),
        max_size=150,
    )
)
def test_memory_is_bounded_and_critical_always_passes(
    asks: list[tuple[str, Priority, float]],
) -> None:
    limiter = RateLimiter(RateLimitSettings(clients_max=3))
    now = 0.0
    for client, priority, pause in asks:
        now += pause
        refusal = limiter.check(now, client, "job_status", priority, LoadLevel.OVERLOADED)
        assert (refusal is None) == (priority is Priority.CRITICAL)
        limiter.sweep(now)
        assert len(limiter) <= 3

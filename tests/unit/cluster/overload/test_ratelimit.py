from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.overload import (
    LoadLevel,
    Priority,
    RateLimited,
    RateLimiter,
    RateLimitSettings,
    SlidingWindow,
)
from hyperscale.cluster.overload.ratelimit import Cause

CRITICAL, HIGH, NORMAL, LOW = Priority


def ask(
    limiter: RateLimiter,
    now: float = 0.0,
    client: str = "c",
    operation: str = "job_submit",
    priority: Priority = HIGH,
    load: LoadLevel = LoadLevel.HEALTHY,
) -> RateLimited | None:
    return limiter.check(now, client, operation, priority, load)


def test_the_worked_example_gives_105() -> None:
    assert SlidingWindow(0.0, 60.0, current=30, previous=100).effective(15.0) == 105.0


def test_retry_after_is_the_time_until_it_fits() -> None:
    window = SlidingWindow(0.0, 10.0, current=5, previous=10)
    wait_s = window.try_take(0.0, 10)  # 5 + 10 * (1 - p) + 1 <= 10 from p = 0.6
    assert wait_s == pytest.approx(6.0)
    assert window.try_take(5.9, 10) > 0
    assert window.try_take(6.0, 10) == 0.0


def test_retry_after_reaches_into_the_next_window() -> None:
    window = SlidingWindow(0.0, 10.0, current=10)
    wait_s = window.try_take(4.0, 10)  # in the next window 10 * (1 - p) + 1 <= 10 from p = 0.1
    assert wait_s == pytest.approx(7.0)
    assert window.try_take(4.0 + wait_s, 10) == 0.0


def test_an_old_window_weighs_nothing() -> None:
    window = SlidingWindow(0.0, 10.0, current=10)
    assert window.effective(10.0) == 10.0
    window = SlidingWindow(0.0, 10.0, current=10)
    assert window.effective(20.0) == 0.0


def test_the_51st_job_submit_is_refused_and_another_clients_is_not() -> None:
    limiter = RateLimiter(RateLimitSettings(limits={"job_submit": 50}))
    assert [ask(limiter, 0.1 * n) for n in range(50)] == [None] * 50
    refusal = ask(limiter, 5.0)
    assert refusal is not None
    assert (refusal.operation, refusal.cause) == ("job_submit", Cause.LIMIT)
    assert ask(limiter, 5.0, client="other") is None
    assert ask(limiter, 5.0, operation="unlisted") is None
    assert ask(limiter, 5.0 + refusal.retry_after_s + 1e-6) is None


def test_unlisted_operations_have_the_default_limit() -> None:
    limiter = RateLimiter()
    answers = [ask(limiter, operation="something") for _ in range(101)]
    assert answers.count(None) == 100


@pytest.mark.parametrize("load", LoadLevel)
@pytest.mark.parametrize("priority", Priority)
def test_the_state_of_the_node_comes_first(load: LoadLevel, priority: Priority) -> None:
    refusal = ask(RateLimiter(), priority=priority, load=load)
    passes = {
        LoadLevel.HEALTHY: {CRITICAL, HIGH, NORMAL, LOW},
        LoadLevel.BUSY: {CRITICAL, HIGH, NORMAL},
        LoadLevel.STRESSED: {CRITICAL, HIGH},
        LoadLevel.OVERLOADED: {CRITICAL},
    }
    assert (refusal is None) == (priority in passes[load])
    if refusal is not None:
        assert refusal.cause is Cause.SHED
        assert refusal.retry_after_s > 0


def test_critical_is_exempt_but_for_a_cap_against_abuse() -> None:
    limiter = RateLimiter(RateLimitSettings(critical_limit=1_000))
    answers = [ask(limiter, operation="cancel", priority=CRITICAL) for _ in range(1_001)]
    assert answers[:1_000] == [None] * 1_000
    assert answers[-1] is not None
    assert answers[-1].cause is Cause.ABUSE
    assert ask(limiter, client="honest", operation="cancel", priority=CRITICAL) is None


def test_fair_share_spares_the_modest_client() -> None:
    limiter = RateLimiter(RateLimitSettings(stressed_budget=20, limits={"job_submit": 1_000}))
    modest, greedy = [], []
    for tenth in range(100):
        now = tenth / 10
        greedy += [ask(limiter, now, "greedy", load=LoadLevel.STRESSED) for _ in range(10)]
        if tenth % 20 == 0:
            modest.append(ask(limiter, now, "modest", load=LoadLevel.STRESSED))
    assert modest == [None] * 5
    assert greedy.count(None) <= 20
    assert limiter.refused[Cause.FAIR_SHARE] == len(greedy) - greedy.count(None)


def test_the_share_grows_when_others_fall_silent() -> None:
    limiter = RateLimiter(RateLimitSettings(stressed_budget=100))
    for client in range(10):
        ask(limiter, 0.0, f"client {client}", load=LoadLevel.STRESSED)
    assert limiter.fair_share(1.0) == 10
    ask(limiter, 11.0, "client 0", load=LoadLevel.STRESSED)
    assert limiter.fair_share(11.0) == 100


def test_the_share_is_never_below_one() -> None:
    limiter = RateLimiter(RateLimitSettings(stressed_budget=2))
    answers = [ask(limiter, 0.0, f"client {n}", load=LoadLevel.STRESSED) for n in range(50)]
    assert answers == [None] * 50


def test_idle_clients_are_forgotten() -> None:
    limiter = RateLimiter()
    for number in range(100):
        ask(limiter, float(number), f"client {number}")
    limiter.sweep(120.0)
    assert len(limiter) == 100
    limiter.sweep(460.0)
    assert len(limiter) == 0
    assert not limiter._active, "nor are those of a healthy node kept"


def test_clients_are_bounded_and_no_counter_that_weighs_is_forgotten() -> None:
    limiter = RateLimiter(RateLimitSettings(clients_max=2))
    assert ask(limiter, 0.0, "a") is ask(limiter, 0.0, "b") is None
    refusal = ask(limiter, 1.0, "c")
    assert refusal is not None
    assert refusal.cause is Cause.TOO_MANY_CLIENTS
    assert ask(limiter, 1.0, "c", priority=CRITICAL) is None
    assert ask(limiter, 20.0, "c") is None
    assert len(limiter) == 2


def test_a_refusal_travels() -> None:
    refusal = RateLimited("job_submit", Cause.LIMIT, 1.5)
    data = msgspec.msgpack.encode(refusal)
    assert msgspec.msgpack.decode(data, type=RateLimited) == refusal


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RateLimitSettings(limits={"x": 0})
    with pytest.raises(ValueError, match="positive"):
        RateLimitSettings(window_s=0.0)


# -- the client's side ---------------------------------------------------------------------------

from __future__ import annotations

from random import Random

import pytest

from hyperscale.cluster.calm import (
    DISPATCH,
    PROGRESS,
    REGISTRATION,
    Failure,
    GaveUp,
    Jitter,
    Retry,
    RetryPolicy,
)
from hyperscale.cluster.calm.retry import failure_of, spread


def delays(policy: RetryPolicy, seed: int = 1) -> list[float]:
    retry = Retry(policy, Random(seed), 0.0)
    drawn = []
    while isinstance(delay := retry.failed(0.0, Failure.NOT_SENT), float):
        drawn.append(delay)
    return drawn


@pytest.mark.parametrize(
    ("policy", "most"),
    [(REGISTRATION, [0.5, 1, 2]), (PROGRESS, [0.2, 0.4]), (DISPATCH, [0.3, 0.6])],
)
def test_full_jitter_fills_the_doubling_range(policy: RetryPolicy, most: list[float]) -> None:
    many = [delays(policy, seed) for seed in range(400)]
    for position, top in enumerate(most):
        drawn = [each[position] for each in many]
        assert 0 <= min(drawn) < top * 0.05
        assert top * 0.95 < max(drawn) <= top
        assert sum(drawn) / len(drawn) == pytest.approx(top / 2, rel=0.1)
    assert {len(each) for each in many} == {len(most)}


def test_equal_jitter_is_never_immediate() -> None:
    policy = RetryPolicy(attempts_max=3, base_delay_s=1.0, jitter=Jitter.EQUAL)
    for seed in range(100):
        first, second = delays(policy, seed)
        assert 0.5 <= first <= 1.0
        assert 1.0 <= second <= 2.0


def test_decorrelated_jitter_stays_within_base_and_cap() -> None:
    policy = RetryPolicy(
        attempts_max=50,
        base_delay_s=0.5,
        delay_max_s=4.0,
        jitter=Jitter.DECORRELATED,
        total_s=1e9,
    )
    drawn = delays(policy)
    assert all(0.5 <= delay <= 4.0 for delay in drawn)
    assert drawn[0] <= 1.5, "the first draw knows no earlier call"
    assert max(drawn) == 4.0


def test_the_cap_holds_for_any_number_of_attempts() -> None:
    policy = RetryPolicy(attempts_max=2_000, delay_max_s=1.0, total_s=1e9)
    assert max(delays(policy)) <= 1.0


def test_a_failure_for_good_surfaces_at_once() -> None:
    retry = Retry(RetryPolicy(), Random(1), 0.0, idempotent=True)
    assert retry.failed(0.0, Failure.FINAL) is GaveUp.NOT_RETRYABLE


def test_what_may_have_happened_is_repeated_only_when_harmless() -> None:
    guarded = Retry(RetryPolicy(), Random(1), 0.0)
    assert guarded.failed(0.0, Failure.UNKNOWN) is GaveUp.NOT_IDEMPOTENT
    harmless = Retry(RetryPolicy(), Random(1), 0.0, idempotent=True)
    assert isinstance(harmless.failed(0.0, Failure.UNKNOWN), float)


def test_retry_after_is_a_floor_with_jitter_on_top() -> None:
    waits = {
        Retry(RetryPolicy(), Random(seed), 0.0).failed(0.0, Failure.BUSY, 5.0) for seed in range(50)
    }
    assert all(isinstance(wait, float) and 5.0 <= wait <= 5.5 for wait in waits)
    assert len(waits) > 40


def test_no_wait_goes_beyond_the_deadline() -> None:
    retry = Retry(RetryPolicy(total_s=10.0), Random(1), 0.0)
    assert retry.failed(0.0, Failure.BUSY, 10.0) is GaveUp.DEADLINE
    retry = Retry(RetryPolicy(total_s=10.0), Random(1), 0.0)
    assert retry.failed(10.0, Failure.NOT_SENT) is GaveUp.DEADLINE


def test_attempts_are_counted_with_the_first() -> None:
    retry = Retry(RetryPolicy(attempts_max=1), Random(1), 0.0)
    assert retry.failed(0.0, Failure.NOT_SENT) is GaveUp.ATTEMPTS


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ConnectionRefusedError(), Failure.NOT_SENT),
        (ConnectionResetError(), Failure.UNKNOWN),
        (TimeoutError(), Failure.UNKNOWN),
        (PermissionError(), Failure.FINAL),
        (FileNotFoundError(), Failure.FINAL),
        (ValueError(), Failure.FINAL),
    ],
)
def test_only_errors_of_a_connection_are_tried_again(error: Exception, failure: Failure) -> None:
    assert failure_of(error) is failure


def test_periods_are_spread() -> None:
    drawn = [spread(10.0, 0.1, Random(seed)) for seed in range(100)]
    assert all(9.0 <= period <= 11.0 for period in drawn)
    assert len(set(drawn)) == 100


@pytest.mark.parametrize(
    "wrong", [{"attempts_max": 0}, {"base_delay_s": 0}, {"base_delay_s": 40.0}, {"total_s": 0}]
)
def test_impossible_policies_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetryPolicy(**wrong)  # type: ignore[arg-type]

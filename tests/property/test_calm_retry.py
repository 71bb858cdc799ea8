"""Retries end: by attempts, by time, by reason; and never wait longer than agreed."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.calm import Failure, GaveUp, Jitter, Retry, RetryPolicy

policies = st.builds(
    RetryPolicy,
    attempts_max=st.integers(1, 8),
    base_delay_s=st.floats(0.001, 2.0),
    delay_max_s=st.floats(2.0, 30.0),
    jitter=st.sampled_from(Jitter),
    total_s=st.floats(0.1, 100.0),
)
failures = st.lists(
    st.tuples(st.sampled_from(Failure), st.none() | st.floats(-1.0, 20.0), st.floats(0.0, 10.0)),
    min_size=10,
    max_size=10,
)


@given(policies, failures, st.booleans(), st.integers(0, 2**32))
def test_every_call_ends(
    policy: RetryPolicy,
    history: list[tuple[Failure, float | None, float]],
    idempotent: bool,
    seed: int,
) -> None:
    retry = Retry(policy, Random(seed), 0.0, idempotent=idempotent)
    now = 0.0
    for attempt, (failure, retry_after_s, took_s) in enumerate(history, 1):
        now += took_s
        answer = retry.failed(now, failure, retry_after_s)
        if isinstance(answer, GaveUp):
            break
        asked_s = max(0.0, retry_after_s or 0.0)
        assert asked_s <= answer <= asked_s + policy.delay_max_s
        assert now + answer < policy.total_s
        assert attempt < policy.attempts_max
        assert failure is not Failure.FINAL
        assert idempotent or failure is not Failure.UNKNOWN
        now += answer
    else:
        raise AssertionError("it never gave up")

"""Whether, when and where a failed attempt is repeated (S-54, S-55).

The delay becomes the job's durable due time: no leader keeps a retry in its memory.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hyperscale.scheduler.model.failure import Failure
from hyperscale.scheduler.model.spec import RetryPolicy
from hyperscale.scheduler.policies.chance import chance

TRANSIENT_SPREAD_S: Final = 1.0
"""At once for everybody would be a storm (T-23)."""

CLAIMS_LOST_MAX: Final = 10
"""So many claims without one start, and the job is taken for what kills its workers (T-3)."""

FINAL: Final = frozenset({Failure.PERMANENT, Failure.CANCELLED, Failure.NEVER_STARTED})
ELSEWHERE: Final = frozenset({Failure.EXHAUSTED, Failure.TIMEOUT, Failure.WORKER_LOST})


class Retry(NamedTuple):
    delay_s: float
    elsewhere: bool


def decide_retry(policy: RetryPolicy, failure: Failure, retries: int, job_id: str) -> Retry | None:
    """What follows the failure of a job that was retried `retries` times; None: it is over."""
    if failure in FINAL or retries >= policy.max_retries:
        return None
    number = retries + 1
    roll = chance("retry", job_id, number)
    if failure is Failure.TRANSIENT:
        return Retry(roll * TRANSIENT_SPREAD_S, elsewhere=False)
    # The exponent is bounded so that the power cannot overflow; max_s rules long before.
    delay = min(policy.initial_s * policy.factor ** min(retries, 64), policy.max_s)
    return Retry(delay * (1 + policy.jitter * (2 * roll - 1)), failure in ELSEWHERE)

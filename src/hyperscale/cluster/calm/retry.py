"""Whether and when to try again (A-60).

One `Retry` belongs to one call, so that calls never share a backoff. Four things end it: the
attempts, the total time, an error that time does not mend, and the guard of idempotency: what may
have been carried out is repeated only when repeating is harmless. A server's retry-after is a
floor, and jitter comes on top of it, or all who were refused together would return together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

DOUBLINGS_MAX = 32  # beyond any cap; keeps the power finite


class Jitter(Enum):
    """With m = min(cap, base * 2^attempt)."""

    FULL = "full"  # U(0, m): spreads best, the default
    EQUAL = "equal"  # m/2 + U(0, m/2): never immediate
    DECORRELATED = "decorrelated"  # min(cap, U(base, 3 * previous))


class Failure(Enum):
    """What an error says about the call, not what it is called."""

    NOT_SENT = "not sent"  # the other side never saw it: repeating is safe
    UNKNOWN = "maybe carried out"  # lost answer: repeating is safe only when idempotent
    BUSY = "refused for now"  # seen and not carried out: repeating is safe, later
    FINAL = "refused for good"  # time will not change the answer


class GaveUp(Enum):
    ATTEMPTS = "all attempts failed"
    DEADLINE = "the time for it is over"
    NOT_RETRYABLE = "trying again would not help"
    NOT_IDEMPOTENT = "it may have been carried out and must not be repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    attempts_max: int = 3
    """The first one included."""

    base_delay_s: float = 0.5
    delay_max_s: float = 30.0
    jitter: Jitter = Jitter.FULL

    total_s: float = 60.0
    """From the first attempt to the last chance to begin another."""

    def __post_init__(self) -> None:
        if self.attempts_max < 1:
            raise ValueError("attempts_max must be at least 1: a call that is never made fails")
        if not 0 < self.base_delay_s <= self.delay_max_s:
            raise ValueError("base_delay_s must be positive and at most delay_max_s")
        if self.total_s <= 0:
            raise ValueError("total_s must be positive")


# B-70 to B-75. Retries there are attempts after the first.
REGISTRATION: Final = RetryPolicy(attempts_max=4, base_delay_s=0.5)
PROGRESS: Final = RetryPolicy(attempts_max=3, base_delay_s=0.2)  # short: the next one comes soon
DISPATCH: Final = RetryPolicy(attempts_max=3, base_delay_s=0.3)


class Retry:
    __slots__ = ("_deadline", "_dice", "_idempotent", "_policy", "_previous_s", "attempts")

    def __init__(
        self, policy: RetryPolicy, dice: Random, now: float, *, idempotent: bool = False
    ) -> None:
        self._policy = policy
        self._dice = dice
        self._idempotent = idempotent
        self._deadline = now + policy.total_s
        self._previous_s = policy.base_delay_s
        self.attempts = 0

    def failed(
        self, now: float, failure: Failure, retry_after_s: float | None = None
    ) -> float | GaveUp:
        """Seconds to wait before the next attempt, or why there is none. Raise the last error."""
        self.attempts += 1
        if failure is Failure.FINAL:
            return GaveUp.NOT_RETRYABLE
        if failure is Failure.UNKNOWN and not self._idempotent:
            return GaveUp.NOT_IDEMPOTENT
        if self.attempts >= self._policy.attempts_max:
            return GaveUp.ATTEMPTS
        delay_s = self._draw() + max(0.0, retry_after_s or 0.0)
        if now + delay_s >= self._deadline:
            return GaveUp.DEADLINE
        return delay_s

    def _draw(self) -> float:
        policy, dice = self._policy, self._dice
        if policy.jitter is Jitter.DECORRELATED:
            drawn = dice.uniform(policy.base_delay_s, 3 * self._previous_s)
            self._previous_s = min(policy.delay_max_s, drawn)
            return self._previous_s
        doubled = policy.base_delay_s * 2.0 ** min(self.attempts - 1, DOUBLINGS_MAX)
        most_s = min(policy.delay_max_s, doubled)
        if policy.jitter is Jitter.EQUAL:
            return most_s / 2 + dice.uniform(0.0, most_s / 2)
        return dice.uniform(0.0, most_s)


def failure_of(error: BaseException) -> Failure:
    """Errors of the standard library. A missing file or permission is an OSError as well, and no
    attempt will mend it, so only those of a connection are tried again."""
    if isinstance(error, ConnectionRefusedError):
        return Failure.NOT_SENT
    if isinstance(error, ConnectionError | TimeoutError):
        return Failure.UNKNOWN
    return Failure.FINAL


def spread(period_s: float, share: float, dice: Random) -> float:
    """A period that differs by up to `share` each time, for heartbeats, syncs and health checks:
    what starts together must not stay together."""
    return period_s * (1.0 + dice.uniform(-share, share))

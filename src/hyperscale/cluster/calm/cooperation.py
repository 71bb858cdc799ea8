"""The client's side of rate limits (D-26): wait before being refused, and obey when refused.

`RateLimitObedience` knows the limits and the server's hints for each operation; a `Patience` is
the bounded persistence of one request.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.cluster.calm.ratelimit import RateLimitSettings, SlidingWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class CooperationSettings:
    retries_max: int = 3
    wait_total_s: float = 60.0
    wait_growth: float = 1.5
    retry_after_default_s: float = 1.0
    """When the server does not say."""

    server: RateLimitSettings = field(default_factory=RateLimitSettings)
    """What the server is known to allow; one that allows less says so by refusing."""


class Patience:
    """How long one request is tried."""

    __slots__ = ("_deadline", "_settings", "refusals")

    def __init__(self, settings: CooperationSettings, now: float) -> None:
        self._settings = settings
        self._deadline = now + settings.wait_total_s
        self.refusals = 0

    def refused(self, now: float, retry_after_s: float | None = None) -> float | None:
        """Seconds to wait before the next try; None: give up and tell the user."""
        settings = self._settings
        asked_s = settings.retry_after_default_s if retry_after_s is None else retry_after_s
        wait_s = max(asked_s, 0.0) * settings.wait_growth**self.refusals
        self.refusals += 1
        if self.refusals > settings.retries_max or now + wait_s > self._deadline:
            return None
        return wait_s

    def allows(self, now: float, wait_s: float) -> bool:
        return now + wait_s <= self._deadline


class RateLimitObedience:
    def __init__(self, settings: CooperationSettings | None = None) -> None:
        self.settings = settings or CooperationSettings()
        self._sent: dict[str, SlidingWindow] = {}
        self._held_until: dict[str, float] = {}

    def begin(self, now: float) -> Patience:
        return Patience(self.settings, now)

    def wait_s(self, now: float, operation: str) -> float:
        """Seconds to wait before sending this operation; call again after waiting, another
        request may have taken the place."""
        held_s = self._held_until.get(operation, now) - now
        window = self._sent.get(operation)
        full_s = window.wait_s(now, self.settings.server.limit(operation)) if window else 0.0
        return max(held_s, full_s, 0.0)

    def sent(self, now: float, operation: str) -> None:
        window = self._sent.get(operation)
        if window is None:
            window = self._sent[operation] = SlidingWindow(now, self.settings.server.window_s)
        window.effective(now)
        window.current += 1

    def refused(
        self, now: float, operation: str, patience: Patience, retry_after_s: float | None = None
    ) -> float | None:
        """As `Patience.refused`; other requests for this operation wait as long."""
        wait_s = patience.refused(now, retry_after_s)
        hold_s = self.settings.retry_after_default_s if retry_after_s is None else retry_after_s
        until = now + (hold_s if wait_s is None else wait_s)
        self._held_until[operation] = max(until, self._held_until.get(operation, until))
        return wait_s

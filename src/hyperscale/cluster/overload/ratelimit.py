"""How often one client may ask for one thing (D-21 to D-27).

A sliding-window counter: `current + previous * (1 - progress through the current window)`, with
this request included, must stay within the limit. What that bounds, for a limit L per window W:

- never more than L admitted in one counting window;
- at most 2L - 1 in any stretch of length W wherever it begins, and that much only after a burst
  at the very end of a window that follows a quiet one;
- L per W in the long run.

Limits hold per client and operation. CRITICAL is exempt but for a large cap against abuse. The
state of the node comes first: what it sheds is refused whatever the counters say, and when it is
stressed the clients that are left share one budget evenly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from hyperscale.cluster.overload.priority import RETRY_AFTER_S, LoadLevel, Priority, sheds


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitSettings:
    window_s: float = 10.0
    limits: Mapping[str, int] = field(default_factory=dict)
    """Requests per window of one client, by operation. Not of CRITICAL ones."""

    limit_default: int = 100
    """Of operations that are not listed."""

    critical_limit: int = 10_000
    """CRITICAL requests per window of one client, all operations together: a thousand a second
    is no member of a cluster any more."""

    stressed_budget: int = 1_000
    """Requests per window of all clients together while the node is stressed."""

    client_idle_s: float = 300.0
    sweep_interval_s: float = 60.0
    clients_max: int = 10_000
    """A new client beyond this is refused unless one has been quiet for two windows, whose
    counters weigh nothing any more."""

    def __post_init__(self) -> None:
        counts = (self.limit_default, self.critical_limit, self.stressed_budget, self.clients_max)
        if min(*counts, *self.limits.values()) < 1:
            raise ValueError("every limit must be at least 1")
        if self.window_s <= 0:
            raise ValueError("window_s must be positive")

    def limit(self, operation: str) -> int:
        return self.limits.get(operation, self.limit_default)


class SlidingWindow:
    """The counter of D-23. Knows its length, not its limit: a fair share changes."""

    __slots__ = ("current", "previous", "start", "window_s")

    def __init__(self, now: float, window_s: float, current: int = 0, previous: int = 0) -> None:
        self.window_s = window_s
        self.start = now
        self.current = current
        self.previous = previous

    def effective(self, now: float) -> float:
        self._advance(now)
        return self.current + self.previous * (1.0 - (now - self.start) / self.window_s)

    def try_take(self, now: float, limit: int) -> float:
        """0 and counted, or the seconds until it would fit and not counted."""
        if self.effective(now) + 1.0 <= limit:
            self.current += 1
            return 0.0
        return self.wait_s(now, limit)

    def wait_s(self, now: float, limit: int) -> float:
        """Seconds until one more fits if nothing else is admitted before."""
        if self.effective(now) + 1.0 <= limit:
            return 0.0
        room = limit - 1 - self.current
        if room >= 0 and self.previous:
            fits_at = self.start + self.window_s * (1.0 - room / self.previous)
        else:
            fits_at = self.start + self.window_s * (2.0 - (limit - 1) / self.current)
        return max(fits_at - now, 0.001)  # never an invitation to return within this instant

    def _advance(self, now: float) -> None:
        windows = int((now - self.start) / self.window_s)
        if windows >= 1:
            self.previous = self.current if windows == 1 else 0
            self.current = 0
            self.start += windows * self.window_s


class Cause(StrEnum):
    SHED = "shed"
    LIMIT = "limit"
    FAIR_SHARE = "fair_share"
    ABUSE = "abuse"
    TOO_MANY_CLIENTS = "too_many_clients"


class RateLimited(msgspec.Struct, frozen=True, tag="rate_limited"):
    """A refusal a client can act on."""

    operation: str
    cause: Cause
    retry_after_s: float


@dataclass(slots=True)
class _Client:
    seen_at: float
    windows: dict[str, SlidingWindow] = field(default_factory=dict)
    stressed: SlidingWindow | None = None
    critical: SlidingWindow | None = None


class RateLimiter:
    """`client` is who the certificate says it is, never what a message claims."""

    def __init__(self, settings: RateLimitSettings | None = None) -> None:
        self._settings = settings or RateLimitSettings()
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._active: OrderedDict[str, float] = OrderedDict()
        self._swept_at = 0.0
        self.refused: dict[Cause, int] = dict.fromkeys(Cause, 0)

    def __len__(self) -> int:
        return len(self._clients)

    def check(
        self, now: float, client: str, operation: str, priority: Priority, load: LoadLevel
    ) -> RateLimited | None:
        """None: go ahead, and it is counted."""
        refusal = self._judge(now, client, operation, priority, load)
        if refusal is not None:
            self.refused[refusal.cause] += 1
        return refusal

    def sweep(self, now: float) -> None:
        """Forget clients that have been idle; cheap when called too often."""
        if now - self._swept_at < self._settings.sweep_interval_s:
            return
        self._swept_at = now
        while self._clients:
            name, client = next(iter(self._clients.items()))
            if now - client.seen_at < self._settings.client_idle_s:
                break
            del self._clients[name]
        self._forget_silent(now)

    def fair_share(self, now: float) -> int:
        """Requests per window for each client that asked within the last window."""
        self._forget_silent(now)
        return max(1, self._settings.stressed_budget // max(1, len(self._active)))

    def _forget_silent(self, now: float) -> None:
        oldest = now - self._settings.window_s
        while self._active and next(iter(self._active.values())) < oldest:
            self._active.popitem(last=False)

    def _judge(
        self, now: float, name: str, operation: str, priority: Priority, load: LoadLevel
    ) -> RateLimited | None:
        if sheds(load, priority):
            return RateLimited(operation, Cause.SHED, RETRY_AFTER_S[load])
        client = self._client(now, name)
        if client is None:
            if priority is Priority.CRITICAL:
                return None
            return RateLimited(operation, Cause.TOO_MANY_CLIENTS, self._settings.window_s)
        if priority is Priority.CRITICAL:
            return self._judge_critical(now, client, operation)
        if load >= LoadLevel.STRESSED and (wait_s := self._stressed_wait_s(now, client)):
            return RateLimited(operation, Cause.FAIR_SHARE, wait_s)
        window = client.windows.get(operation)
        if window is None:
            window = client.windows[operation] = SlidingWindow(now, self._settings.window_s)
        if wait_s := window.try_take(now, self._settings.limit(operation)):
            return RateLimited(operation, Cause.LIMIT, wait_s)
        if load >= LoadLevel.STRESSED and client.stressed is not None:
            client.stressed.current += 1
        return None

    def _judge_critical(self, now: float, client: _Client, operation: str) -> RateLimited | None:
        if client.critical is None:
            client.critical = SlidingWindow(now, self._settings.window_s)
        wait_s = client.critical.try_take(now, self._settings.critical_limit)
        return RateLimited(operation, Cause.ABUSE, wait_s) if wait_s else None

    def _stressed_wait_s(self, now: float, client: _Client) -> float:
        if client.stressed is None:
            client.stressed = SlidingWindow(now, self._settings.window_s)
        return client.stressed.wait_s(now, self.fair_share(now))

    def _client(self, now: float, name: str) -> _Client | None:
        client = self._clients.get(name)
        if client is None:
            if not self._has_room(now):
                return None
            client = self._clients[name] = _Client(now)
        client.seen_at = now
        self._clients.move_to_end(name)
        self._active[name] = now
        self._active.move_to_end(name)
        return client

    def _has_room(self, now: float) -> bool:
        if len(self._clients) < self._settings.clients_max:
            return True
        name, oldest = next(iter(self._clients.items()))
        if now - oldest.seen_at < 2 * self._settings.window_s:
            return False
        del self._clients[name]
        return True

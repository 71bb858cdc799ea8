"""A small pool of peers a node stays with: primaries serve, backups are warm.

Requests go round the primaries. A peer that fails or turns slow is evicted, a backup promoted at
once, and after a jitter the empty place is refilled from the ranked candidates by power of two. A
peer with errors is only marked degraded, and evicted when that lasts.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from hyperscale.cluster.placement.choice import Ewma, power_of_two


@dataclass(frozen=True, slots=True, kw_only=True)
class StickySettings:
    primaries: int = 3
    backups: int = 2
    consecutive_failures_max: int = 3
    """Tolerated; the next one evicts."""
    error_rate_max: float = 0.05
    samples_min: int = 20
    """No judgement on error rate or slowness before this many requests."""
    degraded_max_s: float = 30.0
    """How long errors above the limit may last."""
    slow_factor: float = 3.0
    """Evicted when the mean latency exceeds this many times its own p99 baseline."""
    baseline_window: int = 200
    """Latencies the p99 baseline looks back on."""
    refill_delay_min_s: float = 0.1
    refill_delay_max_s: float = 0.5
    """Jitter, so that the users of one dead peer do not all turn to the next at once."""
    age_max_s: float = 3600.0
    """After this a peer may be exchanged for a better ranked one."""
    ewma_alpha: float = 0.2


class Evicted(Enum):
    FAILURES = "consecutive failures"
    ERRORS = "error rate"
    SLOW = "slow"
    GONE = "no longer a candidate"


@dataclass(frozen=True, slots=True)
class Eviction:
    peer: str
    reason: Evicted


@dataclass(slots=True)
class _Peer:
    since: float
    latency: Ewma
    errors: Ewma
    recent: deque[float]
    baseline_s: float | None = None
    failures_in_a_row: int = 0
    degraded_since: float | None = None


@dataclass(slots=True)
class StickyPool:
    settings: StickySettings
    dice: random.Random
    primaries: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    _candidates: list[str] = field(default_factory=list)
    _peers: dict[str, _Peer] = field(default_factory=dict)
    _turn: int = 0
    refill_at: float | None = None
    """When to call `tick`; None while the pool is full or nobody is left to fill it."""

    def offer(self, now: float, ranked: Sequence[str]) -> list[Eviction]:
        """The candidates changed, best first. Members stay while they are candidates at all; one
        past its age gives way to a better ranked peer, one per offer."""
        self._candidates = list(dict.fromkeys(ranked))
        gone = [self._evict(now, p, Evicted.GONE) for p in self._members() if p not in ranked]
        self._retire_oldest(now)
        if not self._members():
            self._fill(now)
        else:
            self._plan_refill(now)
        return gone

    def pick(self) -> str | None:
        """Next primary in turn."""
        if not self.primaries:
            return None
        self._turn += 1
        return self.primaries[self._turn % len(self.primaries)]

    def degraded(self, peer: str) -> bool:
        known = self._peers.get(peer)
        return known is not None and known.degraded_since is not None

    def succeeded(self, now: float, peer: str, latency_s: float) -> Eviction | None:
        known = self._peers.get(peer)
        if known is None:
            return None
        known.failures_in_a_row = 0
        known.errors.add(0.0)
        known.latency.add(latency_s)
        reason = self._judge_errors(now, known) or self._judge_latency(known, latency_s)
        return self._evict(now, peer, reason) if reason else None

    def failed(self, now: float, peer: str) -> Eviction | None:
        known = self._peers.get(peer)
        if known is None:
            return None
        known.failures_in_a_row += 1
        known.errors.add(1.0)
        if known.failures_in_a_row > self.settings.consecutive_failures_max:
            return self._evict(now, peer, Evicted.FAILURES)
        reason = self._judge_errors(now, known)
        return self._evict(now, peer, reason) if reason else None

    def tick(self, now: float) -> None:
        if self.refill_at is not None and now >= self.refill_at:
            self._fill(now)

    # -- judging ---------------------------------------------------------------------------------

    def _judge_errors(self, now: float, peer: _Peer) -> Evicted | None:
        settings = self.settings
        if peer.errors.samples < settings.samples_min:
            return None
        if peer.errors.value <= settings.error_rate_max:
            peer.degraded_since = None
            return None
        if peer.degraded_since is None:
            peer.degraded_since = now
        return Evicted.ERRORS if now - peer.degraded_since >= settings.degraded_max_s else None

    def _judge_latency(self, peer: _Peer, latency_s: float) -> Evicted | None:
        """The baseline is frozen while the mean is above it, or it would follow the slowness."""
        baseline = peer.baseline_s
        if baseline is None or peer.latency.value <= baseline:
            peer.recent.append(latency_s)
            if len(peer.recent) >= self.settings.samples_min:
                ordered = sorted(peer.recent)
                peer.baseline_s = ordered[int(0.99 * (len(ordered) - 1))]
            return None
        slow = peer.latency.value > self.settings.slow_factor * baseline
        return Evicted.SLOW if slow else None

    # -- membership ------------------------------------------------------------------------------

    def _members(self) -> list[str]:
        return self.primaries + self.backups

    def _evict(self, now: float, peer: str, reason: Evicted) -> Eviction:
        """The evicted peer is not a candidate again before the next offer."""
        self._drop(peer)
        self._candidates = [c for c in self._candidates if c != peer]
        self._plan_refill(now)
        return Eviction(peer, reason)

    def _drop(self, peer: str) -> None:
        if peer in self.primaries:
            self.primaries.remove(peer)
            if self.backups:
                self.primaries.append(self.backups.pop(0))
        else:
            self.backups.remove(peer)
        del self._peers[peer]

    def _retire_oldest(self, now: float) -> None:
        order = {peer: place for place, peer in enumerate(self._candidates)}
        waiting = [c for c in self._candidates if c not in self._peers]
        aged = [p for p in self._members() if now - self._peers[p].since > self.settings.age_max_s]
        if waiting and aged:
            oldest = min(aged, key=lambda p: (self._peers[p].since, p))
            if order[waiting[0]] < order[oldest]:
                self._drop(oldest)

    def _plan_refill(self, now: float) -> None:
        wanted = self.settings.primaries + self.settings.backups
        open_places = len(self._members()) < wanted
        if not open_places or len(self._candidates) <= len(self._peers):
            self.refill_at = None
        elif self.refill_at is None:
            settings = self.settings
            self.refill_at = now + self.dice.uniform(
                settings.refill_delay_min_s, settings.refill_delay_max_s
            )

    def _fill(self, now: float) -> None:
        self.refill_at = None
        settings = self.settings
        while len(self._members()) < settings.primaries + settings.backups:
            free = [c for c in self._candidates if c not in self._peers]
            place = {peer: float(i) for i, peer in enumerate(free)}
            chosen = power_of_two(free, place.__getitem__, self.dice)
            if chosen is None:
                return
            self._peers[chosen] = _Peer(
                since=now,
                latency=Ewma(settings.ewma_alpha),
                errors=Ewma(settings.ewma_alpha),
                recent=deque(maxlen=settings.baseline_window),
            )
            short = len(self.primaries) < settings.primaries
            (self.primaries if short else self.backups).append(chosen)

"""Three signals of a node and what follows from them.

Live: SWIM decides. Ready: it may take work. Progress: the counters of the work itself move; how
busy its cores are says nothing, a load generator is meant to run hot. A stuck node is drained
first and evicted after a timer. When many fail together the fault is more likely between us and
them, so nobody is evicted, for a while.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Final


class Progress(Enum):
    IDLE = "idle"
    PROGRESSING = "progressing"
    STALLED = "stalled"
    STUCK = "stuck"


class Routing(Enum):
    ROUTE = "route"
    HOLD = "hold"
    INVESTIGATE = "investigate"
    DRAIN = "drain"
    EVICT = "evict"


def route(live: bool, ready: bool, progress: Progress) -> Routing:
    """Where rows of the table overlap, the graver one holds."""
    if not live:
        return Routing.EVICT
    if progress is Progress.STUCK:
        return Routing.DRAIN
    if not ready:
        return Routing.HOLD
    return Routing.INVESTIGATE if progress is Progress.STALLED else Routing.ROUTE


class Grade(Enum):
    """How fast, against the node's own trailing median."""

    IDLE = "idle"
    NORMAL = "normal"
    SLOW = "slow"
    DEGRADED = "degraded"
    STUCK = "stuck"


def grade(ratio: float) -> Grade:
    if ratio >= 0.8:
        return Grade.NORMAL
    if ratio >= 0.3:
        return Grade.SLOW
    return Grade.DEGRADED if ratio > 0 else Grade.STUCK


SAMPLES: Final = 15
SAMPLE_S: Final = 1.0


# Fewer events than this are no rate.
EVENTS_MIN: Final = 5


class Pace:
    """Movement of a node's counters. `moved` is told as work done since the last time."""

    __slots__ = ("_active", "_gathered", "_last", "_rates", "_sample_at", "frozen_s", "idle_s")

    def __init__(self) -> None:
        self.idle_s = 0.0  # nothing on it has moved for so long,
        self.frozen_s = 0.0  # or at least one of its parts has not
        self._active = False
        self._gathered = 0
        self._sample_at = 0.0
        self._rates: deque[float] = deque(maxlen=SAMPLES)
        self._last = 0.0

    def work(self, now: float, active: bool) -> None:
        """Whether it has work whose counters should move."""
        if not active:
            self._rates.clear()
        elif not self._active:
            self._sample_at = now
            self._gathered = 0
        self._active = active

    def moved(self, now: float, amount: int) -> None:
        if not self._active or amount <= 0:
            return
        self._gathered += amount
        if now - self._sample_at >= SAMPLE_S:
            self._last = self._gathered / (now - self._sample_at)
            self._rates.append(self._last)
            self._gathered, self._sample_at = 0, now

    def grade(self, now: float, stuck_s: float) -> Grade:
        if not self._active:
            return Grade.IDLE
        if self.idle_s >= stuck_s:
            return Grade.STUCK
        usual = median(self._rates) if self._rates else 0.0
        measured_s = max(now - self._sample_at, SAMPLE_S)
        if usual * measured_s < EVENTS_MIN:
            return Grade.NORMAL
        # Whether it is right that nothing moves at all, its worker knows.
        fresh = self._gathered / measured_s if self._gathered else self._last
        return max(grade(fresh / usual), Grade.DEGRADED, key=_BETTER.__getitem__)

    def progress(self, now: float, stalled_s: float, stuck_s: float) -> Progress:
        found = self.grade(now, stuck_s)
        if found is Grade.IDLE:
            return Progress.IDLE
        if found is Grade.STUCK:
            return Progress.STUCK
        if found is Grade.DEGRADED or self.frozen_s >= stalled_s:
            return Progress.STALLED
        return Progress.PROGRESSING


# Only standing still for the whole of `stuck_s` is stuck; a slow second is at most degraded.
_BETTER: Final = {
    Grade.STUCK: 0, Grade.DEGRADED: 1, Grade.SLOW: 2, Grade.NORMAL: 3, Grade.IDLE: 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signals:
    live: bool = True
    ready: bool = True
    progress: Progress = Progress.IDLE
    suspect: bool = False
    """Said to be dead, but not for long enough to act on it."""
    overdue: bool = False
    """Stuck, or out of extensions, and its timer has run out."""

    @property
    def routing(self) -> Routing:
        return route(self.live, self.ready, self.progress)

    @property
    def may_evict(self) -> bool:
        return not self.live or self.overdue

    @property
    def is_failing(self) -> bool:
        return self.suspect or self.may_evict


@dataclass(frozen=True, slots=True)
class Eviction:
    evict: bool
    reason: str  # "unknown node", "healthy", "systemic failure" or "criteria met"
    correlated: tuple[str, ...] = ()
    again_at: float | None = None  # a hold ends then


@dataclass(slots=True)
class _Node:
    signals: Signals
    failing_since: float | None = None


class HealthTracker:
    def __init__(self, share: float, population_min: int, hold_s: float) -> None:
        self._share = share
        self._population_min = population_min
        self._hold_s = hold_s
        self._nodes: dict[str, _Node] = {}

    def update(self, now: float, node: str, signals: Signals) -> None:
        known = self._nodes.setdefault(node, _Node(signals))
        known.signals = signals
        if not signals.is_failing:
            known.failing_since = None
        elif known.failing_since is None:
            known.failing_since = now

    def remove(self, node: str) -> None:
        self._nodes.pop(node, None)

    def clear(self) -> None:
        self._nodes.clear()

    def should_evict(self, now: float, node: str) -> Eviction:
        known = self._nodes.get(node)
        if known is None:
            return Eviction(False, "unknown node")
        return self._judge(now, known)

    def _judge(self, now: float, known: _Node) -> Eviction:
        if known.failing_since is None or not known.signals.may_evict:
            return Eviction(False, "healthy")
        bad = {n: k.failing_since for n, k in self._nodes.items() if k.failing_since is not None}
        failing = [n for n, since in bad.items() if now < since + self._hold_s]
        population = len(self._nodes) - len(bad) + len(failing)
        if population >= self._population_min and len(failing) >= self._share * population:
            held_until = known.failing_since + self._hold_s
            if now < held_until:
                return Eviction(False, "systemic failure", tuple(sorted(failing)), held_until)
        return Eviction(True, "criteria met")

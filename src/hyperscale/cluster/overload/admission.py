"""How many messages may be worked on at once, and who goes first when slots run out.

A message gets a slot at once or is refused at once; nothing waits. Each class owns slots, and a
higher class may use idle slots of the lower ones. That is three nested ceilings:

    LOW                     <= low
    LOW + NORMAL            <= low + normal
    LOW + NORMAL + HIGH     <= min(total, low + normal + high)

So LOW is refused before NORMAL and NORMAL before HIGH, always: whoever meets a ceiling meets it
for every class below as well. CRITICAL counts toward none of them and is never shed. A single
source may not abuse that: above its own cap of CRITICAL messages in flight it is refused, and
counted apart, while every other source is served.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hyperscale.cluster.overload.priority import SHEDDABLE, LoadLevel, Priority, sheds


class AdmissionResult(Enum):
    ADMITTED = "admitted"
    SHED = "shed: the node is overloaded"
    FULL = "full: no slot left for this class"
    ABUSE = "abuse: too many critical messages from one source"
    ALL_SUBSCRIBED = "full: no subscription left"
    SUBSCRIBED = "full: too many subscriptions of one source"

    @property
    def admitted(self) -> bool:
        return self is AdmissionResult.ADMITTED


class Pressure(Enum):
    """How close the ceilings are."""

    HEALTHY = "healthy"
    PRESSURED = "pressured"  # LOW is refused
    OVERLOADED = "overloaded"  # only HIGH and CRITICAL are accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """Messages in flight; 0 is no limit. TCP and UDP have an admission each."""

    total: int = 1_000
    high: int = 500
    normal: int = 300
    low: int = 200

    high_when_overloaded: int = 25
    """HIGH messages at once while HIGH is shed: a twentieth of its slots, for state sync."""

    subscriptions: int = 1_000
    subscriptions_per_source: int = 250
    """Streams of updates at once. They last as long as a job and hold no slot; what they cost is
    a look at the job ten times a second each."""

    critical_per_source: int = 256
    """A well-behaved peer has a handful in flight: a probe, a heartbeat, a cancellation per job.
    Well above the jobs of one peer that could end in the same moment."""

    def __post_init__(self) -> None:
        if min(self.total, self.high, self.normal, self.low) < 0:
            raise ValueError("total, high, normal and low must not be negative")
        if min(self.critical_per_source, self.high_when_overloaded) < 1:
            raise ValueError("critical_per_source and high_when_overloaded must be at least 1")
        if not 1 <= self.subscriptions_per_source <= self.subscriptions:
            raise ValueError("subscriptions_per_source must be between 1 and subscriptions")

    def ceiling(self, priority: Priority) -> float:
        """How many of this class and of those below it may be in flight together."""
        own = {Priority.HIGH: self.high, Priority.NORMAL: self.normal, Priority.LOW: self.low}
        counted = [limit for kind, limit in own.items() if kind >= priority]
        slots = math.inf if 0 in counted else sum(counted)
        return min(slots, self.total or math.inf)


# What each role is sized for.
SETTINGS_BY_ROLE: Final[Mapping[str, AdmissionSettings]] = {
    "gate": AdmissionSettings(
        total=2_000, high=1_000, normal=600, low=400, high_when_overloaded=50
    ),
    "manager": AdmissionSettings(
        total=5_000,
        high=2_500,
        normal=1_500,
        low=1_000,
        high_when_overloaded=125,
        subscriptions=2_500,
    ),
    "worker": AdmissionSettings(total=500, high=250, normal=150, low=100, high_when_overloaded=12),
}


@dataclass(frozen=True, slots=True)
class ClassCounts:
    in_flight: int
    acquired: int
    shed: int
    """Refused for load or want of a slot. Of CRITICAL always 0."""
    abused: int
    """Refused because their source had too many CRITICAL ones."""


class Admission:
    __slots__ = (
        "_abused",
        "_acquired",
        "_ceilings",
        "_high_reserve",
        "_in_flight",
        "_per_source",
        "_settings",
        "_shed",
        "_subscribers",
        "subscriptions",
    )

    def __init__(self, settings: AdmissionSettings | None = None) -> None:
        self._settings = settings or AdmissionSettings()
        self._ceilings = [math.inf] + [self._settings.ceiling(kind) for kind in SHEDDABLE]
        self._high_reserve = self._settings.high_when_overloaded
        self._in_flight = [0] * len(Priority)
        self._acquired = [0] * len(Priority)
        self._shed = [0] * len(Priority)
        self._abused = 0
        self._per_source: dict[str, int] = {}
        self._subscribers: dict[str, int] = {}
        self.subscriptions = 0

    def try_acquire(
        self, priority: Priority, source: str = "", load: LoadLevel = LoadLevel.HEALTHY
    ) -> AdmissionResult:
        """A slot, or why not. Whoever is admitted calls `release` with the same arguments."""
        if priority is Priority.CRITICAL:
            return self._acquire_critical(source)
        verdict = self._judge(priority, load)
        if verdict is AdmissionResult.ADMITTED:
            self._in_flight[priority] += 1
            self._acquired[priority] += 1
        else:
            self._shed[priority] += 1
        return verdict

    def release(self, priority: Priority, source: str = "") -> None:
        if self._in_flight[priority] == 0:
            raise RuntimeError(f"a {priority.name} slot was released that nobody had")
        if priority is Priority.CRITICAL:
            left = self._per_source.get(source, 0) - 1
            if left < 0:
                raise RuntimeError(f"{source!r} released a CRITICAL slot that it did not have")
            if left:
                self._per_source[source] = left
            else:
                del self._per_source[source]
        self._in_flight[priority] -= 1

    def try_subscribe(self, source: str, shared: bool = False) -> AdmissionResult:
        """Whoever is admitted calls `unsubscribe`. A `shared` source subscribes for many others,
        whose own number was looked at where they asked."""
        settings = self._settings
        if self.subscriptions >= settings.subscriptions:
            return AdmissionResult.ALL_SUBSCRIBED
        mine = self._subscribers.get(source, 0)
        if mine >= settings.subscriptions_per_source and not shared:
            return AdmissionResult.SUBSCRIBED
        self._subscribers[source] = mine + 1
        self.subscriptions += 1
        return AdmissionResult.ADMITTED

    def unsubscribe(self, source: str) -> None:
        left = self._subscribers.get(source, 0) - 1
        if left < 0:
            raise RuntimeError(f"{source!r} ended a subscription that it did not have")
        if left:
            self._subscribers[source] = left
        else:
            del self._subscribers[source]
        self.subscriptions -= 1

    @property
    def in_flight(self) -> int:
        return sum(self._in_flight)

    @property
    def pressure(self) -> Pressure:
        if not self._has_slot(Priority.NORMAL):
            return Pressure.OVERLOADED
        return Pressure.HEALTHY if self._has_slot(Priority.LOW) else Pressure.PRESSURED

    def counts(self) -> dict[Priority, ClassCounts]:
        return {
            kind: ClassCounts(
                self._in_flight[kind],
                self._acquired[kind],
                self._shed[kind],
                self._abused if kind is Priority.CRITICAL else 0,
            )
            for kind in Priority
        }

    def _acquire_critical(self, source: str) -> AdmissionResult:
        mine = self._per_source.get(source, 0)
        if mine >= self._settings.critical_per_source:
            self._abused += 1
            return AdmissionResult.ABUSE
        self._per_source[source] = mine + 1
        self._in_flight[Priority.CRITICAL] += 1
        self._acquired[Priority.CRITICAL] += 1
        return AdmissionResult.ADMITTED

    def _judge(self, priority: Priority, load: LoadLevel) -> AdmissionResult:
        if sheds(load, priority) and not (
            priority is Priority.HIGH and self._in_flight[Priority.HIGH] < self._high_reserve
        ):
            return AdmissionResult.SHED
        return AdmissionResult.ADMITTED if self._has_slot(priority) else AdmissionResult.FULL

    def _has_slot(self, priority: Priority) -> bool:
        """Below its own ceiling and that of every class above it."""
        taken = self._in_flight[Priority.LOW]
        if priority is Priority.LOW and taken >= self._ceilings[Priority.LOW]:
            return False
        taken += self._in_flight[Priority.NORMAL]
        if priority >= Priority.NORMAL and taken >= self._ceilings[Priority.NORMAL]:
            return False
        return taken + self._in_flight[Priority.HIGH] < self._ceilings[Priority.HIGH]

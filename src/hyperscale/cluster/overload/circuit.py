"""Circuit breakers, one per destination: stop asking those who do not answer.

Closed, failures of each category are counted over a sliding window. Enough of them open the
circuit and everything fails fast. After a rest a few test requests are let through: success
closes it, failure opens it again. A result counts only for the period in which its request was
let through, so an answer that was under way for a minute decides nothing about now. A test whose
result never comes gives its place back after a while.

A refusal is an answer: record it as a success. Bound destinations, never one circuit for all of
a kind: the death of one must not cut off the others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple


class CircuitState(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitTrigger(Enum):
    TOO_MANY_FAILURES = "too many failures"
    RESTED = "rested"
    TESTS_SUCCEEDED = "tests succeeded"
    TEST_FAILED = "a test failed"


TRANSITIONS: Final[dict[CircuitState, dict[CircuitTrigger, CircuitState]]] = {
    CircuitState.CLOSED: {CircuitTrigger.TOO_MANY_FAILURES: CircuitState.OPEN},
    CircuitState.OPEN: {CircuitTrigger.RESTED: CircuitState.HALF_OPEN},
    CircuitState.HALF_OPEN: {
        CircuitTrigger.TESTS_SUCCEEDED: CircuitState.CLOSED,
        CircuitTrigger.TEST_FAILED: CircuitState.OPEN,
    },
}


class Category(Enum):
    """Kinds of failure, counted apart."""

    NETWORK = "network"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSettings:
    failures_max: int = 3
    window_s: float = 30.0
    failures_max_by_category: Mapping[Category, int] = field(default_factory=dict)
    """Where a category differs from `failures_max`."""

    open_s: float = 10.0
    tests: int = 1
    """Requests let through when half-open; all of them must succeed."""

    test_timeout_s: float = 10.0
    """A test without a result for this long is given up and another one may start. Longer than
    any request's own deadline should be."""

    destinations_max: int = 4_096
    """Closed circuits without failures carry nothing and are forgotten first."""

    def __post_init__(self) -> None:
        counts = [self.failures_max, self.tests, self.destinations_max]
        if min(counts + list(self.failures_max_by_category.values())) < 1:
            raise ValueError("failures_max, tests and destinations_max must be at least 1")
        if min(self.window_s, self.open_s, self.test_timeout_s) <= 0:
            raise ValueError("window_s, open_s and test_timeout_s must be positive")

    def threshold(self, category: Category) -> int:
        return self.failures_max_by_category.get(category, self.failures_max)


class Ticket(NamedTuple):
    """Permission to send one request; its outcome is reported with it."""

    period: int
    number: int


@dataclass(frozen=True, slots=True)
class CircuitStatus:
    state: CircuitState
    failures: dict[Category, int]
    retry_after_s: float
    """0 when a request would be let through."""
    opened_count: int


class Circuit:
    __slots__ = (
        "_failures",
        "_number",
        "_opened_at",
        "_period",
        "_settings",
        "_succeeded",
        "_testing",
        "opened_count",
        "state",
    )

    def __init__(self, settings: CircuitSettings | None = None) -> None:
        self._settings = settings or CircuitSettings()
        self.state = CircuitState.CLOSED
        self.opened_count = 0
        self._period = 0
        self._number = 0
        self._failures: dict[Category, deque[float]] = {}
        self._opened_at = 0.0
        self._testing: dict[int, float] = {}
        self._succeeded = 0

    def allow(self, now: float) -> Ticket | None:
        """None: fail fast. Otherwise send, and report with the ticket how it went."""
        if self.state is CircuitState.OPEN and now >= self._opened_at + self._settings.open_s:
            self._move(CircuitTrigger.RESTED)
        if self.state is CircuitState.OPEN:
            return None
        self._number += 1
        if self.state is CircuitState.HALF_OPEN:
            self._give_up_tests(now)
            if len(self._testing) + self._succeeded >= self._settings.tests:
                return None
            self._testing[self._number] = now
        return Ticket(self._period, self._number)

    def succeeded(self, now: float, ticket: Ticket) -> None:
        if ticket.period != self._period or self.state is not CircuitState.HALF_OPEN:
            return
        if self._testing.pop(ticket.number, None) is None:
            return
        self._succeeded += 1
        if self._succeeded >= self._settings.tests:
            self._move(CircuitTrigger.TESTS_SUCCEEDED)

    def failed(self, now: float, ticket: Ticket, category: Category = Category.NETWORK) -> None:
        if ticket.period != self._period:
            return
        if self.state is CircuitState.HALF_OPEN:
            if self._testing.pop(ticket.number, None) is not None:
                self._open(now, CircuitTrigger.TEST_FAILED)
            return
        threshold = self._settings.threshold(category)
        recent = self._failures.setdefault(category, deque(maxlen=threshold))
        recent.append(now)
        if len(recent) == threshold and now - recent[0] <= self._settings.window_s:
            self._open(now, CircuitTrigger.TOO_MANY_FAILURES)

    def status(self, now: float) -> CircuitStatus:
        oldest = now - self._settings.window_s
        failures = {
            category: count
            for category, times in self._failures.items()
            if (count := sum(at >= oldest for at in times))
        }
        return CircuitStatus(self.state, failures, self.retry_after_s(now), self.opened_count)

    def blank(self, now: float) -> bool:
        """Nothing would be lost by forgetting this circuit."""
        return self.state is CircuitState.CLOSED and not self.status(now).failures

    def retry_after_s(self, now: float) -> float:
        """0 when a request would be let through."""
        if self.state is CircuitState.OPEN:
            return max(0.0, self._opened_at + self._settings.open_s - now)
        taken = len(self._testing) + self._succeeded
        if self.state is CircuitState.HALF_OPEN and self._testing and taken >= self._settings.tests:
            return max(0.0, min(self._testing.values()) + self._settings.test_timeout_s - now)
        return 0.0

    def _open(self, now: float, trigger: CircuitTrigger) -> None:
        self._opened_at = now
        self.opened_count += 1
        self._move(trigger)

    def _give_up_tests(self, now: float) -> None:
        oldest = now - self._settings.test_timeout_s
        for number in [number for number, at in self._testing.items() if at <= oldest]:
            del self._testing[number]

    def _move(self, trigger: CircuitTrigger) -> None:
        """The only place where the state changes; each state is a period of its own."""
        self.state = TRANSITIONS[self.state][trigger]
        self._period += 1
        self._failures.clear()
        self._testing.clear()
        self._succeeded = 0


class Circuits:
    """The circuits of all destinations of one kind, by node id or address."""

    __slots__ = ("_circuits", "_settings")

    def __init__(self, settings: CircuitSettings | None = None) -> None:
        self._settings = settings or CircuitSettings()
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()

    def __len__(self) -> int:
        return len(self._circuits)

    def of(self, now: float, destination: str) -> Circuit:
        circuit = self._circuits.get(destination)
        if circuit is None:
            self._make_room(now)
            circuit = self._circuits[destination] = Circuit(self._settings)
        else:
            self._circuits.move_to_end(destination)
        return circuit

    def state(self, destination: str) -> CircuitState:
        circuit = self._circuits.get(destination)
        return CircuitState.CLOSED if circuit is None else circuit.state

    def is_open(self, now: float, destination: str) -> bool:
        """For selectors: skip this destination. Takes no test away from anybody."""
        return self.retry_after_s(now, destination) > 0

    def retry_after_s(self, now: float, destination: str) -> float:
        """0 when a request would be let through."""
        circuit = self._circuits.get(destination)
        return 0.0 if circuit is None else circuit.retry_after_s(now)

    def forget(self, destination: str) -> None:
        self._circuits.pop(destination, None)

    def statuses(self, now: float) -> dict[str, CircuitStatus]:
        return {name: self._circuits[name].status(now) for name in sorted(self._circuits)}

    def _make_room(self, now: float) -> None:
        """Forget the least recently used blank circuit, or, if all have something to say, the
        least recently used one: the worst that can follow is one request that fails slowly."""
        if len(self._circuits) < self._settings.destinations_max:
            return
        blank = next((name for name, each in self._circuits.items() if each.blank(now)), None)
        self._circuits.pop(blank if blank is not None else next(iter(self._circuits)))

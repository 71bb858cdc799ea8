"""Messages waiting to be sent, a bounded queue for each destination (A-43, A-44, fixed per T-15).

A slow destination fills its own queue and nobody else's. The sender learns how full it is and how
long to hold back; the delays only grow:

    HEALTHY     below 70 %                       0 ms
    THROTTLED   from 70 %                       50 ms
    BATCHING    from 85 %                      200 ms
    OVERFLOW    from 95 %: telemetry to the ring 350 ms
    SATURATED   primary and ring full          500 ms

Nothing but telemetry (LOW) is ever dropped for a newer message. Everything else is accepted and
then sent, or refused on the spot, or handed back when its time is over, so that its sender can
fail or retry (A-60). More important messages are sent first, and push waiting telemetry out of a
full queue. A destination is forgotten only when nothing waits for it and nothing is being sent.
Memory: at most `bytes_max` plus `bytes_granted` for each destination.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, Generic, TypeVar

from hyperscale.cluster.calm.priority import Priority

T = TypeVar("T")


class Fullness(IntEnum):
    HEALTHY = 0
    THROTTLED = 1
    BATCHING = 2
    OVERFLOW = 3
    SATURATED = 4


DELAY_S: Final[dict[Fullness, float]] = {
    Fullness.HEALTHY: 0.0,
    Fullness.THROTTLED: 0.05,
    Fullness.BATCHING: 0.2,
    Fullness.OVERFLOW: 0.35,
    Fullness.SATURATED: 0.5,
}


class Outcome(Enum):
    QUEUED = "queued"
    QUEUE_FULL = "the queue of this destination is full"
    NO_MEMORY = "too many bytes are waiting"
    TOO_MANY_DESTINATIONS = "too many destinations have messages waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundSettings:
    primary_max: int = 500
    ring_max: int = 100
    """Telemetry beyond the primary; the newest stay."""

    destinations_max: int = 1_000
    throttled_share: float = 0.70
    batching_share: float = 0.85
    overflow_share: float = 0.95

    bytes_max_per_destination: int = 8 * 1024 * 1024
    bytes_max: int = 128 * 1024 * 1024
    bytes_granted: int = 64 * 1024
    """A destination may always hold this much, however much others hold."""

    telemetry_lifetime_s: float = 5.0
    """The next report is due long before; an old one only delays it."""

    lifetime_s: float = 30.0
    """Of everything else without a deadline of its own: by then the peer is known to be dead."""

    def __post_init__(self) -> None:
        shares = (self.throttled_share, self.batching_share, self.overflow_share)
        if not 0 < shares[0] < shares[1] < shares[2] <= 1:
            raise ValueError(f"shares must rise between 0 and 1, not {shares}")
        if min(self.primary_max, self.ring_max, self.destinations_max) < 1:
            raise ValueError("primary_max, ring_max and destinations_max must be at least 1")
        if not 0 <= self.bytes_granted <= self.bytes_max_per_destination:
            raise ValueError("bytes_granted must be at most bytes_max_per_destination")

    def lifetime(self, priority: Priority) -> float:
        return self.telemetry_lifetime_s if priority is Priority.LOW else self.lifetime_s


@dataclass(frozen=True, slots=True)
class Waiting(Generic[T]):
    """A message in a queue."""

    destination: str
    message: T
    priority: Priority
    size_bytes: int
    created_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class Enqueued:
    outcome: Outcome
    fullness: Fullness
    delay_s: float
    """Hold back this long before the next message to this destination."""


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """The next message to send, and those whose time was over before their turn came."""

    waiting: Waiting[T] | None
    expired: list[Waiting[T]]


@dataclass(slots=True)
class OutboundCounts:
    enqueued: int = 0
    sent: int = 0
    dropped: int = 0
    """Telemetry that gave way to something newer or more important."""
    refused: int = 0
    expired: int = 0


@dataclass(frozen=True, slots=True)
class DestinationStatus:
    primary: int
    ring: int
    size_bytes: int
    fullness: Fullness
    counts: OutboundCounts


@dataclass(slots=True)
class _Queue(Generic[T]):
    classes: dict[Priority, deque[Waiting[T]]] = field(
        default_factory=lambda: {priority: deque() for priority in Priority}
    )
    ring: deque[Waiting[T]] = field(default_factory=deque)
    primary: int = 0
    """In the primary, the one being sent included: it may come back."""
    size_bytes: int = 0
    sending: Waiting[T] | None = None
    counts: OutboundCounts = field(default_factory=OutboundCounts)

    @property
    def empty(self) -> bool:
        return self.primary == 0 and not self.ring

    def lines(self) -> Iterator[deque[Waiting[T]]]:
        """In the order of sending."""
        yield from self.classes.values()
        yield self.ring


class Outbound(Generic[T]):
    """One consumer per destination: `take`, send, then `sent` or `give_back`."""

    def __init__(self, settings: OutboundSettings | None = None) -> None:
        self._settings = settings or OutboundSettings()
        self._queues: dict[str, _Queue[T]] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        self._size_bytes = 0
        self.counts = OutboundCounts()

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def enqueue(
        self,
        now: float,
        destination: str,
        message: T,
        size_bytes: int,
        priority: Priority = Priority.NORMAL,
        deadline: float | None = None,
    ) -> Enqueued:
        queue = self._queue(destination)
        if queue is None:
            self.counts.refused += 1
            full = Fullness.SATURATED
            return Enqueued(Outcome.TOO_MANY_DESTINATIONS, full, DELAY_S[full])
        expires_at = now + self._settings.lifetime(priority) if deadline is None else deadline
        waiting = Waiting(destination, message, priority, size_bytes, now, expires_at)
        to_ring = priority is Priority.LOW and self._fullness(queue) >= Fullness.OVERFLOW
        outcome = self._make_room(queue, size_bytes, to_ring)
        if outcome is Outcome.QUEUED:
            self._add(queue, waiting, to_ring)
        else:
            queue.counts.refused += 1
            self.counts.refused += 1
            self._note_idle(destination, queue)
        fullness = self._fullness(queue)
        return Enqueued(outcome, fullness, DELAY_S[fullness])

    def take(self, now: float, destination: str) -> Taken[T]:
        expired: list[Waiting[T]] = []
        queue = self._queues.get(destination)
        if queue is None or queue.sending is not None:
            return Taken(None, expired)
        while (line := next((line for line in queue.classes.values() if line), None)) is not None:
            waiting = line.popleft()
            if waiting.expires_at > now:
                queue.sending = waiting
                return Taken(waiting, expired)
            expired.append(waiting)
            self._expired(queue, waiting, in_ring=False)
            self._refill(queue)
        self._note_idle(destination, queue)
        return Taken(None, expired)

    def sent(self, destination: str) -> None:
        """What was taken is gone for good: sent, or failed beyond retry."""
        queue, waiting = self._being_sent(destination)
        queue.sending = None
        self._remove(queue, waiting, in_ring=False)
        queue.counts.sent += 1
        self.counts.sent += 1
        self._refill(queue)
        self._note_idle(destination, queue)

    def give_back(self, destination: str) -> None:
        """What was taken could not be sent; it is the next of its class again."""
        queue, waiting = self._being_sent(destination)
        queue.sending = None
        queue.classes[waiting.priority].appendleft(waiting)

    def expire(self, now: float) -> list[Waiting[T]]:
        """Hand back everything whose time is over, also where nothing moves."""
        expired: list[Waiting[T]] = []
        for destination in sorted(self._queues):
            queue = self._queues[destination]
            for line in queue.lines():
                late = [waiting for waiting in line if waiting.expires_at <= now]
                if not late:
                    continue
                kept = [waiting for waiting in line if waiting.expires_at > now]
                for waiting in late:
                    self._expired(queue, waiting, in_ring=line is queue.ring)
                expired += late
                line.clear()
                line.extend(kept)
            self._refill(queue)
            self._note_idle(destination, queue)
        return expired

    def forget(self, destination: str) -> list[Waiting[T]]:
        """The destination is gone. What waited, or was being sent, is handed back."""
        queue = self._queues.pop(destination, None)
        self._idle.pop(destination, None)
        if queue is None:
            return []
        self._size_bytes -= queue.size_bytes
        left = [] if queue.sending is None else [queue.sending]
        return left + [waiting for line in queue.lines() for waiting in line]

    def status(self) -> dict[str, DestinationStatus]:
        return {
            name: DestinationStatus(
                queue.primary,
                len(queue.ring),
                queue.size_bytes,
                self._fullness(queue),
                queue.counts,
            )
            for name, queue in sorted(self._queues.items())
        }

    # -- inside ------------------------------------------------------------------------------

    def _queue(self, destination: str) -> _Queue[T] | None:
        queue = self._queues.get(destination)
        if queue is None:
            if len(self._queues) >= self._settings.destinations_max:
                if not self._idle:
                    return None
                oldest, _ = self._idle.popitem(last=False)
                del self._queues[oldest]
            queue = self._queues[destination] = _Queue()
        self._idle.pop(destination, None)
        return queue

    def _make_room(self, queue: _Queue[T], size_bytes: int, to_ring: bool) -> Outcome:
        """Give up telemetry of this destination, oldest first, but only if it helps."""
        telemetry = queue.classes[Priority.LOW]
        if not self._fits_bytes(queue, size_bytes):
            spare = sum(each.size_bytes for line in (telemetry, queue.ring) for each in line)
            if not self._fits_bytes(queue, size_bytes - spare):
                return Outcome.NO_MEMORY
        if to_ring:
            if len(queue.ring) >= self._settings.ring_max:
                self._drop_oldest(queue, queue.ring)
        elif queue.primary >= self._settings.primary_max:
            if not telemetry:
                return Outcome.QUEUE_FULL
            self._drop_oldest(queue, telemetry)
        while not self._fits_bytes(queue, size_bytes):
            self._drop_oldest(queue, telemetry or queue.ring)
        return Outcome.QUEUED

    def _fits_bytes(self, queue: _Queue[T], more: int) -> bool:
        mine = queue.size_bytes + more
        if mine > self._settings.bytes_max_per_destination:
            return False
        within_all = self._size_bytes + more <= self._settings.bytes_max
        return within_all or mine <= self._settings.bytes_granted

    def _add(self, queue: _Queue[T], waiting: Waiting[T], to_ring: bool) -> None:
        if to_ring:
            queue.ring.append(waiting)
        else:
            queue.classes[waiting.priority].append(waiting)
            queue.primary += 1
        queue.size_bytes += waiting.size_bytes
        self._size_bytes += waiting.size_bytes
        queue.counts.enqueued += 1
        self.counts.enqueued += 1

    def _remove(self, queue: _Queue[T], waiting: Waiting[T], in_ring: bool) -> None:
        if not in_ring:
            queue.primary -= 1
        queue.size_bytes -= waiting.size_bytes
        self._size_bytes -= waiting.size_bytes

    def _refill(self, queue: _Queue[T]) -> None:
        """Telemetry waits in the ring only while the primary has no room for it."""
        while queue.ring and self._fullness(queue) < Fullness.OVERFLOW:
            queue.classes[Priority.LOW].append(queue.ring.popleft())
            queue.primary += 1

    def _drop_oldest(self, queue: _Queue[T], line: deque[Waiting[T]]) -> None:
        self._remove(queue, line.popleft(), in_ring=line is queue.ring)
        queue.counts.dropped += 1
        self.counts.dropped += 1

    def _expired(self, queue: _Queue[T], waiting: Waiting[T], in_ring: bool) -> None:
        self._remove(queue, waiting, in_ring)
        queue.counts.expired += 1
        self.counts.expired += 1

    def _being_sent(self, destination: str) -> tuple[_Queue[T], Waiting[T]]:
        queue = self._queues.get(destination)
        if queue is None or queue.sending is None:
            raise RuntimeError(f"nothing was being sent to {destination}")
        return queue, queue.sending

    def _note_idle(self, destination: str, queue: _Queue[T]) -> None:
        if queue.empty:
            self._idle[destination] = None
            self._idle.move_to_end(destination)

    def _fullness(self, queue: _Queue[T]) -> Fullness:
        settings = self._settings
        if queue.primary >= settings.primary_max and len(queue.ring) >= settings.ring_max:
            return Fullness.SATURATED
        share = queue.primary / settings.primary_max
        if share >= settings.overflow_share:
            return Fullness.OVERFLOW
        if share >= settings.batching_share:
            return Fullness.BATCHING
        return Fullness.THROTTLED if share >= settings.throttled_share else Fullness.HEALTHY

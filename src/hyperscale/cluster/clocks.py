"""Logical clocks: orders that do not trust anybody's wall time.

Lamport counters order events of one conversation, versioned clocks discard stale reports of a
node's state (B-47), and the hybrid logical clock gives stamps close to wall time that still respect
cause and effect (F-12 to F-15). Wall milliseconds are passed in; nothing here reads a clock.
"""

from __future__ import annotations

from typing import NamedTuple


class LamportClock:
    def __init__(self, time: int = 0) -> None:
        self._time = time

    @property
    def time(self) -> int:
        return self._time

    def tick(self) -> int:
        self._time += 1
        return self._time

    def receive(self, remote: int) -> int:
        self._time = max(self._time, remote) + 1
        return self._time


class Version(NamedTuple):
    """A restarted entity counts from zero again, so its incarnation comes first."""

    incarnation: int
    number: int


class VersionedClock:
    """Newest version seen per entity. An entity is forgotten only when idle for `idle_max_s`,
    longer than any report of it can be under way."""

    def __init__(self, idle_max_s: float = 900.0) -> None:
        self._idle_max_s = idle_max_s
        self._seen: dict[str, tuple[Version, float]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def accept(self, now: float, entity: str, version: Version) -> bool:
        """True, and remembered, exactly if newer than everything seen of the entity."""
        seen = self._seen.get(entity)
        if seen is not None and version <= seen[0]:
            return False
        self._seen[entity] = (version, now)
        return True

    def version(self, entity: str) -> Version | None:
        seen = self._seen.get(entity)
        return None if seen is None else seen[0]

    def purge(self, now: float) -> int:
        idle = [e for e, (_, at) in self._seen.items() if now - at > self._idle_max_s]
        for entity in idle:
            del self._seen[entity]
        return len(idle)


class Stamp(NamedTuple):
    """A moment of the hybrid logical clock; tuples compare as the total order demands."""

    wall_ms: int
    counter: int
    node_id: str


class StampTooFarAhead(Exception):
    def __init__(self, stamp: Stamp, ahead_ms: int) -> None:
        super().__init__(f"the stamp of {stamp.node_id} is {ahead_ms} ms ahead of this clock")
        self.stamp = stamp
        self.ahead_ms = ahead_ms


class CeilingReached(Exception):
    def __init__(self, ceiling_ms: int) -> None:
        super().__init__(f"no stamp above {ceiling_ms} ms may be issued before a new ceiling")
        self.ceiling_ms = ceiling_ms


class HybridClock:
    """Stamps of one node: strictly increasing, also over restarts and whatever wall time does.

    No stamp above a durable ceiling is issued. `ceiling_wanted` tells the ceiling to write next
    (early: at half of the window), `raise_ceiling` that it is on disk; a restarted node resumes
    from the last one. The window is far below what peers tolerate as being ahead, because a
    restart may jump forward by that much.
    """

    CEILING_WINDOW_MS = 2_000
    AHEAD_WARN_MS = 500
    AHEAD_MAX_MS = 5_000

    def __init__(
        self, node_id: str, durable_ceiling_ms: int = 0, ahead_max_ms: int = AHEAD_MAX_MS
    ) -> None:
        if not node_id:
            raise ValueError("a clock needs the id of its node")
        self._ceiling_ms = durable_ceiling_ms
        self._ahead_max_ms = ahead_max_ms
        self._last = Stamp(durable_ceiling_ms, 0, node_id)
        self.far_ahead = 0
        """Received stamps that were further ahead than peers should be, yet accepted."""

    @property
    def last(self) -> Stamp:
        return self._last

    def ceiling_wanted(self, now_ms: int) -> int | None:
        wall = max(now_ms, self._last.wall_ms)
        if wall + self.CEILING_WINDOW_MS // 2 < self._ceiling_ms:
            return None
        return wall + self.CEILING_WINDOW_MS

    def raise_ceiling(self, ceiling_ms: int) -> None:
        self._ceiling_ms = max(self._ceiling_ms, ceiling_ms)

    def tick(self, now_ms: int) -> Stamp:
        """A local event (F-13)."""
        wall = max(self._last.wall_ms, now_ms)
        counter = self._last.counter + 1 if wall == self._last.wall_ms else 0
        return self._issue(wall, counter)

    def receive(self, now_ms: int, remote: Stamp) -> Stamp:
        """A message was received (F-14). A stamp too far ahead is refused, so one wrong clock
        cannot drag the cluster's along (F-15)."""
        ahead_ms = remote.wall_ms - now_ms
        if ahead_ms > self._ahead_max_ms:
            raise StampTooFarAhead(remote, ahead_ms)
        self.far_ahead += ahead_ms > self.AHEAD_WARN_MS
        wall = max(self._last.wall_ms, remote.wall_ms, now_ms)
        counters = [stamp.counter + 1 for stamp in (self._last, remote) if stamp.wall_ms == wall]
        return self._issue(wall, max(counters, default=0))

    def _issue(self, wall_ms: int, counter: int) -> Stamp:
        if wall_ms > self._ceiling_ms:
            raise CeilingReached(self._ceiling_ms)
        self._last = Stamp(wall_ms, counter, self._last.node_id)
        return self._last

"""Times of a replica group. All are local: clocks of two replicas are never compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VsrSettings:
    lease_s: float = 10.0
    # Three heartbeats fit into a lease, so that two may be lost.
    heartbeat_s: float = 3.0
    # Two clocks differ by less than this over a lease: a hundred times what oscillators do.
    drift: float = 0.01
    # Must exceed the longest round trip; what is unanswered is sent again.
    retry_s: float = 1.0
    view_change_s: float = 10.0
    # What one message carries; the rest follows when that is answered.
    batch_entries_max: int = 1_000

    @property
    def under_way_s(self) -> float:
        """Longer than a message is under way, or stands in a queue."""
        return 10 * self.lease_s

    @property
    def lease_held_s(self) -> float:
        """How long the primary counts on it."""
        return self.lease_s * (1 - self.drift)

    @property
    def lease_bound_s(self) -> float:
        """How long whoever forgot its promises waits."""
        return self.lease_s * (1 + self.drift)

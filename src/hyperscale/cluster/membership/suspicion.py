"""How long a suspect may stay silent before it is called dead.

One accuser may simply be slow itself, so a lone accusation waits for `max_s`; each independent
accuser shortens the wait along a logarithm until `expected` of them bring it to `min_s`. A
confirmation only ever moves the deadline earlier, and repeats count once, so a flood of them
can neither postpone the verdict nor rush it.
"""

from __future__ import annotations

import math

from hyperscale.cluster.identity import NodeId


def bounds(
    live: int, interval_s: float, mult: float, max_ratio: float, cap_s: float, factor: float = 1.0
) -> tuple[float, float]:
    """Shortest and longest wait for a cluster of `live` nodes; `factor` is local health."""
    shortest = mult * max(1.0, math.log10(live + 1)) * interval_s * factor
    shortest = min(shortest, cap_s)
    return shortest, max(shortest, min(max_ratio * shortest, cap_s))


def wait(confirmations: int, expected: int, min_s: float, max_s: float) -> float:
    """Seconds from accusation to verdict with this many confirmations beyond the first accuser."""
    if confirmations >= expected:
        return min_s
    share = math.log(confirmations + 1) / math.log(expected + 1)
    return max(min_s, max_s - share * (max_s - min_s))


class Suspicion:
    """A running accusation against one incarnation of one node."""

    __slots__ = ("accusers", "charged", "expected", "incarnation", "max_s", "min_s", "started_at")

    def __init__(
        self,
        now: float,
        incarnation: int,
        accusers: tuple[NodeId, ...],
        expected: int,
        min_s: float,
        max_s: float,
    ) -> None:
        assert accusers, "a suspicion has an accuser"
        assert 0.0 < min_s <= max_s
        self.started_at = now
        self.incarnation = incarnation
        self.expected = expected
        self.min_s = min_s
        self.max_s = max_s
        self.accusers = dict.fromkeys(sorted(accusers)[: expected + 1])
        self.charged = False  # whether raising it cost us a point of local health

    @property
    def deadline(self) -> float:
        confirmations = len(self.accusers) - 1
        return self.started_at + wait(confirmations, self.expected, self.min_s, self.max_s)

    def confirm(self, accuser: NodeId) -> bool:
        """Count an accuser; True when it is a new one that still shortens the wait."""
        if accuser in self.accusers or len(self.accusers) > self.expected:
            return False
        self.accusers[accuser] = None
        return True

    def postpone(self, seconds: float) -> None:
        """We slept that long: nobody could refute to us meanwhile."""
        assert seconds >= 0.0
        self.started_at += seconds

"""How much a node trusts its own judgement (Lifeguard's local health).

A node that is short of CPU or cut off sees everybody as silent. It notices by symptoms of its own
and becomes slower to accuse. If every missing answer cost a point, one dead peer would cost three
in each round; here a probe round costs at most one, and nothing when every proxy reported the same
silence: then the peer is at fault, not we. Points also decay with time, so that one bad minute does
not keep the score up for ever.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class HealthEvent(Enum):
    PROBE_ANSWERED = "probe answered directly"
    PROBE_NEEDED_HELP = "answered, but not directly in time"
    PROBE_FAILED_ALONE = "failed, and some proxy stayed silent too"
    PROBE_FAILED_FOR_ALL = "failed, and every proxy said so"
    ACCUSED = "somebody suspected us: we answer too slowly"
    SUSPICION_REFUTED = "a suspicion that had cost us a point was refuted"
    LAG = "our own timer fired late"
    LONG_LAG = "our own timer fired very late"
    LAG_OVER = "timers fire in time again"


CHANGE: Final[dict[HealthEvent, int]] = {
    HealthEvent.PROBE_ANSWERED: -1,
    HealthEvent.PROBE_NEEDED_HELP: +1,
    HealthEvent.PROBE_FAILED_ALONE: +1,
    HealthEvent.PROBE_FAILED_FOR_ALL: 0,
    HealthEvent.ACCUSED: +1,
    HealthEvent.SUSPICION_REFUTED: -1,
    HealthEvent.LAG: +1,
    HealthEvent.LONG_LAG: +2,
    HealthEvent.LAG_OVER: -1,
}


class Awareness:
    """The score, 0 (healthy) to `maximum`, and the factor by which timeouts grow."""

    __slots__ = ("_decay_s", "_maximum", "_step", "_worse_at", "score")

    def __init__(self, maximum: int, step: float, decay_s: float) -> None:
        self.score = 0
        self._maximum = maximum
        self._step = step
        self._decay_s = decay_s
        self._worse_at = 0.0

    @property
    def factor(self) -> float:
        return 1.0 + self._step * self.score

    def note(self, now: float, event: HealthEvent) -> None:
        change = CHANGE[event]
        if change > 0:
            self._worse_at = now
        self.score = min(self._maximum, max(0, self.score + change))

    def decay(self, now: float) -> None:
        """Call once per probe round: a quiet while earns a point back even without probes."""
        if self.score and now - self._worse_at >= self._decay_s:
            self.score -= 1
            self._worse_at = now

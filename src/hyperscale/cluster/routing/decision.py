"""What was decided, and why: for the job, for its log line, and for a person who asks."""

from __future__ import annotations

import msgspec

from hyperscale.cluster.routing.snapshot import Held


class Scored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One datacenter with the parts of its score; the lower is the better."""

    name: str
    health: str
    score: float = 0.0
    rtt_s: float = 0.0  # rarely exceeded
    load: float = 1.0
    quality_penalty: float = 1.0
    cooldown: float = 1.0
    chosen: bool = False
    rank: int = 0  # 1 is asked first; 0: not at all
    reason: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`error`: why there is none. `fallback` is the order in which others would be asked."""

    chosen: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    scored: tuple[Scored, ...] = ()
    worst_health: str = "healthy"  # that was accepted
    reason: str = ""  # why this choice differs from the one before, or does not
    error: str = ""
    by_distance: bool = False
    held: tuple[Held, ...] = ()

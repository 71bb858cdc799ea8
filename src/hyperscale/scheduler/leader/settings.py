"""The numbers of a coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.scheduler.store.types import Keep


@dataclass(frozen=True, kw_only=True)
class CoordinatorSettings:
    look_s: float = 1.0
    """The longest sleep between two looks at what is due, whatever the wake-ups say."""
    sweep_s: float = 1.0
    scan_s: float = 10.0
    tidy_s: float = 10.0
    suspect_after_s: float = 30.0
    dead_after_s: float = 45.0
    """Three heartbeats of 15 s missed."""
    grace_s: float = 45.0
    """A new leader, and one whose store was away, gives everybody one whole threshold to be heard
    before it takes anything away."""
    stalled_s: float = 60.0
    """Without one step of the ticks for this long the term ends: somebody else may do better."""
    mass_share: float = 0.5
    """More than this share of the workers silent at once: rather our own trouble."""
    keep: Keep = field(default_factory=Keep)

"""Times of probes between gates and datacenters: made for round trips of 50 to 300 ms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    interval_s: float = 2.0
    """A probe starts this often, whether or not the one before was answered."""

    timeout_s: float = 5.0

    failures: int = 5
    """Missed in a row, then a datacenter is suspected: after 13 to 15 s of silence."""

    suspicion_s: float = 30.0
    """From then on until it counts as unreachable."""

    together_s: float = 10.0
    """Datacenters that fell silent within this time did so for one reason. Two that are cut off at
    one moment were last heard within an interval and a round trip of each other."""

    hold_s: float = 120.0
    """That reason is most likely our own line; for so long nobody is given up for it. A disaster
    that really took most of them is believed after that."""

    stale_s: float = 30.0
    """What a leader told of its datacenter is believed for this long."""

    witness_s: float = 10.0
    """What another gate told is believed for this long: twenty of its beats."""

    def __post_init__(self) -> None:
        times = (self.interval_s, self.timeout_s, self.suspicion_s, self.stale_s, self.together_s)
        if min(*times, self.hold_s, self.witness_s) <= 0 or self.failures < 1:
            raise ValueError("times and failures of probes must be above zero")

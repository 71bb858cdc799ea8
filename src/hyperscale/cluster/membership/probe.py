"""One probe round against one target, as a small machine that refuses impossible events.

DIRECT waits for the target's own answer; when that is late, INDIRECT asks proxies too and waits
until the round ends. The sequence number is the token of the round: answers and timers of another
round do not match and change nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from hyperscale.cluster.identity import NodeId
from hyperscale.cluster.membership.awareness import HealthEvent


class Phase(Enum):
    DIRECT = "waiting for the target"
    INDIRECT = "asked proxies"
    ANSWERED = "alive"
    FAILED = "silent"


class ProbeEvent(Enum):
    TIMEOUT = "direct timeout"
    ACK = "ack"
    NACK = "nack"
    END = "end of round"


TRANSITIONS: Final[dict[tuple[Phase, ProbeEvent], Phase]] = {
    (Phase.DIRECT, ProbeEvent.TIMEOUT): Phase.INDIRECT,
    (Phase.DIRECT, ProbeEvent.ACK): Phase.ANSWERED,
    (Phase.DIRECT, ProbeEvent.END): Phase.FAILED,
    (Phase.INDIRECT, ProbeEvent.ACK): Phase.ANSWERED,
    (Phase.INDIRECT, ProbeEvent.NACK): Phase.INDIRECT,
    (Phase.INDIRECT, ProbeEvent.END): Phase.FAILED,
}


class Probe:
    __slots__ = (
        "helped",
        "incarnation",
        "nacks",
        "phase",
        "proxies",
        "sent_at",
        "sequence",
        "target",
    )

    def __init__(self, now: float, sequence: int, target: NodeId, incarnation: int) -> None:
        self.sent_at = now
        self.sequence = sequence
        self.target = target
        self.incarnation = incarnation  # what is accused if the round fails: nothing newer
        self.phase = Phase.DIRECT
        self.proxies: frozenset[NodeId] = frozenset()
        self.nacks: set[NodeId] = set()
        self.helped = False

    def timeout(self, proxies: frozenset[NodeId]) -> bool:
        if not self._step(ProbeEvent.TIMEOUT):
            return False
        self.proxies = proxies
        self.helped = True
        return True

    def ack(self, sequence: int, target: NodeId) -> bool:
        """True when this answer ends the round well."""
        return sequence == self.sequence and target == self.target and self._step(ProbeEvent.ACK)

    def nack(self, sequence: int, proxy: NodeId) -> bool:
        if sequence != self.sequence or proxy not in self.proxies or proxy in self.nacks:
            return False
        if not self._step(ProbeEvent.NACK):
            return False
        self.nacks.add(proxy)
        return True

    def end(self) -> bool:
        """The round is over; True when the target stayed silent."""
        return self._step(ProbeEvent.END)

    @property
    def verdict(self) -> HealthEvent:
        """What the finished round says about ourselves."""
        assert self.phase in (Phase.ANSWERED, Phase.FAILED)
        if self.phase is Phase.ANSWERED:
            return HealthEvent.PROBE_NEEDED_HELP if self.helped else HealthEvent.PROBE_ANSWERED
        if self.proxies and len(self.nacks) == len(self.proxies):
            return HealthEvent.PROBE_FAILED_FOR_ALL
        return HealthEvent.PROBE_FAILED_ALONE

    def _step(self, event: ProbeEvent) -> bool:
        after = TRANSITIONS.get((self.phase, event))
        if after is None:
            return False
        self.phase = after
        return True

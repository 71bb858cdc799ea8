"""Peers we have heard of but not from.

An unconfirmed peer is probed with growing pauses, is never suspected and never called dead by us.
Hearing from it first-hand confirms it. If that does not happen, we warn, then ping it on purpose
as its role allows, then drop it silently, with a tombstone against being told of it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hyperscale.cluster.identity import NodeId
from hyperscale.cluster.membership.roles import strategy
from hyperscale.cluster.overload.backoff import grown_s


class Step(Enum):
    WARN = "silent for long: check the configuration"
    PING = "ask it directly"
    GIVE_UP = "drop it"


@dataclass(slots=True)
class Unconfirmed:
    since: float
    role: str
    warned: bool = False
    pings: int = 0
    failures: int = 0
    probe_after: float = 0.0


class Confirmation:
    __slots__ = ("_backoff_max_s", "_interval_s", "_peers", "_warning_s")

    def __init__(self, warning_s: float, interval_s: float, backoff_max_s: float) -> None:
        self._warning_s = warning_s
        self._interval_s = interval_s
        self._backoff_max_s = backoff_max_s
        self._peers: dict[NodeId, Unconfirmed] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self._peers

    def get(self, node_id: NodeId) -> Unconfirmed | None:
        return self._peers.get(node_id)

    def discovered(self, now: float, node_id: NodeId, role: str) -> float:
        """Start waiting; returns when to call `step`."""
        self._peers[node_id] = Unconfirmed(since=now, role=role)
        return now + min(self._warning_s, strategy(role).passive_s)

    def confirmed(self, node_id: NodeId) -> bool:
        """True when it was unconfirmed until now."""
        return self._peers.pop(node_id, None) is not None

    def forget(self, node_id: NodeId) -> None:
        self._peers.pop(node_id, None)

    def may_probe(self, now: float, node_id: NodeId) -> bool:
        """Whether the probe ring may visit it now. Confirmed peers always; unconfirmed ones with
        pauses of 1, 2, 4 ... seconds after failures; unconfirmed workers never."""
        peer = self._peers.get(node_id)
        if peer is None:
            return True
        return strategy(peer.role).probed and now >= peer.probe_after

    def probe_failed(self, now: float, node_id: NodeId) -> None:
        peer = self._peers.get(node_id)
        if peer is not None:
            peer.probe_after = now + grown_s(1.0, peer.failures, self._backoff_max_s)
            peer.failures += 1

    def step(
        self, now: float, node_id: NodeId, load: float, lap_s: float
    ) -> tuple[Step, float] | None:
        """What to do now about a peer that is still unconfirmed, and when to come back. One that
        we do not ask has to come round to us: within two laps of the whole cluster it does."""
        peer = self._peers.get(node_id)
        if peer is None:
            return None
        plan = strategy(peer.role)
        if not peer.warned:
            peer.warned = True
            patience_s = plan.patience_s(load)
            if not plan.probed:
                patience_s = max(patience_s, 2 * lap_s * plan.stretch(load))
            return Step.WARN, max(now, peer.since + patience_s)
        if peer.pings < plan.attempts:
            peer.pings += 1
            return Step.PING, now + self._interval_s
        return Step.GIVE_UP, now

"""What a person asks when a member seems far, slow or unheard of, as JSON pages.

They stand beside the metrics page: off unless it is on, and on loopback. Times are milliseconds
where a name says so; positions and heights too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from hyperscale.cluster.membership import Member
from hyperscale.cluster.membership.roles import adaptive_timeout_s, strategy
from hyperscale.runtime.host import Clock, Host

if TYPE_CHECKING:
    from hyperscale.nodes.member.node import Node


class OwnCoordinate(msgspec.Struct, frozen=True):
    position: list[float]
    height: float
    error: float  # relative: 0.1 is 10 % off
    error_ms: float
    samples: int
    peer_count: int
    convergence_status: str  # "converging" until routing may rely on it


class PeerDistance(msgspec.Struct, frozen=True):
    """None: not known."""

    peer: str
    estimated_rtt_ms: float | None
    measured_rtt_samples: list[float]  # the last few, oldest first, ms
    prediction_error_ms: float | None
    adaptive_timeout_s: float


class UnconfirmedPeer(msgspec.Struct, frozen=True):
    peer: str
    role: str
    discovered_at: str
    age_seconds: float
    passive_timeout_remaining: float
    confirmation_attempts: int
    next_attempt_in: float | None


class MembershipChange(msgspec.Struct, frozen=True):
    at: str
    peer: str
    change: str
    state: str
    incarnation: int
    via: str  # how we came to know


def debug_pages(node: Node, host: Host) -> Mapping[str, Callable[[], object]]:
    return {
        "/debug/vivaldi/coordinate": lambda: own_coordinate(node),
        "/debug/vivaldi/peers": lambda: peer_distances(node),
        "/debug/peers/unconfirmed": lambda: unconfirmed_peers(node, host.clock),
        "/debug/peers/changes": lambda: membership_changes(node),
    }


def own_coordinate(node: Node) -> OwnCoordinate:
    core = node.membership.core
    mine, config = core.coordinate, core.config.coordinates
    settled = mine.samples >= config.samples_for_routing and mine.error_s <= config.error_good_s
    return OwnCoordinate(
        position=[_ms(part) for part in mine.position],
        height=_ms(mine.height),
        error=mine.error,
        error_ms=_ms(mine.error_s),
        samples=mine.samples,
        peer_count=sum(m.coordinate is not None for m in core.members() if m.live),
        convergence_status="converged" if settled else "converging",
    )


def peer_distances(node: Node) -> list[PeerDistance]:
    return [_distance(node, member) for member in node.membership.core.members() if member.live]


def _distance(node: Node, member: Member) -> PeerDistance:
    core = node.membership.core
    estimate_s = core.rtt_estimate_s(member.node_id)
    samples_s = core.rtt_samples_s(member.node_id)
    error_ms = None
    if estimate_s is not None and samples_s:
        error_ms = _ms(abs(estimate_s - statistics.median(samples_s)))
    return PeerDistance(
        peer=member.node_id,
        estimated_rtt_ms=None if estimate_s is None else _ms(estimate_s),
        measured_rtt_samples=[_ms(sample) for sample in samples_s],
        prediction_error_ms=error_ms,
        adaptive_timeout_s=adaptive_timeout_s(
            member.node.role,
            core.config.probe_timeout_s,
            core.rtt_upper_s(member.node_id),
            core.health_factor,
        ),
    )


def unconfirmed_peers(node: Node, clock: Clock) -> list[UnconfirmedPeer]:
    core, now = node.membership.core, clock.now()
    found = []
    for member in core.members():
        awaited = core.awaited(member.node_id)
        if awaited is None:
            continue
        peer, due = awaited
        age_s = max(0.0, now - peer.since)
        patience_s = strategy(peer.role).patience_s(core.health_factor)
        found.append(
            UnconfirmedPeer(
                peer=member.node_id,
                role=peer.role,
                discovered_at=datetime.fromtimestamp(clock.wall() - age_s, UTC).isoformat(),
                age_seconds=age_s,
                passive_timeout_remaining=max(0.0, patience_s - age_s),
                confirmation_attempts=peer.pings,
                next_attempt_in=None if math.isinf(due) else max(0.0, due - now),
            )
        )
    return found


def membership_changes(node: Node) -> list[MembershipChange]:
    """The last ones, oldest first."""
    return [
        MembershipChange(
            at=datetime.fromtimestamp(one.at, UTC).isoformat(),
            peer=one.node_id,
            change=one.event,
            state=one.state,
            incarnation=one.incarnation,
            via=one.via,
        )
        for one in node.membership.audit
    ]


def _ms(seconds: float) -> float:
    return round(seconds * 1000.0, 3)

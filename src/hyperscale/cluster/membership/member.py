"""What one node believes about another, and which of two beliefs wins.

A belief is (state, incarnation). Only the owner raises its incarnation, so a higher incarnation
is always fresher. Within one incarnation bad news wins over good news: an accused node clears
itself by raising the number, never by repeating itself. The table below is the whole rule. It is
a total order, so merging beliefs in any order, any number of times, ends in the same place.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

from hyperscale.cluster.identity import Node, NodeId

if TYPE_CHECKING:
    from hyperscale.cluster.coordinates import Coordinate
    from hyperscale.cluster.membership.suspicion import Suspicion


class MemberState(IntEnum):
    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


class Needs(Enum):
    """Which incarnation news must carry, next to the one we know, to be believed."""

    SAME_OR_HIGHER = "same or higher"
    HIGHER = "higher"


_SAME, _HIGHER = Needs.SAME_OR_HIGHER, Needs.HIGHER

#                 news:   ALIVE    SUSPECT  DEAD     LEFT
PRECEDENCE: Final[dict[MemberState, tuple[Needs, Needs, Needs, Needs]]] = {
    MemberState.ALIVE: (_HIGHER, _SAME, _SAME, _SAME),
    MemberState.SUSPECT: (_HIGHER, _HIGHER, _SAME, _SAME),
    MemberState.DEAD: (_HIGHER, _HIGHER, _HIGHER, _SAME),
    MemberState.LEFT: (_HIGHER, _HIGHER, _HIGHER, _HIGHER),
}


def supersedes(
    news: MemberState, news_incarnation: int, known: MemberState, known_incarnation: int
) -> bool:
    """True when the news replaces what is known. Total: defined for every pair of beliefs."""
    if news_incarnation > known_incarnation:
        return True
    if news_incarnation < known_incarnation:
        return False
    return PRECEDENCE[known][news] is Needs.SAME_OR_HIGHER


class Member:
    """One row of the view. `confirmed` means that we have heard this node first-hand at its
    present address; gossip about it is not enough (see confirmation.py)."""

    __slots__ = (
        "acked_at",
        "bucket",
        "changed_at",
        "confirmed",
        "coordinate",
        "digest",
        "heartbeat_life",
        "heartbeat_version",
        "incarnation",
        "node",
        "rtt_s",
        "state",
        "suspicion",
    )

    def __init__(self, node: Node, now: float) -> None:
        self.node = node
        self.state = MemberState.ALIVE
        self.incarnation = node.incarnation
        self.changed_at = now
        self.confirmed = False
        self.suspicion: Suspicion | None = None
        self.coordinate: Coordinate | None = None
        self.rtt_s: float | None = None
        self.heartbeat_life = -1
        self.heartbeat_version = -1
        self.bucket = 0
        self.digest = 0

    @property
    def node_id(self) -> NodeId:
        return self.node.node_id

    @property
    def live(self) -> bool:
        return self.state <= MemberState.SUSPECT

    def __repr__(self) -> str:
        mark = "" if self.confirmed else "?"
        return f"{self.node_id}{mark} {self.state.name}@{self.incarnation}"

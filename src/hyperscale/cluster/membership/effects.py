"""What the membership core asks of its shell, as plain frozen data."""

from __future__ import annotations

from enum import Enum

import msgspec

from hyperscale.cluster.identity import Endpoint, Node
from hyperscale.cluster.membership.member import MemberState


class Via(Enum):
    """How we came to know."""

    OWNER = "first-hand"
    PROBE = "own probe"
    TIMEOUT = "own suspicion ran out"
    GOSSIP = "gossip"
    EXCHANGE = "full-state exchange"
    CLEANUP = "cleanup"


class Change(Enum):
    DISCOVERED = "discovered"  # heard of, not yet heard from
    JOINED = "joined"  # heard first-hand for the first time: now an active peer
    SUSPECTED = "suspected"
    REFUTED = "refuted"  # was suspect, proved alive
    DIED = "died"
    LEFT = "left"
    REVIVED = "revived"  # was dead or had left, came back with a higher incarnation
    MOVED = "moved"  # alive under other addresses
    UNCONFIRMED = "unconfirmed"  # silent since it was discovered: check the configuration
    GIVEN_UP = "given up"  # never confirmed, dropped without being called dead
    REAPED = "reaped"  # dead or left for so long that its row is dropped
    CONFLICT = "conflict"  # somebody else lives under our own name


class Send(msgspec.Struct, frozen=True):
    to: Endpoint
    data: bytes


class Exchange(msgspec.Struct, frozen=True):
    """Open a stream to `to` and exchange views (`summary` first)."""

    to: Endpoint


class Persist(msgspec.Struct, frozen=True):
    """Make this incarnation limit durable, then call `persisted`. A restart begins above it."""

    incarnation: int


class Changed(msgspec.Struct, frozen=True):
    """A belief changed. `confirmed` tells whether the node was ever heard first-hand: reactions
    to a death belong only to nodes that were."""

    change: Change
    node: Node
    state: MemberState
    incarnation: int
    via: Via
    confirmed: bool


class SeedSilent(msgspec.Struct, frozen=True):
    """A configured seed has not answered for `silent_s`; it is asked again for ever."""

    address: Endpoint
    silent_s: float


class Heartbeat(msgspec.Struct, frozen=True):
    """A newer heartbeat of a peer's role than any seen before."""

    node: Node
    version: int
    payload: bytes


class Departed(msgspec.Struct, frozen=True):
    """Our leaving has been told widely enough; the process may stop."""


Effect = Send | Exchange | Persist | Changed | SeedSilent | Heartbeat | Departed

"""Membership: SWIM with Lifeguard as a pure core (see membership.py for how it works)."""

from hyperscale.cluster.membership.config import MembershipConfig, plain_swim
from hyperscale.cluster.membership.effects import (
    Change,
    Changed,
    Departed,
    Effect,
    Exchange,
    Heartbeat,
    Persist,
    SeedSilent,
    Send,
    Via,
)
from hyperscale.cluster.membership.member import Member, MemberState
from hyperscale.cluster.membership.membership import Membership
from hyperscale.cluster.membership.messages import Refused

__all__ = [
    "Change",
    "Changed",
    "Departed",
    "Effect",
    "Exchange",
    "Heartbeat",
    "Member",
    "MemberState",
    "Membership",
    "MembershipConfig",
    "Persist",
    "Refused",
    "SeedSilent",
    "Send",
    "Via",
    "plain_swim",
]

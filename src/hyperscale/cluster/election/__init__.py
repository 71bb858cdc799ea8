"""Leader election among a configured list of voters, without I/O. Start reading at `states`."""

from hyperscale.cluster.election.ballot import list_digest, quorum_of
from hyperscale.cluster.election.effects import (
    BecameLeader,
    Durable,
    Effect,
    HandoverRefused,
    LeaderChanged,
    LostLeadership,
    Persist,
    Send,
    SetTimer,
)
from hyperscale.cluster.election.election import Election
from hyperscale.cluster.election.eligibility import Eligibility
from hyperscale.cluster.election.messages import Envelope, Message
from hyperscale.cluster.election.settings import ElectionSettings
from hyperscale.cluster.election.states import ElectionState

__all__ = [
    "BecameLeader",
    "Durable",
    "Effect",
    "Election",
    "ElectionSettings",
    "ElectionState",
    "Eligibility",
    "Envelope",
    "HandoverRefused",
    "LeaderChanged",
    "LostLeadership",
    "Message",
    "Persist",
    "Send",
    "SetTimer",
    "list_digest",
    "quorum_of",
]

"""What voters say to each other. Tagged, so unknown kinds are refused by name; every number is
bounded, so a decoded message needs no further checks."""

from __future__ import annotations

from typing import Annotated

import msgspec

# Far above any term that can be reached in steps of `JUMP_MAX`: what is known can be exceeded.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Score = Annotated[float, msgspec.Meta(ge=0, le=100)]


class PreVoteRequest(msgspec.Struct, frozen=True, tag="pre-vote?", array_like=True):
    """Would you vote for me in `term`? Nobody's state changes."""

    term: Count
    round: Count


class PreVoteReply(msgspec.Struct, frozen=True, tag="pre-vote", array_like=True):
    """`term` is the voter's own; `round` that of the request."""

    term: Count
    round: Count
    granted: bool


class VoteRequest(msgspec.Struct, frozen=True, tag="vote?", array_like=True):
    """Elect me for `term`. `released_term` > 0: the leader of that term resigned in my favour."""

    term: Count
    released_term: Count


class VoteReply(msgspec.Struct, frozen=True, tag="vote", array_like=True):
    """`asked_term` is the request's, `term` the voter's own. A grant carries the voter's promise
    to help nobody else for `promise_s` from when it received the request."""

    term: Count
    asked_term: Count
    granted: bool
    promise_s: Seconds


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat", array_like=True):
    """I lead `term`. `round` lets the leader find when it sent the one that is answered."""

    term: Count
    round: Count


class HeartbeatReply(msgspec.Struct, frozen=True, tag="heard", array_like=True):
    """Accepted: renews the promise for `promise_s`. Health and readiness let the leader choose
    whom to hand over to."""

    term: Count
    round: Count
    accepted: bool
    promise_s: Seconds
    lhm: Score
    syncing: bool


class Handover(msgspec.Struct, frozen=True, tag="handover", array_like=True):
    """I led `term` and have stopped for good; campaign now, without pre-vote."""

    term: Count


Message = (
    PreVoteRequest | PreVoteReply | VoteRequest | VoteReply | Heartbeat | HeartbeatReply | Handover
)


class Envelope(msgspec.Struct, frozen=True, tag="election/1", array_like=True):
    """One datagram. The group keeps elections of different roles and datacenters apart; the digest
    of the sender's list of voters those whose majorities are not ours."""

    group: Annotated[str, msgspec.Meta(max_length=200)]
    sender: Annotated[str, msgspec.Meta(max_length=200)]
    voters: Annotated[bytes, msgspec.Meta(max_length=32)]
    message: Message

"""Terms that no election has reached are refused; whatever is known can be exceeded."""

from __future__ import annotations

import random

import msgspec
import pytest

from hyperscale.cluster.election import Durable, Election, ElectionSettings, Eligibility, Message
from hyperscale.cluster.election.messages import (
    Envelope,
    Heartbeat,
    HeartbeatReply,
    PreVoteReply,
    VoteReply,
    VoteRequest,
)
from hyperscale.cluster.identity import JUMP_MAX

FAR = 2**62


def voter(term: int, eligibility: Eligibility | None = None) -> Election:
    made = Election(
        "m0", ["m0", "m1", "m2"], ElectionSettings(), random.Random(7), Durable(term, None)
    )
    made.start(100.0, eligibility)
    return made


@pytest.mark.parametrize("term", [5 + JUMP_MAX + 1, FAR])
@pytest.mark.parametrize(
    "message",
    [
        lambda term: PreVoteReply(term, 1, False),
        lambda term: VoteReply(term, 1, False, 0.0),
        lambda term: VoteRequest(term, 0),
        lambda term: Heartbeat(term, 1),
        lambda term: HeartbeatReply(term, 1, True, 0.0, 0.0, False),
    ],
)
def test_a_term_that_jumps_is_not_adopted(message, term: int) -> None:  # type: ignore[no-untyped-def]
    core = voter(5)
    core.receive(200.0, "m1", message(term))
    assert (core.term, core.jumps_refused) == (5, 1)


def test_a_later_term_is_adopted_as_ever() -> None:
    core = voter(5)
    core.receive(101.0, "m1", Heartbeat(900, 1))
    assert (core.term, core.jumps_refused) == (900, 0)


def test_a_term_heard_of_voters_with_another_list_does_not_jump_either() -> None:
    core = voter(5, Eligibility(other_term=FAR))
    assert core._next_term == 6
    assert voter(5, Eligibility(other_term=9))._next_term == 10


@pytest.mark.parametrize("term", [2**53, FAR, FAR + JUMP_MAX])
def test_the_largest_term_on_a_disk_can_be_left(term: int) -> None:
    """As after somebody had driven it there: the next one can be said and understood."""
    message: Message = VoteRequest(term + 1, 0)
    said = msgspec.msgpack.encode(Envelope("g", "m1", b"", message))
    assert msgspec.msgpack.decode(said, type=Envelope).message == message
    core = voter(term)
    core.receive(200.0, "m1", message)
    assert core.term == term + 1

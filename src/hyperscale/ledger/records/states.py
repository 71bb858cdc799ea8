"""Everything that decides what is committed: the roles of a replica and the moves between them.

# Theory of operation

The records of a cluster are one log, copied to every voter. The election gives each term at most
one leader, and only the leader of a term writes entries of that term. An entry is committed when a
majority has it on stable storage and the leader's own term is on it or behind it. From then on it
is part of every log that any later leader builds:

*Promise.* A new leader first asks all voters to accept nothing from older terms. A voter writes the
promise to disk before it answers, and the answer tells how far its log reaches. When a majority has
answered, no older leader can commit anything any more that this majority has not got.

*Adopting.* Of the logs of that majority the leader takes the one with the highest last term, and of
those the longest, and makes its own log equal to it. An entry that was committed is on a majority,
so at least one voter of this one had it when it promised. The chosen log has it too: either its
last term is the same, then one leader wrote both and the longer contains the shorter; or it is
higher, then the leader of that term had the entry before it wrote anything (by this same argument).
Entries keep the term in which they were written. This is what Raft gets by electing only a voter
with the best log; here the election knows nothing of logs, so the leader fetches.

*Barrier.* The leader then writes an empty entry of its own term and waits until that is committed,
which commits everything before it. Counting copies of an entry of an older term would not do: a log
with a higher last term and without the entry may still be chosen later. Only then is it ready.

*Matching.* Entries are sent with index and term of the one before. A voter that has another entry
there says so, and the leader goes back. So two logs with the same term at an index are equal up to
it. A voter takes back entries only where they contradict the leader's, and committed entries never
do; that is checked, not assumed.

*State.* What is committed is applied to the state, in order. A checkpoint of the state stands for
the entries up to it. Who lacks entries that nobody keeps any more gets the state instead.

*Newcomers.* All this holds for voters that remember. One whose disk is empty may have promised and
confirmed anything before: with it, a majority could be made of voters that never had an entry that
was committed. So an empty disk is noted on itself, and whoever has one does not count: neither its
promise nor its copy. The first majority of a new cluster has nothing else, and counts; so does
everybody when no voter is missing. Otherwise a newcomer is sent the log like any voter that is
behind, by a leader that knows: what the voter confirmed in its life before is struck out. It counts
again when it has all that is committed and a majority of others has since obeyed that leader, for
then no newer term has begun which it may have promised. The price: a voter that was never up to
date does not replace one that was, so a cluster of three needs both that founded it until then.

Nothing here depends on clocks; leases belong to the election.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from hyperscale.cluster.invariants import InvariantBroken


class Role(Enum):
    FOLLOWER = "follower"
    RECOVERING = "recovering"
    LEADING = "leading"


class Trigger(Enum):
    ELECTED = "elected"
    ADOPTED = "log of a majority adopted"
    HIGHER_TERM = "higher term seen"
    STEPPED_DOWN = "leadership ended"


TRANSITIONS: Final[dict[Role, dict[Trigger, Role]]] = {
    Role.FOLLOWER: {
        Trigger.ELECTED: Role.RECOVERING,
        Trigger.HIGHER_TERM: Role.FOLLOWER,
        Trigger.STEPPED_DOWN: Role.FOLLOWER,
    },
    Role.RECOVERING: {
        Trigger.ELECTED: Role.RECOVERING,
        Trigger.ADOPTED: Role.LEADING,
        Trigger.HIGHER_TERM: Role.FOLLOWER,
        Trigger.STEPPED_DOWN: Role.FOLLOWER,
    },
    Role.LEADING: {
        Trigger.ELECTED: Role.RECOVERING,
        Trigger.HIGHER_TERM: Role.FOLLOWER,
        Trigger.STEPPED_DOWN: Role.FOLLOWER,
    },
}


def next_role(role: Role, trigger: Trigger) -> Role:
    following = TRANSITIONS[role].get(trigger)
    if following is None:
        raise InvariantBroken(f"{trigger.value!r} cannot happen to a replica that is {role.value}")
    return following

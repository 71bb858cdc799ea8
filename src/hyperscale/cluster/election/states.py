"""Everything that decides who may lead: the states of a voter and the legal moves between them.

# Theory of operation

A fixed, configured list of voters of one role elects one leader. A majority of that list (self
included) decides, so two decisions always share a voter. Three devices make that voter's word good:

*Term and vote.* Every real election has a number of its own, the term. A voter gives its vote in
a term once, and writes (term, vote) to disk before any message may reveal it. Two majorities in
one term would share a voter that voted twice, so a term has at most one leader, restarts included.

*LeasePromise and lease.* A voter that answers a leader's heartbeat, or gives its vote, promises for
`lease_s` on its own clock to help nobody else to leadership. The leader counts the same span from
the moment it *sent* the question (earlier than the voter's answer), shortened by the worst clock
drift, and calls the end of the span covered by a majority its lease. So the leader's lease ends
strictly before a majority can exist for somebody else, whatever the network does, and at most one
voter believes in a lease of its own at any true moment. A promise lives in memory only; a voter
that restarts therefore behaves as if it had made one to an unknown leader just now.

A promise ends early in one case: the leader resigned. Resigning is final for its term, so a
candidate the old leader named may say "term T was released", which voids promises up to T.

*Pre-vote and check-quorum.* Before raising the term a voter asks whether it would be elected.
Those who hold a promise to another say no, so a node that was cut off and returns disturbs
nobody: no term was raised. The other half of the pair is the leader's own: once its lease
is over it steps down, so a leader that can be heard but cannot hear does not block the rest.

Election delay is random; local health and readiness only lengthen it, so they are preferences
and never conditions on which anything could stop.

*One list.* All of this counts majorities over the same list. Voters say with every message which
list they count over, and take no message of one that counts over another; a voter that learns that
most others have another list is *barred*: it neither votes nor follows nor leads.

The table below is the whole of it. A trigger missing in a state's row cannot happen there.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from hyperscale.cluster.invariants import InvariantBroken


class ElectionState(Enum):
    INITIAL = "initial"
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class ElectionTrigger(Enum):
    STARTED = "started"
    LEADER_SILENT = "leader silent"
    LEADER_HEARD = "leader heard"
    HANDED_OVER = "leadership handed over"
    PRE_VOTE_WON = "pre-vote won"
    PRE_VOTE_LOST = "pre-vote lost"
    VOTE_WON = "vote won"
    VOTE_LOST = "vote lost"
    HIGHER_TERM = "higher term seen"
    VOTED = "voted for another"
    QUORUM_LOST = "quorum lost"
    RESIGNED = "resigned"
    RIVAL_SEEN = "rival in the same term"
    BARRED = "most managers have another list of voters"


TRANSITIONS: Final[dict[ElectionState, dict[ElectionTrigger, ElectionState]]] = {
    ElectionState.INITIAL: {
        ElectionTrigger.STARTED: ElectionState.FOLLOWER,
    },
    ElectionState.FOLLOWER: {
        ElectionTrigger.LEADER_SILENT: ElectionState.PRE_CANDIDATE,
        ElectionTrigger.HANDED_OVER: ElectionState.CANDIDATE,
        ElectionTrigger.LEADER_HEARD: ElectionState.FOLLOWER,
        ElectionTrigger.HIGHER_TERM: ElectionState.FOLLOWER,
        ElectionTrigger.VOTED: ElectionState.FOLLOWER,
    },
    ElectionState.PRE_CANDIDATE: {
        ElectionTrigger.PRE_VOTE_WON: ElectionState.CANDIDATE,
        ElectionTrigger.PRE_VOTE_LOST: ElectionState.FOLLOWER,
        ElectionTrigger.HANDED_OVER: ElectionState.CANDIDATE,
        ElectionTrigger.LEADER_HEARD: ElectionState.FOLLOWER,
        ElectionTrigger.HIGHER_TERM: ElectionState.FOLLOWER,
        ElectionTrigger.VOTED: ElectionState.FOLLOWER,
    },
    ElectionState.CANDIDATE: {
        ElectionTrigger.VOTE_WON: ElectionState.LEADER,
        ElectionTrigger.VOTE_LOST: ElectionState.FOLLOWER,
        ElectionTrigger.LEADER_HEARD: ElectionState.FOLLOWER,
        ElectionTrigger.HIGHER_TERM: ElectionState.FOLLOWER,
    },
    ElectionState.LEADER: {
        ElectionTrigger.QUORUM_LOST: ElectionState.FOLLOWER,
        ElectionTrigger.HIGHER_TERM: ElectionState.FOLLOWER,
        ElectionTrigger.RESIGNED: ElectionState.FOLLOWER,
        ElectionTrigger.RIVAL_SEEN: ElectionState.FOLLOWER,
        ElectionTrigger.BARRED: ElectionState.FOLLOWER,
    },
}


def next_state(state: ElectionState, trigger: ElectionTrigger) -> ElectionState:
    following = TRANSITIONS[state].get(trigger)
    if following is None:
        raise InvariantBroken(f"{trigger.value!r} cannot happen to a {state.value}")
    return following

"""What a voter owes to others: its vote, its promise, its term, its allegiance.

The safety argument of `states` rests on this file alone; `election` adds the wish to lead.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection

from hyperscale.cluster.election.ballot import Ballot, quorum_of
from hyperscale.cluster.election.effects import Durable, LeaderChanged, LostLeadership, Outbox
from hyperscale.cluster.election.eligibility import Eligibility, FlapDamping, preference_s
from hyperscale.cluster.election.lease import LeasePromise
from hyperscale.cluster.election.messages import (
    Heartbeat,
    HeartbeatReply,
    PreVoteReply,
    PreVoteRequest,
    VoteReply,
    VoteRequest,
)
from hyperscale.cluster.election.settings import ElectionSettings
from hyperscale.cluster.election.states import ElectionState, ElectionTrigger, next_state
from hyperscale.cluster.invariants import invariant


class Voter:
    """`voters` are all configured voters of the role, self included; `durable` is what the disk
    remembered."""

    def __init__(
        self,
        node_id: str,
        voters: Collection[str],
        settings: ElectionSettings,
        dice: random.Random,
        durable: Durable,
    ) -> None:
        invariant(node_id in voters, f"{node_id} is not among the voters")
        self.node_id = node_id
        self.settings = settings
        self.quorum = quorum_of(voters)
        self.state = ElectionState.INITIAL
        self.leader: str | None = None
        self._others = tuple(sorted(v for v in voters if v != node_id))
        self._dice = dice
        self._durable = durable
        self._now = -math.inf
        self._outbox = Outbox(settings.held_messages_max)
        self._promise = LeasePromise(None, 0, -math.inf)
        self._ballot: Ballot | None = None
        self._campaign_at = math.inf
        self._quiet_since = -math.inf
        self._eligibility = Eligibility()
        self._damping = FlapDamping(settings)
        self.jumps_refused = 0
        """Messages that spoke of a term no election can have reached since ours."""

    @property
    def term(self) -> int:
        return self._durable.term

    # -- asked for a vote ----------------------------------------------------------------------

    def _on_pre_vote_request(self, candidate: str, request: PreVoteRequest) -> None:
        granted = request.term > self.term and not self._committed_elsewhere(candidate)
        self._outbox.send(candidate, PreVoteReply(self.term, request.round, granted))

    def _on_vote_request(self, candidate: str, request: VoteRequest) -> None:
        """A refused candidate's term is not adopted: somebody cut off for long must not be able
        to end a healthy leader's term by asking."""
        if request.term == self.term and self._durable.voted_for == candidate:
            granted = True
        elif request.term < self.term or self._committed_elsewhere(
            candidate, request.released_term
        ):
            granted = False
        else:
            granted = self._vote(candidate, request.term)
        promise_s = self.settings.lease_s if granted else 0.0
        self._outbox.send(candidate, VoteReply(self.term, request.term, granted, promise_s))

    def _committed_elsewhere(self, candidate: str, released_term: int = 0) -> bool:
        """A leader's own lease binds it as a promise binds its followers."""
        if self.state is ElectionState.LEADER or self._eligibility.barred:
            return True
        return self._promise.blocks(self._now, candidate, released_term)

    def _vote(self, candidate: str, term: int) -> bool:
        if term > self.term:
            self._adopt_term(term)
        if self._durable.voted_for is not None or self.leader is not None:
            return False
        self._move(ElectionTrigger.VOTED)
        self._remember(Durable(term, candidate))
        self._commit_to(candidate)
        return True

    # -- led -------------------------------------------------------------------------------------

    def _on_heartbeat(self, leader: str, heartbeat: Heartbeat) -> None:
        if heartbeat.term > self.term:
            self._adopt_term(heartbeat.term)
        accepted = heartbeat.term == self.term and self._accept_leader(leader)
        reply = HeartbeatReply(
            term=self.term,
            round=heartbeat.round,
            accepted=accepted,
            promise_s=self.settings.lease_s if accepted else 0.0,
            lhm=self._eligibility.lhm,
            syncing=self._eligibility.syncing,
        )
        self._outbox.send(leader, reply)

    def _accept_leader(self, leader: str) -> bool:
        """A leader of a term won a majority in it, so promises to others have ended (or the
        majority could not have voted) and this one replaces them."""
        if self._eligibility.barred:
            return False
        if self.state is ElectionState.LEADER:
            self._step_down(ElectionTrigger.RIVAL_SEEN)
            return False
        if self.leader not in (None, leader):
            return False
        self._move(ElectionTrigger.LEADER_HEARD)
        self._follow(leader)
        self._commit_to(leader)
        return True

    # -- moves all of them share -----------------------------------------------------------------

    def _commit_to(self, holder: str) -> None:
        self._promise = LeasePromise(holder, self.term, self._now + self.settings.lease_s)
        self._quiet_since = self._now
        self._campaign_at = self._now + self._election_delay()

    def _adopt_term(self, term: int) -> None:
        """A later term exists. A leader that learns it still holds the others' promises, so it
        campaigns soon: it is the one they may elect at once."""
        invariant(term > self.term, "an adopted term is a later one")
        if self.state is ElectionState.LEADER:
            self._step_down(ElectionTrigger.HIGHER_TERM)
            self._campaign_at = self._now + self.settings.ballot_resend_s
        else:
            if self._ballot is not None:
                self._campaign_at = self._now + self._retry_delay()
            self._move(ElectionTrigger.HIGHER_TERM)
            self._follow(None)
        self._remember(Durable(term))

    def _step_down(self, trigger: ElectionTrigger) -> None:
        term = self.term
        self._move(trigger)
        self._follow(None)
        self._outbox.add(LostLeadership(term, trigger.value))
        self._quiet_since = self._now
        self._campaign_at = self._now + self._election_delay()

    def _move(self, trigger: ElectionTrigger) -> None:
        self.state = next_state(self.state, trigger)
        self._ballot = None

    def _follow(self, leader: str | None) -> None:
        if leader == self.leader:
            return
        self.leader = leader
        if leader is not None:
            self._damping.note_change(self._now)
        self._outbox.add(LeaderChanged(self.term, leader))

    def _remember(self, durable: Durable) -> None:
        invariant(durable.term >= self.term, "terms only grow")
        invariant(
            durable.term > self.term or self._durable.voted_for is None,
            "a vote is given once in a term",
        )
        self._durable = durable
        self._outbox.write(durable)

    # -- timeouts ----------------------------------------------------------------------------------

    def _election_delay(self) -> float:
        settings = self.settings
        return self._delay(settings.election_delay_min_s, settings.election_delay_max_s)

    def _retry_delay(self) -> float:
        return self._delay(self.settings.retry_delay_min_s, self.settings.retry_delay_max_s)

    def _delay(self, low: float, high: float) -> float:
        return self._dice.uniform(low, high) + preference_s(self._eligibility, self.settings)

"""The election core of one voter: events and the time in, effects out.

`states` tells the theory and holds the table of moves, `voter` keeps the promises, and this file
campaigns and leads. Every entry first catches up with the clock, so a voter that slept (paused
process, stalled disk) learns that its lease is over before it does anything else.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable

from hyperscale.cluster.election.ballot import Ballot, BallotOutcome
from hyperscale.cluster.election.effects import (
    BecameLeader,
    Durable,
    Effect,
    HandoverRefused,
    SetTimer,
)
from hyperscale.cluster.election.eligibility import Eligibility, reluctance_s, successor
from hyperscale.cluster.election.lease import LeaderLease, LeasePromise
from hyperscale.cluster.election.messages import (
    Handover,
    Heartbeat,
    HeartbeatReply,
    Message,
    PreVoteReply,
    PreVoteRequest,
    VoteReply,
    VoteRequest,
)
from hyperscale.cluster.election.settings import ElectionSettings
from hyperscale.cluster.election.states import ElectionState, ElectionTrigger
from hyperscale.cluster.election.voter import Voter
from hyperscale.cluster.identity import JUMP_MAX
from hyperscale.cluster.invariants import invariant


class Election(Voter):
    """A voter that will lead when nobody does."""

    def __init__(
        self,
        node_id: str,
        voters: Collection[str],
        settings: ElectionSettings,
        dice: random.Random,
        durable: Durable,
    ) -> None:
        super().__init__(node_id, voters, settings, dice, durable)
        self._timer_at: float | None = None
        self._ballots = 0
        self._lease = LeaderLease(self.quorum, settings)
        self._heartbeat_at = math.inf
        self._peers: dict[str, Eligibility] = {}

    # -- what the rest of a node may ask -----------------------------------------------------

    @property
    def lease_until(self) -> float:
        """Until then, by this voter's clock, nobody else can lead. Past for all but a leader."""
        return self._lease.until if self.state is ElectionState.LEADER else -math.inf

    def may_lead(self, now: float) -> bool:
        """Ask right before acting as leader; a True is worth nothing a lease later."""
        return now < self.lease_until

    def leaderless_s(self, now: float) -> float:
        """For how long this voter has supported nobody's lease, its own included: a majority that
        did so at one moment means that nobody led then."""
        if self.state in (ElectionState.INITIAL, ElectionState.LEADER):
            return 0.0
        return max(0.0, now - max(self._promise.until, self._quiet_since))

    def quorum_alive(self, alive: Iterable[str]) -> bool:
        """For monitoring: are enough configured voters alive to elect anybody?"""
        return len({*alive} & {*self._others}) + 1 >= self.quorum

    # -- events ------------------------------------------------------------------------------

    def start(self, now: float, eligibility: Eligibility | None = None) -> list[Effect]:
        """`eligibility` is what it begins with. A promise made before a restart is forgotten, to
        whom as well: keep one to nobody. A voter that has never known a term has never promised
        anything, and need not wait."""
        settings = self.settings
        self._now = self._quiet_since = now
        self._eligibility = eligibility or self._eligibility
        self._move(ElectionTrigger.STARTED)
        self._promise = LeasePromise(
            None, self.term, now + (settings.lease_s if self.term else 0.0)
        )
        self._campaign_at = now + self._first_delay()
        return self._finish()

    def tick(self, now: float) -> list[Effect]:
        self._catch_up(now)
        return self._finish()

    def receive(self, now: float, sender: str, message: Message) -> list[Effect]:
        self._catch_up(now)
        if sender in self._others:
            if message.term > self.term + JUMP_MAX:
                self.jumps_refused += 1
            else:
                self._dispatch(sender, message)
        return self._finish()

    def persisted(self, now: float, token: int) -> list[Effect]:
        """Everything up to `token` is on stable storage: what waited for it may be spoken."""
        self._catch_up(now)
        self._outbox.persisted(token)
        if self.state is ElectionState.CANDIDATE and self._outbox.all_durable:
            self._begin_ballot()
        return self._finish()

    def set_eligibility(self, now: float, eligibility: Eligibility) -> list[Effect]:
        self._catch_up(now)
        if self._eligibility.barred and not eligibility.barred:
            self._campaign_at = self._now + self._first_delay()
        self._eligibility = eligibility
        if eligibility.barred:
            self._stand_aside()
        self._consider_handover()
        return self._finish()

    def hand_over(
        self, now: float, target: str | None = None, urgent: bool = False
    ) -> list[Effect]:
        """Leave leadership to `target`, or to the best voter in sight. Not while leadership
        flaps, unless urgent."""
        self._catch_up(now)
        peers = self._visible_peers()
        target = target or successor(peers, self.settings)
        if self.state is not ElectionState.LEADER:
            self._outbox.add(HandoverRefused("not the leader"))
        elif target is None or target not in peers:
            self._outbox.add(HandoverRefused("no willing voter in sight"))
        elif not urgent and self._damping.cooling(self._now):
            self._outbox.add(HandoverRefused("leadership changed hands too often lately"))
        else:
            self._resign_to(target)
        return self._finish()

    # -- time --------------------------------------------------------------------------------

    def _catch_up(self, now: float) -> None:
        self._now = max(self._now, now)
        if self.state is ElectionState.LEADER:
            if self._now >= self._lease.until:
                self._step_down(ElectionTrigger.QUORUM_LOST)
            elif self._now >= self._heartbeat_at:
                self._send_heartbeats()
                self._consider_handover()
        elif self._ballot is not None:
            if self._now >= self._ballot.give_up_at:
                self._lose_ballot()
            elif self._now >= self._ballot.resend_at:
                self._ask_voters()
        elif self._now >= self._campaign_at:
            self._consider_campaign()

    def _wake_at(self) -> float:
        if self.state is ElectionState.LEADER:
            return min(self._heartbeat_at, self._lease.until)
        if self._ballot is not None:
            return min(self._ballot.give_up_at, self._ballot.resend_at)
        return self._campaign_at

    def _finish(self) -> list[Effect]:
        invariant(
            (self._ballot is not None)
            == (self.state in (ElectionState.PRE_CANDIDATE, ElectionState.CANDIDATE)),
            "a ballot is open exactly while campaigning",
        )
        invariant(
            (self.leader == self.node_id) == (self.state is ElectionState.LEADER),
            "a voter believes in itself exactly while it leads",
        )
        wake_at = self._wake_at()
        timer_at = None if math.isinf(wake_at) else wake_at
        if timer_at != self._timer_at:
            self._timer_at = timer_at
            self._outbox.add(SetTimer(timer_at))
        return self._outbox.take()

    # -- campaigning -------------------------------------------------------------------------

    def _consider_campaign(self) -> None:
        reluctant_until = self._quiet_since + reluctance_s(self._eligibility, self.settings)
        if self._eligibility.barred:
            self._campaign_at = math.inf
        elif self._now < reluctant_until:
            self._campaign_at = reluctant_until + self._election_delay()
        elif self._others and self._promise.blocks(self._now, self.node_id):
            self._campaign_at = self._promise.until + self._retry_delay()
        else:
            self._follow(None)
            self._move(ElectionTrigger.LEADER_SILENT)
            self._prepare_ballot(self._next_term)
            self._begin_ballot()

    def _first_delay(self) -> float:
        """Alone it need not wait; without a past it need not wait for promises to end."""
        if not self._others:
            return 0.0
        if self.term:
            return self._election_delay()
        return self._delay(0.0, self.settings.first_delay_max_s)

    @property
    def _next_term(self) -> int:
        other = self._eligibility.other_term
        return (self.term if other > self.term + JUMP_MAX else max(self.term, other)) + 1

    def _stand_aside(self) -> None:
        """Barred: whatever it had begun is over."""
        if self.state is ElectionState.LEADER:
            self._step_down(ElectionTrigger.BARRED)
        elif self._ballot is not None:
            self._lose_ballot()
        self._follow(None)

    def _stand_for_election(self, trigger: ElectionTrigger, released_term: int = 0) -> None:
        """Nobody is asked, and no time is lost, before our own vote is on disk."""
        self._move(trigger)
        self._follow(None)
        self._remember(Durable(self._next_term, self.node_id))
        self._prepare_ballot(self.term, released_term)

    def _prepare_ballot(self, term: int, released_term: int = 0) -> None:
        self._ballots += 1
        self._ballot = Ballot(term, self._ballots, self._others, self.quorum, released_term)

    def _begin_ballot(self) -> None:
        ballot = self._open_ballot
        if not ballot.own_vote:
            ballot.own_vote = True
            ballot.asked_at = self._now
            ballot.give_up_at = self._now + self.settings.ballot_timeout_s
            self._ask_voters()
            self._count_ballot()

    @property
    def _open_ballot(self) -> Ballot:
        assert self._ballot is not None, "no ballot is open"
        return self._ballot

    def _ask_voters(self) -> None:
        ballot = self._open_ballot
        ballot.resend_at = self._now + self.settings.ballot_resend_s
        request: Message
        if self.state is ElectionState.PRE_CANDIDATE:
            request = PreVoteRequest(ballot.term, ballot.round)
        else:
            request = VoteRequest(ballot.term, ballot.released_term)
        for voter in ballot.silent():
            self._outbox.send(voter, request)

    def _count_ballot(self) -> None:
        ballot = self._open_ballot
        if ballot.outcome is BallotOutcome.LOST:
            self._lose_ballot()
        elif ballot.outcome is BallotOutcome.WON and self.state is ElectionState.PRE_CANDIDATE:
            self._stand_for_election(ElectionTrigger.PRE_VOTE_WON)
        elif ballot.outcome is BallotOutcome.WON:
            self._become_leader(ballot)

    def _lose_ballot(self) -> None:
        pre = self.state is ElectionState.PRE_CANDIDATE
        self._move(ElectionTrigger.PRE_VOTE_LOST if pre else ElectionTrigger.VOTE_LOST)
        self._campaign_at = self._now + self._retry_delay()

    # -- leading -----------------------------------------------------------------------------

    def _become_leader(self, ballot: Ballot) -> None:
        """Votes are promises too, so a leader starts with a lease; one elected too late to have
        any does not start. Being elected ends what it had promised to leaders before."""
        lease = LeaderLease(self.quorum, self.settings)
        for voter, promise_s in sorted(ballot.granted.items()):
            lease.cover(voter, ballot.asked_at, promise_s)
        if lease.until <= self._now:
            self._lose_ballot()
            return
        invariant(
            self._durable == Durable(ballot.term, self.node_id),
            "who leads a term has written down its own vote in it",
        )
        self._lease = lease
        self._peers = {}
        self._promise = LeasePromise(None, 0, -math.inf)
        self._move(ElectionTrigger.VOTE_WON)
        self._follow(self.node_id)
        self._outbox.add(BecameLeader(self.term))
        self._send_heartbeats()

    def _send_heartbeats(self) -> None:
        if not self._others:
            self._heartbeat_at = math.inf
            return
        self._heartbeat_at = self._now + self.settings.heartbeat_interval_s
        round_number = self._lease.open_round(self._now)
        for voter in self._others:
            self._outbox.send(voter, Heartbeat(self.term, round_number))

    def _visible_peers(self) -> dict[str, Eligibility]:
        return {v: s for v, s in self._peers.items() if self._lease.covered(v, self._now)}

    def _consider_handover(self) -> None:
        """A leader in distress leaves by itself, if somebody better is there."""
        lhm, settings = self._eligibility.lhm, self.settings
        severe = lhm >= settings.lhm_severe and not self._damping.cooling(self._now)
        wanted = severe or lhm >= settings.lhm_critical
        if self.state is not ElectionState.LEADER or not wanted:
            return
        target = successor(self._visible_peers(), settings, lhm)
        if target is not None:
            self._resign_to(target)

    def _resign_to(self, target: str) -> None:
        """If the one message is lost the others elect somebody when their promises end."""
        term = self.term
        self._step_down(ElectionTrigger.RESIGNED)
        self._outbox.send(target, Handover(term))

    # -- messages ----------------------------------------------------------------------------

    def _dispatch(self, sender: str, message: Message) -> None:
        match message:
            case Heartbeat():
                self._on_heartbeat(sender, message)
            case HeartbeatReply():
                self._on_heartbeat_reply(sender, message)
            case PreVoteRequest():
                self._on_pre_vote_request(sender, message)
            case PreVoteReply():
                self._on_pre_vote_reply(sender, message)
            case VoteRequest():
                self._on_vote_request(sender, message)
            case VoteReply():
                self._on_vote_reply(sender, message)
            case Handover():
                self._on_handover(message)

    def _on_pre_vote_reply(self, sender: str, reply: PreVoteReply) -> None:
        if reply.term > self.term:
            self._adopt_term(reply.term)
        elif self.state is ElectionState.PRE_CANDIDATE and reply.round == self._open_ballot.round:
            self._note_answer(sender, reply.granted, 0.0)

    def _on_vote_reply(self, sender: str, reply: VoteReply) -> None:
        if reply.term > self.term:
            self._adopt_term(reply.term)
        elif self.state is ElectionState.CANDIDATE and reply.asked_term == self._open_ballot.term:
            self._note_answer(sender, reply.granted, reply.promise_s)

    def _note_answer(self, sender: str, granted: bool, promise_s: float) -> None:
        if granted:
            self._open_ballot.grant(sender, promise_s)
        else:
            self._open_ballot.deny(sender)
        self._count_ballot()

    def _on_heartbeat_reply(self, sender: str, reply: HeartbeatReply) -> None:
        if reply.term > self.term:
            self._adopt_term(reply.term)
        elif self.state is ElectionState.LEADER and reply.term == self.term and reply.accepted:
            self._lease.acknowledge(sender, reply.round, reply.promise_s)
            self._peers[sender] = Eligibility(reply.lhm, syncing=reply.syncing)

    def _on_handover(self, handover: Handover) -> None:
        """Whoever led our present term has stopped, so promises of this term are void."""
        idle = self.state in (ElectionState.FOLLOWER, ElectionState.PRE_CANDIDATE)
        if handover.term == self.term and idle and not self._eligibility.barred:
            self._stand_for_election(ElectionTrigger.HANDED_OVER, released_term=handover.term)

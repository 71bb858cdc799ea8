"""The election core under observation, and wrong versions of it that a checker must catch."""

from __future__ import annotations

import math
from collections.abc import Callable

from hyperscale.cluster.election import Durable, Effect, Election, Eligibility, Send
from hyperscale.cluster.election.ballot import Ballot
from hyperscale.cluster.election.lease import LeaderLease, LeasePromise
from hyperscale.cluster.election.messages import PreVoteRequest, VoteReply, VoteRequest
from hyperscale.cluster.election.states import ElectionTrigger
from hyperscale.cluster.fencing import Fence, FenceGuard, FenceResult, Ruling
from hyperscale.nodes.member.term_file import TermFile, encode

Observe = Callable[..., None]


class WatchedElection(Election):
    """The real core; tells what it says and what it believes, and changes nothing."""

    observe: Observe
    true_time: Callable[[float], float]
    _told_lease: float = -math.inf
    _told_term: int = -1

    def _finish(self) -> list[Effect]:
        effects = super()._finish()
        for effect in effects:
            if isinstance(effect, Send):
                self._tell_send(effect)
        lease = self.lease_until
        if lease != self._told_lease:
            self._told_lease = lease
            until = None if math.isinf(lease) else self.true_time(lease)
            self.observe("lease", node=self.node_id, term=self.term, until=until)
        return effects

    def _tell_send(self, send: Send) -> None:
        message = send.message
        own = message.term - 1 if isinstance(message, PreVoteRequest) else message.term
        if own != self._told_term:
            self._told_term = own
            self.observe("spoke", node=self.node_id, term=own)
        if isinstance(message, VoteReply) and message.granted:
            self.observe("voted", node=self.node_id, term=message.asked_term, candidate=send.to)
        elif isinstance(message, VoteRequest):
            self.observe("voted", node=self.node_id, term=message.term, candidate=self.node_id)


class MinorityQuorum(WatchedElection):
    """Half of the voters decide, rounded down."""

    def start(self, now: float, eligibility: Eligibility | None = None) -> list[Effect]:
        self.quorum -= 1
        return super().start(now, eligibility)


class VotesTwice(WatchedElection):
    """Forgets within a term that it has voted."""

    def _vote(self, candidate: str, term: int) -> bool:
        if term == self.term:
            self._durable = Durable(self.term)
            self.leader = None
        return super()._vote(candidate, term)

    def _committed_elsewhere(self, candidate: str, released_term: int = 0) -> bool:
        return False


class _LeaseFromAnswer(LeaderLease):
    """Counts a promise from when it was heard of, and all of it."""

    now = 0.0

    def acknowledge(self, voter: str, round_number: int, promise_s: float) -> None:
        self._covered_until[voter] = self.now + promise_s


class LeaseFromAnswer(WatchedElection):
    def _become_leader(self, ballot: Ballot) -> None:
        super()._become_leader(ballot)
        lease = _LeaseFromAnswer(self.quorum, self.settings)
        lease._covered_until = self._lease._covered_until
        self._lease = lease
        self._send_heartbeats()

    def _catch_up(self, now: float) -> None:
        if isinstance(self._lease, _LeaseFromAnswer):
            self._lease.now = now
        super()._catch_up(now)


class _LeaseWithoutDrift(LeaderLease):
    """Trusts that all clocks run alike."""

    def cover(self, voter: str, asked_at: float, promise_s: float) -> None:
        before = self._covered_until.get(voter, -math.inf)
        self._covered_until[voter] = max(asked_at + promise_s, before)


class NoDriftMargin(WatchedElection):
    def _become_leader(self, ballot: Ballot) -> None:
        super()._become_leader(ballot)
        lease = _LeaseWithoutDrift(self.quorum, self.settings)
        lease._covered_until = self._lease._covered_until
        self._lease = lease
        self._send_heartbeats()


class NoAbstention(WatchedElection):
    """Forgets over a restart that it may have promised something."""

    def start(self, now: float, eligibility: Eligibility | None = None) -> list[Effect]:
        effects = super().start(now, eligibility)
        self._promise = LeasePromise(None, 0, -math.inf)
        return effects


class NoStickiness(WatchedElection):
    """Votes for anybody with a higher term, whatever it promised."""

    def _committed_elsewhere(self, candidate: str, released_term: int = 0) -> bool:
        return False


class NoPreVote(WatchedElection):
    """Raises the term first and asks then."""

    def _ask_voters(self) -> None:
        super()._ask_voters()
        self._open_ballot.granted = {name: 0.0 for name in self._others if not self._standing_in()}

    def _standing_in(self) -> bool:
        return self._durable.voted_for == self.node_id and self._open_ballot.term == self.term


class NoCheckQuorum(WatchedElection):
    """Keeps leading, heartbeats included, when nobody answers any more."""

    def _step_down(self, trigger: ElectionTrigger) -> None:
        if trigger is ElectionTrigger.QUORUM_LOST:
            if self._now >= self._heartbeat_at:
                self._send_heartbeats()
        else:
            super()._step_down(trigger)

    def _wake_at(self) -> float:
        wake_at = super()._wake_at()
        return self._heartbeat_at if wake_at <= self._now else wake_at


class GivesUp(WatchedElection):
    """Does not try again after a lost ballot."""

    def _lose_ballot(self) -> None:
        super()._lose_ballot()
        self._campaign_at = math.inf


class NothingSaved(TermFile):
    async def save(self, durable: Durable) -> None:
        return


class NothingSynced(TermFile):
    """Renames the new file over the old, and trusts that this lasts."""

    async def save(self, durable: Durable) -> None:
        file = await self._disk.open(self._beside)
        await file.truncate(0)
        await file.append(encode(durable))
        await file.close()
        await self._disk.rename(self._beside, self._path)


class BelievesWhatItReads(TermFile):
    """Takes what the page cache shows for what the disk holds."""

    async def load(self) -> Durable:
        await self._make_directories()
        return await self._read() or Durable()


class BlindGuard(FenceGuard[None]):
    """Obeys everybody."""

    def admit(self, now: float, key: str, fence: Fence) -> FenceResult[None]:
        return FenceResult(Ruling.FRESH, fence)


CORES: dict[str, type[WatchedElection]] = {
    "minority-quorum": MinorityQuorum,
    "votes-twice": VotesTwice,
    "lease-from-answer": LeaseFromAnswer,
    "no-drift-margin": NoDriftMargin,
    "no-abstention": NoAbstention,
    "no-stickiness": NoStickiness,
    "no-pre-vote": NoPreVote,
    "no-check-quorum": NoCheckQuorum,
    "gives-up": GivesUp,
}

FILES: dict[str, type[TermFile]] = {
    "not-saved": NothingSaved,
    "not-synced": NothingSynced,
    "read-is-not-durable": BelievesWhatItReads,
}

PLANTED_BUGS: dict[str, str] = {
    "minority-quorum": "OneLeaderPerTerm",
    "votes-twice": "OneVotePerTerm",
    "lease-from-answer": "OneLease",
    "no-drift-margin": "OneLease",
    "no-abstention": "OneLease",
    "no-stickiness": "OneLease",
    "no-pre-vote": "HealthyLeaderKept",
    "no-check-quorum": "LeaderDespitePartialMesh",
    "gives-up": "liveness",
    "not-saved": "TermsKept",
    "not-synced": "TermsKept",
    "read-is-not-durable": "TermsKept",
    "blind-guard": "FencesNeverGoBack",
}

"""The election core, told as stories of one voter: m0, with m1 and m2 played by the test."""

from __future__ import annotations

import random

import pytest

from hyperscale.cluster.election import (
    BecameLeader,
    Durable,
    Effect,
    Election,
    ElectionSettings,
    ElectionState,
    Eligibility,
    HandoverRefused,
    LeaderChanged,
    LostLeadership,
    Message,
    Persist,
    Send,
    SetTimer,
)
from hyperscale.cluster.election.messages import (
    Handover,
    Heartbeat,
    HeartbeatReply,
    PreVoteReply,
    PreVoteRequest,
    VoteReply,
    VoteRequest,
)
from hyperscale.cluster.invariants import InvariantBroken
from tests.property.election_world import ElectionWorld

SETTINGS = ElectionSettings()
LEASE = SETTINGS.lease_s


class Story:
    """Drives one voter and answers for the disk."""

    def __init__(self, voters: int = 3, durable: Durable = Durable()) -> None:
        names = [f"m{i}" for i in range(voters)]
        self.core = Election("m0", names, SETTINGS, random.Random(7), durable)
        self.now = 100.0
        self.token = 0
        self.timer: float | None = None
        self.saved: Durable | None = None
        self.effects = self._note(self.core.start(self.now))

    def _note(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, Persist):
                self.token, self.saved = effect.token, effect.durable
            elif isinstance(effect, SetTimer):
                self.timer = effect.at
        return effects

    def hear(self, sender: str, message: Message, after: float = 0.0) -> list[Effect]:
        self.now += after
        return self._note(self.core.receive(self.now, sender, message))

    def disk(self) -> list[Effect]:
        return self._note(self.core.persisted(self.now, self.token))

    def wait(self, seconds: float | None = None) -> list[Effect]:
        """A number of seconds, or until the timer."""
        assert seconds is not None or self.timer is not None
        self.now = self.now + seconds if seconds is not None else self.timer or 0.0
        return self._note(self.core.tick(self.now))

    def said(self, effects: list[Effect]) -> list[tuple[str, Message]]:
        return [(e.to, e.message) for e in effects if isinstance(e, Send)]

    def lead(self) -> Story:
        """Get elected for the next term."""
        term = self.core._next_term
        (_, request), *_ = self.said(self.wait())
        assert isinstance(request, PreVoteRequest)
        self.hear("m1", PreVoteReply(self.core.term, request.round, True))
        self.disk()
        self.effects = self.hear("m1", VoteReply(term, term, True, LEASE))
        assert self.core.state is ElectionState.LEADER
        return self

    def acknowledge(self, voter: str, round_number: int, lhm: float = 0.0) -> list[Effect]:
        reply = HeartbeatReply(self.core.term, round_number, True, LEASE, lhm, False)
        return self.hear(voter, reply)


def test_a_silent_leader_is_replaced_after_a_pre_vote_and_a_vote() -> None:
    story = Story()
    assert story.core.state is ElectionState.FOLLOWER
    asked = story.said(story.wait())
    assert story.core.state is ElectionState.PRE_CANDIDATE
    assert asked == [("m1", PreVoteRequest(1, 1)), ("m2", PreVoteRequest(1, 1))]
    assert story.saved is None
    story.hear("m2", PreVoteReply(0, 1, True))
    assert story.core.state is ElectionState.CANDIDATE
    assert story.saved == Durable(1, "m0")
    assert story.said(story.disk()) == [("m1", VoteRequest(1, 0)), ("m2", VoteRequest(1, 0))]
    effects = story.hear("m1", VoteReply(1, 1, True, LEASE))
    assert effects[:2] == [LeaderChanged(1, "m0"), BecameLeader(1)]
    assert story.said(effects) == [("m1", Heartbeat(1, 1)), ("m2", Heartbeat(1, 1))]


def test_a_voter_without_a_past_need_not_wait_and_one_with_a_past_must() -> None:
    fresh, old = Story(), Story(durable=Durable(1))
    assert fresh.timer is not None
    assert fresh.timer <= fresh.now + SETTINGS.first_delay_max_s
    assert old.timer is not None
    assert old.timer >= old.now + SETTINGS.lease_s
    assert fresh.saved is None
    fresh.hear("m1", VoteRequest(4, 0))
    assert fresh.saved == Durable(4, "m1")
    old.hear("m1", VoteRequest(4, 0))
    assert old.saved != Durable(4, "m1")


def test_nothing_is_said_and_no_vote_counted_before_the_disk_has_it() -> None:
    story = Story(durable=Durable(1))
    effects = story.hear("m1", VoteRequest(4, 0), after=LEASE)
    assert story.saved == Durable(4, "m1")
    assert story.said(effects) == []
    assert story.said(story.disk()) == [("m1", VoteReply(4, 4, True, LEASE))]


def test_a_slow_disk_costs_a_candidate_no_time_of_its_ballot() -> None:
    story = Story()
    story.wait()
    story.hear("m2", PreVoteReply(0, 1, True))
    assert story.wait(60.0) == []
    assert story.said(story.disk()) == [("m1", VoteRequest(1, 0)), ("m2", VoteRequest(1, 0))]
    story.hear("m1", VoteReply(1, 1, True, LEASE), after=1.0)
    assert story.core.lease_until == pytest.approx(story.now - 1.0 + SETTINGS.trusted_s(LEASE))


def test_a_vote_that_took_all_of_its_promise_makes_no_leader() -> None:
    story = Story()
    story.wait()
    story.hear("m2", PreVoteReply(0, 1, True))
    story.disk()
    effects = story.hear("m1", VoteReply(1, 1, True, 0.5), after=1.0)
    assert BecameLeader(1) not in effects
    assert story.core.state is ElectionState.FOLLOWER


def test_a_vote_is_given_once_in_a_term_and_again_only_to_the_same() -> None:
    story = Story()
    story.hear("m1", VoteRequest(1, 0), after=LEASE)
    story.disk()
    refused = story.hear("m2", VoteRequest(1, 0), after=LEASE)
    assert story.said(refused) == [("m2", VoteReply(1, 1, False, 0.0))]
    again = story.hear("m1", VoteRequest(1, 0))
    assert story.said(again) == [("m1", VoteReply(1, 1, True, LEASE))]


def test_a_restarted_voter_knows_its_vote_and_abstains_for_a_lease() -> None:
    story = Story(durable=Durable(7, "m1"))
    early = story.hear("m2", VoteRequest(8, 0))
    assert story.said(early) == [("m2", VoteReply(7, 8, False, 0.0))]
    assert story.core.term == 7
    same_term = story.hear("m2", VoteRequest(7, 0), after=LEASE)
    assert story.said(same_term) == [("m2", VoteReply(7, 7, False, 0.0))]
    story.hear("m2", VoteRequest(8, 0))
    assert story.saved == Durable(8, "m2")


def test_a_follower_of_a_living_leader_grants_nothing_and_adopts_no_term() -> None:
    story = Story()
    story.hear("m1", Heartbeat(1, 1))
    story.disk()
    pre = story.hear("m2", PreVoteRequest(9, 1), after=LEASE - 0.01)
    assert story.said(pre) == [("m2", PreVoteReply(1, 1, False))]
    vote = story.hear("m2", VoteRequest(9, 0))
    assert story.said(vote) == [("m2", VoteReply(1, 9, False, 0.0))]
    assert story.core.leader == "m1"
    late = story.hear("m2", PreVoteRequest(9, 2), after=0.01)
    assert story.said(late) == [("m2", PreVoteReply(1, 2, True))]


def test_the_holder_of_a_promise_may_be_elected_again_at_once() -> None:
    story = Story()
    story.hear("m1", Heartbeat(1, 1))
    story.disk()
    story.hear("m1", VoteRequest(3, 0), after=0.1)
    assert story.saved == Durable(3, "m1")


def test_a_lease_counts_from_the_question_and_ends_before_the_promise() -> None:
    story = Story().lead()
    elected_until = story.core.lease_until
    assert story.now < elected_until < story.now + LEASE
    sent_at = story.now
    story.now += 2.0
    story.acknowledge("m2", 1)
    assert story.core.lease_until == pytest.approx(sent_at + SETTINGS.trusted_s(LEASE))
    assert story.core.lease_until < sent_at + LEASE - 0.1


def test_a_leader_that_hears_no_quorum_steps_down_when_its_lease_ends() -> None:
    story = Story().lead()
    until = story.core.lease_until
    assert story.core.may_lead(until - 0.001)
    assert not story.core.may_lead(until)
    story.now = until
    assert LostLeadership(1, "quorum lost") in story.wait(0.0)
    assert story.core.state is ElectionState.FOLLOWER


def test_a_voter_says_for_how_long_it_has_supported_nobody() -> None:
    story = Story(durable=Durable(1))
    assert story.core.leaderless_s(story.now + LEASE) == 0.0, "what it promised before is forgotten"
    assert story.core.leaderless_s(story.now + LEASE + 1.0) == pytest.approx(1.0)
    story.hear("m1", Heartbeat(1, 1), after=LEASE + 1.0)
    assert story.core.leaderless_s(story.now + LEASE) == 0.0
    assert story.core.leaderless_s(story.now + LEASE + 2.0) == pytest.approx(2.0)


def test_a_leader_supports_itself_until_it_steps_down() -> None:
    story = Story().lead()
    assert story.core.leaderless_s(story.now + 10.0) == 0.0
    story.now = story.core.lease_until
    story.wait(0.0)
    assert story.core.leaderless_s(story.now + 1.0) == pytest.approx(1.0)


def test_a_leader_that_slept_past_its_lease_knows_before_it_acts() -> None:
    story = Story().lead()
    effects = story.hear("m2", VoteRequest(2, 0), after=10.0)
    assert LostLeadership(1, "quorum lost") in effects
    assert story.saved == Durable(2, "m2")


def test_a_leader_that_learns_of_a_higher_term_campaigns_soon() -> None:
    story = Story().lead()
    reply = HeartbeatReply(5, 1, False, 0.0, 0.0, False)
    effects = story.hear("m2", reply)
    assert LostLeadership(1, "higher term seen") in effects
    assert story.saved == Durable(5, None)
    assert story.timer is not None
    assert story.timer - story.now < 1.0


def test_leadership_is_handed_over_by_name() -> None:
    story = Story().lead()
    story.acknowledge("m1", 1, lhm=2.0)
    story.acknowledge("m2", 1, lhm=0.0)
    effects = story.core.hand_over(story.now)
    assert LostLeadership(1, "resigned") in effects
    assert story.said(effects) == [("m2", Handover(1))]
    assert not story.core.may_lead(story.now)


def test_a_handover_voids_promises_of_its_term_and_of_no_later_one() -> None:
    follower = Story()
    follower.hear("m1", Heartbeat(1, 1))
    follower.disk()
    follower.hear("m2", VoteRequest(2, 1), after=0.1)
    assert follower.saved == Durable(2, "m2")

    bound = Story()
    bound.hear("m1", Heartbeat(3, 1))
    bound.disk()
    refused = bound.hear("m2", VoteRequest(4, 2), after=0.1)
    assert bound.said(refused) == [("m2", VoteReply(3, 4, False, 0.0))]


def test_the_named_successor_campaigns_at_once_and_a_stale_name_does_nothing() -> None:
    story = Story()
    story.hear("m1", Heartbeat(2, 1))
    story.disk()
    assert story.hear("m1", Handover(1)) == []
    story.hear("m1", Handover(2))
    assert story.core.state is ElectionState.CANDIDATE
    assert story.said(story.disk()) == [("m1", VoteRequest(3, 2)), ("m2", VoteRequest(3, 2))]


def test_handovers_are_refused_without_the_lead_a_successor_or_while_cooling() -> None:
    story = Story()
    assert story.core.hand_over(story.now) == [HandoverRefused("not the leader")]
    story.lead()
    assert story.core.hand_over(story.now) == [HandoverRefused("no willing voter in sight")]
    flapping = Story()
    for term in range(1, 5):
        flapping.hear("m1" if term % 2 else "m2", Heartbeat(term, 1), after=1.0)
        flapping.disk()
    flapping.now += LEASE
    flapping.lead()
    flapping.acknowledge("m1", 1)
    refused = flapping.core.hand_over(flapping.now)
    assert refused == [HandoverRefused("leadership changed hands too often lately")]
    urgent = flapping.core.hand_over(flapping.now, urgent=True)
    assert flapping.said(urgent) == [("m1", Handover(flapping.core.term))]


def test_flapping_never_holds_back_an_election() -> None:
    story = Story()
    for term in range(1, 9):
        story.hear("m1" if term % 2 else "m2", Heartbeat(term, 1), after=1.0)
        story.disk()
    story.lead()
    assert story.core.term == 9


def test_an_overburdened_voter_leaves_candidacy_to_others_for_long() -> None:
    story = Story()
    story._note(story.core.set_eligibility(story.now, Eligibility(lhm=5.0)))
    began = story.now
    while story.core.state is ElectionState.FOLLOWER:
        story.wait()
    assert story.now - began > SETTINGS.reluctance_s
    assert story.core.state is ElectionState.PRE_CANDIDATE


def test_a_voter_that_has_not_caught_up_leaves_candidacy_to_others_for_long() -> None:
    story = Story()
    story._note(story.core.set_eligibility(story.now, Eligibility(syncing=True)))
    began = story.now
    while story.core.state is ElectionState.FOLLOWER:
        story.wait()
    assert story.now - began > SETTINGS.reluctance_s


def test_a_barred_voter_never_campaigns_until_it_may() -> None:
    story = Story()
    story._note(story.core.set_eligibility(story.now, Eligibility(barred=True)))
    story.wait()
    assert story.timer is None
    assert story.core.state is ElectionState.FOLLOWER
    story._note(story.core.set_eligibility(story.now, Eligibility()))
    story.wait()
    assert story.core.state is ElectionState.PRE_CANDIDATE


def test_a_barred_voter_neither_votes_nor_follows() -> None:
    story = Story()
    story._note(story.core.set_eligibility(story.now, Eligibility(barred=True)))
    assert story.said(story.hear("m1", PreVoteRequest(1, 1))) == [("m1", PreVoteReply(0, 1, False))]
    assert story.said(story.hear("m1", VoteRequest(1, 0))) == [("m1", VoteReply(0, 1, False, 0.0))]
    story.hear("m2", Heartbeat(1, 1))
    [(_, reply)] = story.said(story.disk())
    assert isinstance(reply, HeartbeatReply)
    assert not reply.accepted
    assert story.core.leader is None


def test_a_barred_leader_stops_at_once() -> None:
    story = Story().lead()
    effects = story.core.set_eligibility(story.now, Eligibility(barred=True))
    assert LostLeadership(1, "most managers have another list of voters") in effects
    assert not story.core.may_lead(story.now)


def test_a_barred_candidate_gives_up() -> None:
    story = Story()
    story.wait()
    assert story.core.state is ElectionState.PRE_CANDIDATE
    story._note(story.core.set_eligibility(story.now, Eligibility(barred=True)))
    assert story.core.state is ElectionState.FOLLOWER
    story.wait()
    assert story.timer is None


def test_a_campaign_goes_above_every_term_of_voters_with_another_list() -> None:
    story = Story()
    story._note(story.core.set_eligibility(story.now, Eligibility(other_term=7)))
    story.lead()
    assert story.core.term == 8


@pytest.mark.parametrize(
    ("eligibility", "leaves"),
    [
        (Eligibility(lhm=5.0), False),
        (Eligibility(lhm=6.0), True),
        (Eligibility(lhm=8.0), True),
    ],
)
def test_a_leader_in_distress_hands_over(eligibility: Eligibility, leaves: bool) -> None:
    story = Story().lead()
    story.acknowledge("m1", 1, lhm=1.0)
    effects = story.core.set_eligibility(story.now, eligibility)
    assert (story.said(effects) == [("m1", Handover(1))]) is leaves


def test_when_all_suffer_the_least_ill_leads_on() -> None:
    story = Story().lead()
    story.acknowledge("m1", 1, lhm=8.0)
    assert story.said(story.core.set_eligibility(story.now, Eligibility(lhm=8.0))) == []
    assert story.core.state is ElectionState.LEADER


def test_a_sole_voter_leads_at_once_and_for_ever() -> None:
    story = Story(voters=1)
    story.wait()
    assert story.core.state is ElectionState.CANDIDATE
    assert BecameLeader(1) in story.disk()
    assert story.core.may_lead(story.now + 1e9)
    assert story.timer is None


def test_a_lost_ballot_is_tried_again() -> None:
    story = Story()
    story.wait()
    story.hear("m1", PreVoteReply(0, 1, False))
    story.hear("m2", PreVoteReply(0, 1, False))
    assert story.core.state is ElectionState.FOLLOWER
    story.wait()
    assert story.core.state is ElectionState.PRE_CANDIDATE


def test_strangers_and_late_answers_change_nothing() -> None:
    story = Story()
    assert story.hear("x9", Heartbeat(50, 1)) == []
    story.wait()
    assert story.hear("m1", PreVoteReply(0, 99, True)) == []
    assert story.hear("m1", VoteReply(0, 1, True, LEASE)) == []
    assert story.core.state is ElectionState.PRE_CANDIDATE


def test_a_rival_in_the_same_term_ends_our_leadership() -> None:
    story = Story().lead()
    effects = story.hear("m2", Heartbeat(1, 1))
    assert LostLeadership(1, "rival in the same term") in effects


def test_quorum_counts_self_and_configured_voters_only() -> None:
    core = Story(voters=5).core
    assert core.quorum == 3
    assert core.quorum_alive(["m1", "m2"])
    assert not core.quorum_alive(["m1", "worker-1", "worker-2"])


def test_a_voter_must_be_configured() -> None:
    with pytest.raises(InvariantBroken, match="not among the voters"):
        Election("m9", ["m0"], SETTINGS, random.Random(1), Durable())


def test_killing_the_leader_of_three_brings_the_next_term() -> None:
    world = ElectionWorld(3, seed=5)
    world.settle(10)
    first = world.leading()[0]
    term = max(world.leaders)
    world.crash(first)
    world.settle(10)
    assert world.leading()
    assert world.leading()[0] != first
    assert max(world.leaders) == term + 1


def test_one_of_three_alone_cannot_win_and_disturbs_nobody_on_return() -> None:
    world = ElectionWorld(3, seed=6)
    world.settle(10)
    leader = world.leading()[0]
    alone = next(name for name in world.nodes if name != leader)
    for _ in range(2000):
        world.bag = [m for m in world.bag if alone not in m[:2]]
        world.settle(0.01)
    assert world.leading() == [leader]
    assert world.nodes[alone].core is not None
    assert world.nodes[alone].core.state in (ElectionState.PRE_CANDIDATE, ElectionState.FOLLOWER)
    world.settle(10)
    assert list(world.leaders) == [max(world.leaders)]
    assert world.leading() == [leader]

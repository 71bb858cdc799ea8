"""Settings, leases, ballots and damping on their own."""

from __future__ import annotations

import math

import msgspec
import pytest

from hyperscale.cluster.election.ballot import Ballot, BallotOutcome, list_digest, quorum_of
from hyperscale.cluster.election.eligibility import Eligibility, FlapDamping, successor
from hyperscale.cluster.election.lease import LeaderLease, LeasePromise
from hyperscale.cluster.election.messages import Envelope, Heartbeat
from hyperscale.cluster.election.settings import ElectionSettings

SETTINGS = ElectionSettings()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"election_delay_min_s": 2.0}, "election_delay_min_s must be at least lease_s"),
        ({"clock_drift_max": 0.5}, "clock_drift_max"),
        ({"heartbeat_interval_s": 2.0}, "must cover two heartbeats"),
        ({"ballot_timeout_s": 3.0}, "ballot_timeout_s must be shorter than a lease"),
    ],
)
def test_unsafe_settings_are_refused(wrong: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ElectionSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("drift", [0.0, 0.01, 0.2])
def test_the_slowest_leader_stops_before_the_fastest_voter_is_free(drift: float) -> None:
    settings = ElectionSettings(
        clock_drift_max=drift, lease_s=6.0, election_delay_min_s=6.0, election_delay_max_s=9.0
    )
    leader_true_s = settings.trusted_s(6.0) / (1 - drift)
    voter_true_s = 6.0 / (1 + drift)
    assert leader_true_s < voter_true_s


def test_a_lease_needs_a_quorum_and_ends_with_its_weakest_member() -> None:
    lease = LeaderLease(3, SETTINGS)
    assert lease.until == -math.inf
    lease.cover("a", 10.0, 3.0)
    assert lease.until == -math.inf
    lease.cover("b", 12.0, 3.0)
    assert lease.until == pytest.approx(10.0 + SETTINGS.trusted_s(3.0))
    lease.cover("c", 11.0, 3.0)
    assert lease.until == pytest.approx(11.0 + SETTINGS.trusted_s(3.0))


def test_late_and_repeated_answers_never_shorten_nor_invent_a_lease() -> None:
    lease = LeaderLease(2, SETTINGS)
    first = lease.open_round(10.0)
    second = lease.open_round(10.5)
    lease.acknowledge("a", second, 3.0)
    until = lease.until
    lease.acknowledge("a", first, 3.0)
    lease.acknowledge("a", 99, 3.0)
    assert lease.until == until
    lease.open_round(20.0)
    lease.acknowledge("b", first, 3.0)
    assert not lease.covered("b", 10.0)


def test_a_short_promise_gives_a_short_lease() -> None:
    lease = LeaderLease(2, SETTINGS)
    lease.cover("a", 10.0, 1.0)
    assert lease.until == pytest.approx(10.0 + SETTINGS.trusted_s(1.0))


def test_promises() -> None:
    promise = LeasePromise("a", 5, until=10.0)
    assert promise.blocks(9.9, "b")
    assert not promise.blocks(9.9, "a")
    assert not promise.blocks(10.0, "b")
    assert promise.blocks(9.9, "b", released_term=4)
    assert not promise.blocks(9.9, "b", released_term=5)
    assert LeasePromise(None, 0, until=10.0).blocks(9.9, "b")


@pytest.mark.parametrize(("count", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_quorum_is_more_than_half(count: int, quorum: int) -> None:
    assert quorum_of([str(i) for i in range(count)]) == quorum


def test_a_ballot_is_won_with_the_own_vote_on_disk_and_lost_when_hopeless() -> None:
    ballot = Ballot(2, 1, ("a", "b", "c", "d"), 3)
    ballot.grant("a", 3.0)
    ballot.grant("b", 3.0)
    assert ballot.outcome is BallotOutcome.OPEN
    ballot.own_vote = True
    assert ballot.outcome is BallotOutcome.WON
    hopeless = Ballot(2, 1, ("a", "b", "c", "d"), 3, own_vote=True)
    hopeless.deny("a")
    hopeless.deny("b")
    assert hopeless.outcome is BallotOutcome.OPEN
    hopeless.deny("c")
    assert hopeless.outcome is BallotOutcome.LOST
    assert hopeless.silent() == ["d"]


def test_a_grant_is_not_taken_back_by_a_late_denial() -> None:
    ballot = Ballot(2, 1, ("a", "b"), 2, own_vote=True)
    ballot.grant("a", 3.0)
    ballot.deny("a")
    assert ballot.outcome is BallotOutcome.WON


def test_four_changes_in_a_minute_start_a_cooldown() -> None:
    damping = FlapDamping(SETTINGS)
    for second in (0, 20, 40):
        damping.note_change(second)
    assert not damping.cooling(41)
    damping.note_change(60)
    assert damping.cooling(61)
    assert damping.cooling(60 + SETTINGS.flap_cooldown_s - 0.1)
    assert not damping.cooling(60 + SETTINGS.flap_cooldown_s)


def test_four_changes_in_more_than_a_minute_do_not() -> None:
    damping = FlapDamping(SETTINGS)
    for second in (0, 20, 40, 61):
        damping.note_change(second)
    assert not damping.cooling(62)


def test_the_successor_is_the_healthiest_that_has_caught_up() -> None:
    peers = {"a": Eligibility(1.0), "b": Eligibility(0.5), "c": Eligibility(2.0)}
    assert successor(peers, SETTINGS) == "b"
    peers["b"] = Eligibility(0.0, syncing=True)
    assert successor(peers, SETTINGS) == "a"
    ill = {"a": Eligibility(7.0), "b": Eligibility(6.5, syncing=True)}
    assert successor(ill, SETTINGS) is None
    assert successor(ill, SETTINGS, healthier_than=8.0) == "b"
    assert successor(ill, SETTINGS, healthier_than=6.0) is None


def test_lists_are_equal_in_whatever_order_they_were_written() -> None:
    assert list_digest(("m1", "m2", "m3")) == list_digest(("m3", "m1", "m2"))
    assert list_digest(("m1", "m2")) != list_digest(("m1", "m2", "m3"))
    assert list_digest(("m1", "m2")) != list_digest(("m1m2",))


def test_unknown_kinds_and_impossible_numbers_are_refused_by_the_decoder() -> None:
    good = msgspec.msgpack.encode(Envelope("managers", "m1", b"list", Heartbeat(1, 1)))
    assert msgspec.msgpack.decode(good, type=Envelope).message == Heartbeat(1, 1)
    for message in (["heartbeat", -1, 1], ["coup", 1, 1], ["heartbeat", 1]):
        bad = msgspec.msgpack.encode(["election/1", "managers", "m1", b"list", message])
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(bad, type=Envelope)

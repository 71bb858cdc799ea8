"""The election core under random orders of events: one leader per term, one lease at a time, and
nothing said before it is written (the last two are asserted by the world itself at every step)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hyperscale.cluster.election import Durable, Election, ElectionSettings, ElectionState
from tests.property.election_world import ElectionWorld, storm


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9), voters=st.sampled_from([1, 2, 3, 4, 5]))
def test_any_history_is_safe_and_ends_with_a_leader(seed: int, voters: int) -> None:
    world = ElectionWorld(voters, seed)
    storm(world, 800)
    for name in world.nodes:
        world.start(name)
    world.settle(30)
    assert len(world.leading()) == 1
    leader = world.leading()[0]
    assert {n.core.leader for n in world.nodes.values() if n.core} == {leader}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_without_a_majority_nobody_leads(seed: int) -> None:
    world = ElectionWorld(5, seed)
    storm(world, 300)
    for name in ("m2", "m3", "m4"):
        world.crash(name)
    for name in ("m0", "m1"):
        world.start(name)
    world.settle(20, step=0.05)
    assert world.leading() == []


class AnyOrder(RuleBasedStateMachine):
    """The same world, driven by hypothesis so that a failure shrinks to a short story."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ElectionWorld(3, 1)

    @rule(index=st.integers(0, 50), keep=st.booleans())
    def deliver(self, index: int, keep: bool) -> None:
        self.world.deliver(index, keep)

    @rule(index=st.integers(0, 50))
    def lose(self, index: int) -> None:
        self.world.drop(index)

    @rule(name=st.sampled_from(["m0", "m1", "m2"]))
    def written(self, name: str) -> None:
        self.world.finish_write(name)

    @rule(seconds=st.sampled_from([0.02, 0.3, 1.0, 3.1]), noticed=st.booleans())
    def time_passes(self, seconds: float, noticed: bool) -> None:
        if noticed:
            self.world.advance(seconds)
        else:
            self.world.stall(seconds)

    @rule(name=st.sampled_from(["m0", "m1", "m2"]))
    def power_cut(self, name: str) -> None:
        self.world.crash(name)
        self.world.start(name)

    @rule(name=st.sampled_from(["m0", "m1", "m2"]))
    def resign(self, name: str) -> None:
        self.world.hand_over(name)

    @rule()
    def quiet_second(self) -> None:
        self.world.settle(1.0, step=0.05)

    @invariant()
    def one_lease(self) -> None:
        self.world.judge()


AnyOrder.TestCase.settings = settings(max_examples=25, stateful_step_count=60, deadline=None)
TestAnyOrder = AnyOrder.TestCase


class _VotesTwice(Election):
    def _vote(self, candidate: str, term: int) -> bool:
        if term == self.term and self.state is ElectionState.FOLLOWER:
            self._durable = Durable(self.term)
        return super()._vote(candidate, term)

    def _committed_elsewhere(self, candidate: str, released_term: int = 0) -> bool:
        return False


class _NoPromises(Election):
    def _committed_elsewhere(self, candidate: str, released_term: int = 0) -> bool:
        return False


class _SpeaksFirst(Election):
    """Sends before the write is done."""

    def _remember(self, durable: Durable) -> None:
        super()._remember(durable)
        self._outbox._durable = self._outbox._written


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (_VotesTwice, "two valid leases|lead term"),
        (_NoPromises, "two valid leases"),
        (_SpeaksFirst, "before it was written"),
    ],
)
def test_the_world_catches_a_wrong_core(make: type[Election], complaint: str) -> None:
    hasty = ElectionSettings(election_delay_max_s=3.05)
    with pytest.raises(AssertionError, match=complaint):
        storms(ElectionWorld(3, seed, make, hasty) for seed in range(300))


def test_the_world_catches_a_forgetful_disk() -> None:
    with pytest.raises(AssertionError, match=r"lead term|two valid leases|without support"):
        storms(ElectionWorld(3, seed, forgetful=True) for seed in range(300))


def storms(worlds: Iterable[ElectionWorld]) -> None:
    for world in worlds:
        storm(world, 6000)

"""Laws of the replicated log over random histories of its core, and proof that they can be broken:
each bug that such logs have had is planted and found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.replica import Replica
from tests.property.records_world import Broken, RecordsWorld


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 5]), st.integers(10, 400))
def test_what_is_committed_stays_and_is_the_same_everywhere(
    seed: int, voters: int, steps: int
) -> None:
    world = RecordsWorld(voters, seed)
    world.run(steps)
    world.heal(world.names[0])
    committed = len(world.committed)
    world.run(40)
    assert len(world.committed) >= committed


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([3, 5]), st.integers(10, 600))
def test_a_disk_that_was_lost_takes_nothing_with_it(seed: int, voters: int, steps: int) -> None:
    world = RecordsWorld(voters, seed, wipes=True)
    world.run(steps)
    world.heal(world.names[0])
    committed = len(world.committed)
    world.run(40)
    assert len(world.committed) >= committed


class CountsOldTerms(Replica):
    """Commits what a majority has, whoever wrote it."""

    def _count(self) -> None:
        leadership = self._leadership
        if leadership is None or not leadership.barrier:
            return
        matches = [one.match_index for one in leadership.progress.values()]
        matches.append(self.log.stable_index)
        self.commit_index = max(self.commit_index, sorted(matches, reverse=True)[self.quorum - 1])


class NoBarrier(CountsOldTerms):
    """And is ready at once."""

    @property
    def ready(self) -> bool:
        return self._leadership is not None and self._leadership.barrier > 0


class TakesTheLongest(Replica):
    def donor(self) -> str | None:
        best = super().donor()
        if best is None or self._leadership is None:
            return best
        ends = {self.name: self.log.last_index}
        ends |= {peer: answer.last_index for peer, answer in self._leadership.answers.items()}
        return max(ends, key=lambda name: (ends[name], name == self.name))


class TrustsItself(Replica):
    """Leads with the log it has."""

    def donor(self) -> str | None:
        return self.name if super().donor() is not None else None


class AsksAMinority(Replica):
    def donor(self) -> str | None:
        return self.name if self._leadership is not None else None


class MatchesAnything(Replica):
    """Takes entries without looking what is before them."""

    def append(self, peer, request):  # type: ignore[no-untyped-def]
        term = self.log.term_at(request.previous_index)
        if term is not None:
            request = type(request)(
                request.term,
                request.previous_index,
                term,
                request.commit_index,
                request.entries,
            )
        return super().append(peer, request)


class CountsItselfEarly(Replica):
    """Its own copy counts before it is on the disk."""

    def propose(self, record: Record | None = None, forgets: str = ""):  # type: ignore[no-untyped-def]
        entry = super().propose(record, forgets)
        self.log.written(self.write)
        self._count()
        return entry


# Where a planted bug is known to show; a little room for changes of the world.
PLANTED = [
    (NoBarrier, False, False, 1_000),
    (TakesTheLongest, False, False, 0),
    (TrustsItself, False, False, 0),
    (AsksAMinority, False, False, 0),
    (MatchesAnything, False, False, 0),
    (CountsItselfEarly, False, False, 1_500),
    (Replica, True, False, 100),
    (Replica, False, True, 600),
]
SEEDS = 800


@pytest.mark.parametrize(("make", "hasty", "forgetful", "first"), PLANTED)
def test_every_planted_bug_is_found(
    make: type[Replica], hasty: bool, forgetful: bool, first: int
) -> None:
    for seed in range(first, first + SEEDS):
        world = RecordsWorld(3, seed, make, hasty, forgetful)
        try:
            world.run(700)
            world.heal(world.names[seed % 3])
        except (Broken, InvariantBroken):
            return
    pytest.fail("nobody noticed")


class KnowsNotThatItForgot(Replica):
    """Answers as if its disk had never held anything."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given[:-1])


def test_a_voter_that_does_not_know_that_it_forgot_is_found() -> None:
    for seed in range(300, 300 + SEEDS):
        world = RecordsWorld(3, seed, KnowsNotThatItForgot, wipes=True)
        try:
            world.run(700)
            world.heal(world.names[seed % 3])
        except (Broken, InvariantBroken):
            return
    pytest.fail("nobody noticed")

"""The table of states is the specification's (B-19), complete and closed."""

from __future__ import annotations

import pytest

from hyperscale.cluster.election.states import (
    TRANSITIONS,
    State,
    Trigger,
    next_state,
)
from hyperscale.cluster.invariants import InvariantBroken

SPECIFIED = [
    (State.INITIAL, Trigger.STARTED, State.FOLLOWER),
    (State.FOLLOWER, Trigger.LEADER_SILENT, State.PRE_CANDIDATE),
    (State.PRE_CANDIDATE, Trigger.PRE_VOTE_WON, State.CANDIDATE),
    (State.PRE_CANDIDATE, Trigger.PRE_VOTE_LOST, State.FOLLOWER),
    (State.PRE_CANDIDATE, Trigger.HIGHER_TERM, State.FOLLOWER),
    (State.CANDIDATE, Trigger.VOTE_WON, State.LEADER),
    (State.CANDIDATE, Trigger.VOTE_LOST, State.FOLLOWER),
    (State.CANDIDATE, Trigger.HIGHER_TERM, State.FOLLOWER),
    (State.LEADER, Trigger.HIGHER_TERM, State.FOLLOWER),
    (State.LEADER, Trigger.QUORUM_LOST, State.FOLLOWER),
]


@pytest.mark.parametrize(("state", "trigger", "following"), SPECIFIED)
def test_specified_moves(state: State, trigger: Trigger, following: State) -> None:
    assert next_state(state, trigger) is following


def test_every_state_has_a_row_and_every_trigger_a_use() -> None:
    assert set(TRANSITIONS) == set(State)
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(Trigger)


def test_leadership_is_entered_by_a_won_vote_only() -> None:
    ways = [(s, t) for s, row in TRANSITIONS.items() for t, to in row.items() if to is State.LEADER]
    assert ways == [(State.CANDIDATE, Trigger.VOTE_WON)]


def test_a_move_outside_the_table_is_refused() -> None:
    with pytest.raises(InvariantBroken, match="cannot happen to a leader"):
        next_state(State.LEADER, Trigger.VOTED)

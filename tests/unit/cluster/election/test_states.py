"""The table of states is complete and closed."""

from __future__ import annotations

import pytest

from hyperscale.cluster.election.states import (
    TRANSITIONS,
    ElectionState,
    ElectionTrigger,
    next_state,
)
from hyperscale.cluster.invariants import InvariantBroken

SPECIFIED = [
    (ElectionState.INITIAL, ElectionTrigger.STARTED, ElectionState.FOLLOWER),
    (ElectionState.FOLLOWER, ElectionTrigger.LEADER_SILENT, ElectionState.PRE_CANDIDATE),
    (ElectionState.PRE_CANDIDATE, ElectionTrigger.PRE_VOTE_WON, ElectionState.CANDIDATE),
    (ElectionState.PRE_CANDIDATE, ElectionTrigger.PRE_VOTE_LOST, ElectionState.FOLLOWER),
    (ElectionState.PRE_CANDIDATE, ElectionTrigger.HIGHER_TERM, ElectionState.FOLLOWER),
    (ElectionState.CANDIDATE, ElectionTrigger.VOTE_WON, ElectionState.LEADER),
    (ElectionState.CANDIDATE, ElectionTrigger.VOTE_LOST, ElectionState.FOLLOWER),
    (ElectionState.CANDIDATE, ElectionTrigger.HIGHER_TERM, ElectionState.FOLLOWER),
    (ElectionState.LEADER, ElectionTrigger.HIGHER_TERM, ElectionState.FOLLOWER),
    (ElectionState.LEADER, ElectionTrigger.QUORUM_LOST, ElectionState.FOLLOWER),
]


@pytest.mark.parametrize(("state", "trigger", "following"), SPECIFIED)
def test_specified_moves(
    state: ElectionState, trigger: ElectionTrigger, following: ElectionState
) -> None:
    assert next_state(state, trigger) is following


def test_every_state_has_a_row_and_every_trigger_a_use() -> None:
    assert set(TRANSITIONS) == set(ElectionState)
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(ElectionTrigger)


def test_leadership_is_entered_by_a_won_vote_only() -> None:
    ways = [
        (s, t)
        for s, row in TRANSITIONS.items()
        for t, to in row.items()
        if to is ElectionState.LEADER
    ]
    assert ways == [(ElectionState.CANDIDATE, ElectionTrigger.VOTE_WON)]


def test_a_move_outside_the_table_is_refused() -> None:
    with pytest.raises(InvariantBroken, match="cannot happen to a leader"):
        next_state(ElectionState.LEADER, ElectionTrigger.VOTED)

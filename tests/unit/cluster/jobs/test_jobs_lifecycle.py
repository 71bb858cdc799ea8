"""The table of a workflow's life, every pair of it."""

from __future__ import annotations

import itertools

import pytest

from hyperscale.cluster.jobs.lifecycle import (
    HISTORY_MAX,
    OVER,
    PUBLIC,
    RECOVERY,
    TRANSITIONS,
    Lifecycle,
    LifecycleState,
)

LEGAL = {
    ("PENDING", "DISPATCHED"),
    ("PENDING", "CANCELLING"),
    ("PENDING", "FAILED"),
    ("DISPATCHED", "RUNNING"),
    ("DISPATCHED", "CANCELLING"),
    ("DISPATCHED", "FAILED"),
    ("DISPATCHED", "PENDING"),
    ("RUNNING", "COMPLETED"),
    ("RUNNING", "FAILED"),
    ("RUNNING", "CANCELLING"),
    ("FAILED", "FAILED_CANCELING_DEPENDENTS"),
    ("FAILED", "CANCELLED"),
    ("FAILED_CANCELING_DEPENDENTS", "FAILED_READY_FOR_RETRY"),
    ("FAILED_CANCELING_DEPENDENTS", "CANCELLED"),
    ("FAILED_READY_FOR_RETRY", "PENDING"),
    ("FAILED_READY_FOR_RETRY", "CANCELLED"),
    ("FAILED_READY_FOR_RETRY", "COMPLETED"),
    ("FAILED_READY_FOR_RETRY", "FAILED"),
    ("CANCELLING", "CANCELLED"),
}


@pytest.mark.parametrize(
    ("source", "target"), list(itertools.product(LifecycleState, LifecycleState))
)
def test_every_pair(source: LifecycleState, target: LifecycleState) -> None:
    life = Lifecycle(state=source)
    legal = (source.name, target.name) in LEGAL
    assert life.transition(source, target, "because", 1.0) is legal
    assert life.state is (target if legal else source)
    assert len(life.history) == int(legal)
    assert life.refused == int(not legal)
    assert dict(life.moves) == ({(source, target): 1} if legal else {})


def test_a_decision_on_an_older_state_is_refused() -> None:
    life = Lifecycle()
    assert life.transition(LifecycleState.PENDING, LifecycleState.DISPATCHED, "first", 1.0)
    assert not life.transition(LifecycleState.PENDING, LifecycleState.DISPATCHED, "second", 1.0)
    assert not life.transition(LifecycleState.PENDING, LifecycleState.CANCELLING, "cancel", 1.0)
    assert [step.reason for step in life.history] == ["first"]


def test_history_reads_as_seconds_and_reasons() -> None:
    life = Lifecycle()
    life.transition(LifecycleState.PENDING, LifecycleState.DISPATCHED, "to w1", 0.5)
    life.transition(LifecycleState.DISPATCHED, LifecycleState.RUNNING, "ready", 1.0)
    life.transition(LifecycleState.RUNNING, LifecycleState.FAILED, "worker w1 died", 5.04)
    assert life.lines()[-1] == "5.0 RUNNING → FAILED (worker w1 died)"


def test_history_keeps_the_last_64() -> None:
    life = Lifecycle()
    for turn in range(40):
        life.transition(LifecycleState.PENDING, LifecycleState.DISPATCHED, f"go {turn}", turn)
        life.transition(LifecycleState.DISPATCHED, LifecycleState.PENDING, f"back {turn}", turn)
    assert len(life.history) == HISTORY_MAX == 64
    assert life.history[-1].reason == "back 39"
    assert life.moves.total() == 80


def test_public_names_cover_every_state() -> None:
    assert set(PUBLIC) == set(LifecycleState) == set(TRANSITIONS)
    assert set(PUBLIC.values()) == {"pending", "running", "completed", "failed", "cancelled"}
    assert PUBLIC[LifecycleState.FAILED_READY_FOR_RETRY] == "pending"
    assert PUBLIC[LifecycleState.CANCELLING] == "cancelled"


def test_recovery_is_a_legal_walk() -> None:
    life = Lifecycle(state=LifecycleState.RUNNING)
    for target in RECOVERY:
        assert life.transition(life.state, target, "lost", 1.0)
    assert (life.state, life.public) == (LifecycleState.FAILED_READY_FOR_RETRY, "pending")


def test_what_is_over() -> None:
    ends = {state for state, targets in TRANSITIONS.items() if not targets}
    assert ends | {LifecycleState.FAILED} == OVER
    assert Lifecycle(state=LifecycleState.COMPLETED).succeeded
    assert not Lifecycle(state=LifecycleState.CANCELLED).succeeded

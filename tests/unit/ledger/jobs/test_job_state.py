"""How a job comes to be what it is: the table, the order, the refusals."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.jobs.events import Code, JobEvent
from hyperscale.ledger.jobs.state import (
    TRANSITIONS,
    EventRefused,
    JobState,
    Part,
    Refusal,
    Status,
    fold,
)
from tests.unit.ledger.jobs.samples import Life


def folded(*events: JobEvent) -> JobState:
    state: JobState | None = None
    for event in events:
        state = fold(state, event)
    assert state is not None
    return state


def refusal(state: JobState | None, event: JobEvent) -> Refusal:
    with pytest.raises(EventRefused) as caught:
        fold(state, event)
    return caught.value.refusal


def test_the_table_names_every_status_and_one_end() -> None:
    assert set(TRANSITIONS) == set(Status)
    assert TRANSITIONS[Status.ENDED] == {}
    into_end = {
        code
        for row in TRANSITIONS.values()
        for code, status in row.items()
        if status is Status.ENDED
    }
    assert into_end == {Code.JOB_COMPLETED}
    assert all(Status.ABSENT not in row.values() for row in TRANSITIONS.values())


def test_the_numbers_of_statuses_are_frozen() -> None:
    assert [(s.name, s.value) for s in Status] == [
        ("ABSENT", 0),
        ("CREATED", 1),
        ("RUNNING", 2),
        ("FAILING", 3),
        ("CANCELLING", 4),
        ("ENDED", 5),
    ]


def test_a_job_that_passes() -> None:
    life = Life()
    state = folded(
        life.created("key"),
        life.accepted("east", 4),
        life.accepted("west", 2),
        life.progress(10, 1, "east"),
        life.progress(20, 1, "east"),
        life.completed(),
    )
    assert state.status is Status.ENDED
    assert state.final_status == "passed"
    assert state.parts == (
        Part("east", True, 4, 20, 1),
        Part("west", True, 2),
    )
    assert (state.idempotency_key, state.events) == ("key", 6)


def test_cancelling_is_acknowledged_by_each_datacenter_and_keeps_its_first_reason() -> None:
    life = Life()
    state = folded(
        life.created(),
        life.accepted("east"),
        life.cancel("too slow", "ada"),
        life.cancel("too late", "bob"),
        life.accepted("west"),
        life.cancelled("east", 3),
        life.failed("lost"),
        life.cancelled("west", 0),
    )
    assert state.status is Status.CANCELLING
    assert (state.cancel_reason, state.cancel_requestor) == ("too slow", "ada")
    assert [part.workflows_cancelled for part in state.parts] == [3, 0]
    assert folded(life.created(), life.cancel(), life.completed("cancelled")).final_status


def test_a_datacenter_fails_and_the_job_goes_on_to_its_end() -> None:
    life = Life()
    state = folded(
        life.created(),
        life.accepted("east"),
        life.failed("no workers", "west"),
        life.progress(5),
        life.timed_out(),
        life.completed("partial"),
    )
    assert (state.error, state.timeout_type, state.final_status) == (
        "no workers",
        "stuck",
        "partial",
    )
    west = state.part("west")
    assert west is not None
    assert west.error == "no workers"


def test_what_is_out_of_order_is_refused_and_says_why() -> None:
    life = Life()
    assert refusal(None, life.accepted()) is Refusal.NOT_NOW
    created = folded(life.created())
    assert refusal(created, life.created()) is Refusal.NOT_NOW
    assert refusal(created, life.progress(1)) is Refusal.NOT_NOW
    assert refusal(created, life.completed()) is Refusal.NOT_NOW
    running = fold(created, life.accepted("east"))
    assert refusal(running, life.cancelled()) is Refusal.NOT_NOW
    assert refusal(running, life.accepted("east")) is Refusal.REPEATED
    assert refusal(running, life.accepted("north")) is Refusal.NOT_ASSIGNED
    assert refusal(running, life.failed("x", "north")) is Refusal.NOT_ASSIGNED
    assert refusal(running, life.progress(1, 0, "west")) is Refusal.NOT_ACCEPTED
    ahead = fold(running, life.progress(10, 5))
    assert refusal(ahead, life.progress(9, 5)) is Refusal.BACKWARDS
    assert refusal(ahead, life.progress(10, 4)) is Refusal.BACKWARDS
    cancelling = folded(life.created(), life.cancel(), life.cancelled())
    assert refusal(cancelling, life.cancelled()) is Refusal.REPEATED
    ended = fold(ahead, life.completed())
    assert refusal(ended, life.cancel()) is Refusal.NOT_NOW
    with pytest.raises(EventRefused, match=r"JOB_CANCELLATION_REQUESTED of job \S+ \(ENDED\)"):
        fold(ended, life.cancel())


def test_a_replaced_leader_cannot_write() -> None:
    life = Life()
    state = folded(life.created())
    newer = fold(state, replace(life.accepted("east"), fence=Fence(2)))
    assert newer.fence == Fence(2)
    assert refusal(newer, life.accepted("west")) is Refusal.STALE_FENCE


def test_an_event_that_is_not_later_is_refused() -> None:
    life = Life()
    created = life.created()
    state = folded(created)
    assert refusal(state, replace(life.accepted(), hlc=created.hlc)) is Refusal.NOT_LATER

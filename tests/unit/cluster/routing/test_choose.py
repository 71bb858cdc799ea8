"""Where a job runs: one rule of the choice in each test."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperscale.cluster.routing import Candidate, Decision, Held, Policy, Snapshot, Wish, choose

HEALTHY, BUSY, DEGRADED, UNHEALTHY = range(4)


def dc(name: str, rtt_ms: float | None = 100, **given: Any) -> Candidate:
    known: dict[str, Any] = {"cores": 8, "cores_free": 8, "samples": 20, "rtt_error_s": 0.001}
    rtt_s = None if rtt_ms is None else rtt_ms / 1000
    return Candidate(name=name, rtt_s=rtt_s, **{**known, **given})


def decide(*candidates: Candidate, held: tuple[Held, ...] = (), **wish: Any) -> Decision:
    return choose(
        Snapshot(
            wish=Wish(job_id=wish.pop("job_id", "j1"), **wish),
            candidates=candidates,
            held=held,
            by_distance=True,
        )
    )


def reason(decision: Decision, name: str) -> str:
    return next(one.reason for one in decision.scored if one.name == name)


def test_far_and_healthy_before_near_and_busy() -> None:
    near = dc("near", 5, health=BUSY, why="no core is free", cores_free=0)
    decision = decide(near, dc("far", 300), count=1)
    assert decision.chosen == ("far",)
    assert decision.fallback == ("near",)
    assert decision.worst_health == "healthy"


def test_the_nearer_of_two_alike() -> None:
    assert decide(dc("a", 200), dc("b", 50), count=1).chosen == ("b",)


def test_the_chain_goes_down_by_health_then_score() -> None:
    decision = decide(
        dc("d", 1, health=DEGRADED, why="x"), dc("b", 1, health=BUSY, why="x"),
        dc("far", 300), dc("near", 10), count=1,
    )  # fmt: skip
    assert (*decision.chosen, *decision.fallback) == ("near", "far", "b", "d")
    assert [one.rank for one in decision.scored] == [1, 2, 3, 4]


def test_nobody_that_cannot_run_it() -> None:
    decision = decide(
        dc("ok"),
        dc("ill", health=UNHEALTHY, why="there is no worker"),
        dc("gone", reachable=False, health=UNHEALTHY, why="no manager answers"),
        dc("open", managers=2, managers_open=2),
        dc("banned"),
        excluded=("banned",),
    )
    assert decision.chosen == ("ok",)
    assert decision.fallback == ()
    assert reason(decision, "ill") == "there is no worker"
    assert reason(decision, "banned") == "it was excluded"
    assert "open circuits" in reason(decision, "open")


def test_none_at_all_is_an_error_with_each_reason() -> None:
    decision = decide(dc("a", health=UNHEALTHY, why="no manager answers"), excluded=("b",))
    assert decision.chosen == ()
    assert decision.error == "a: no manager answers"


def test_fewer_than_are_wanted_is_an_error() -> None:
    ill = dc("b", health=UNHEALTHY, why="there is no worker")
    decision = decide(dc("a"), ill, count=2)
    assert decision.error == (
        "2 datacenters are wanted, and there is one of use; b: there is no worker"
    )


def test_without_a_count_all_that_are_of_use() -> None:
    ill = dc("b", health=UNHEALTHY, why="there is no worker")
    assert decide(dc("a"), ill, dc("c")).chosen == ("a", "c")


@pytest.mark.parametrize(
    ("policy", "chosen", "error"),
    [
        ("strict", (), "eu: no manager answers"),
        ("prefer", ("us",), ""),
        ("any", ("us",), ""),
    ],
)
def test_policies_when_the_named_one_is_gone(
    policy: Policy, chosen: tuple[str, ...], error: str
) -> None:
    gone = dc("eu", reachable=False, health=UNHEALTHY, why="no manager answers")
    decision = decide(gone, dc("us", 90), named=("eu",), policy=policy)
    assert (decision.chosen, decision.error) == (chosen, error)


def test_strict_takes_the_named_as_they_are() -> None:
    """What is busy or without workers is for the user to wait for: load elsewhere is other load."""
    busy = dc("eu", health=BUSY, why="no core is free")
    empty = dc("ap", health=UNHEALTHY, why="there is no worker")
    decision = decide(busy, dc("us"), empty, named=("ap", "eu"), policy="strict")
    assert decision.chosen == ("ap", "eu")
    assert decision.fallback == ()
    assert reason(decision, "us") == "it was not named"


def test_who_is_preferred_is_taken_however_far_but_not_when_it_is_worse() -> None:
    far, near = dc("eu", 300), dc("us", 5)
    assert decide(far, near, named=("eu",), policy="prefer").chosen == ("eu",)
    busy = msgspec.structs.replace(far, health=BUSY, why="no core is free")
    assert decide(busy, near, named=("eu",), policy="prefer").chosen == ("us",)


def test_too_few_free_cores_are_as_good_as_none() -> None:
    decision = decide(dc("small", 5, cores_free=3), dc("large", 200), count=1, cores=4)
    assert decision.chosen == ("large",)
    assert reason(decision, "small") == "3 cores are free, of 4 that it needs"


def test_cores_that_were_given_away_are_not_free() -> None:
    assert decide(dc("a", 100, pending=8), dc("b", 110), count=1).chosen == ("b",)


def test_who_failed_lately_costs_twice_as_much() -> None:
    assert decide(dc("a", 60, failed_s=10), dc("b", 100), count=1).chosen == ("b",)
    assert decide(dc("a", 60, failed_s=90), dc("b", 100), count=1).chosen == ("a",)


def test_equals_are_shared_by_jobs() -> None:
    chosen = {
        decide(dc("a", 100), dc("b", 103), dc("c", 200), count=1, job_id=f"j{n}").chosen
        for n in range(50)
    }
    assert chosen == {("a",), ("b",)}


def test_before_distances_are_known_capacity_decides() -> None:
    fresh = dc("near", 5, samples=2, cores_free=1), dc("far", 300, samples=2)
    decision = decide(*fresh, count=1)
    assert not decision.by_distance
    assert decision.chosen == ("far",)


def test_one_that_was_never_measured_takes_defaults() -> None:
    decision = decide(dc("known", 150), dc("new", None), dc("far", 900), count=1)
    scores = {one.name: one for one in decision.scored}
    assert decision.by_distance
    assert scores["new"].rtt_s == 0.2
    assert scores["new"].quality_penalty == 1.5


def held(name: str, score: float, held_s: float = 10.0, **given: Any) -> tuple[Held, ...]:
    return (Held(name=name, held_s=held_s, score=score, **given),)


def score_of(one: Candidate) -> float:
    return decide(one).scored[0].score


def test_a_choice_is_held_for_a_while() -> None:
    a, b = dc("a", 200), dc("b", 50)
    decision = decide(a, b, count=1, held=held("a", score_of(a)))
    assert decision.chosen == ("a",)
    assert decision.reason == "a is held, though b is better"
    later = decide(a, b, count=1, held=held("a", score_of(a), held_s=31))
    assert later.chosen == ("b",)
    assert later.reason == "b is better than a"


def test_a_little_better_is_no_reason() -> None:
    a, b = dc("a", 200), dc("b", 170)
    assert decide(a, b, count=1, held=held("a", score_of(a), held_s=900)).chosen == ("a",)


def test_a_held_choice_that_is_out_is_out_at_once() -> None:
    b = dc("b")
    for bad in (
        {"health": UNHEALTHY},
        {"health": DEGRADED},
        {"managers_open": 1},
        {"health": BUSY, "full_s": 6},
    ):
        a = dc("a", 5, why="it is not well", **bad)
        assert decide(a, b, count=1, held=held("a", 0.01, held_s=1)).chosen == ("b",), bad


def test_full_for_a_moment_is_no_reason() -> None:
    a = dc("a", 50, health=BUSY, why="no core is free", full_s=2)
    assert decide(a, dc("b"), count=1, held=held("a", 0.1)).chosen == ("a",)


def test_worse_for_long_ends_the_hold() -> None:
    a, b = dc("a", 300), dc("b", 100)
    fresh = decide(a, b, count=1, held=held("a", 0.1, held_s=1))
    assert fresh.chosen == ("a",)
    assert fresh.held[0].worse_s == 0.0
    long = decide(a, b, count=1, held=held("a", 0.1, held_s=1, worse_s=31))
    assert long.chosen == ("b",)


def test_a_decision_is_the_same_from_its_bytes() -> None:
    snapshot = Snapshot(
        wish=Wish(job_id="j1", count=1), candidates=(dc("a"), dc("b", 50)), by_distance=True
    )
    again = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
    assert choose(again) == choose(snapshot)

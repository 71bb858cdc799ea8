"""Of any snapshot: the choice is the best that may be chosen, and repeatable."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.routing import (
    Candidate,
    Decision,
    Held,
    RoutingSettings,
    Snapshot,
    Wish,
    choose,
)
from hyperscale.cluster.routing.scoring import cooldown, load, quality_penalty, rtt_upper_s

NAMES = [f"dc{number}" for number in range(6)]
WORDS = ("healthy", "busy", "degraded", "unhealthy")
SETTINGS = RoutingSettings()
seconds = st.floats(0.0, 1_000.0)


def candidates(name: str) -> st.SearchStrategy[Candidate]:
    return st.builds(
        Candidate,
        name=st.just(name),
        health=st.integers(0, 3),
        why=st.just("because"),
        reachable=st.booleans(),
        rtt_s=st.none() | st.floats(0.0, 3.0),
        rtt_error_s=st.floats(0.0, 1.0),
        samples=st.integers(0, 30),
        age_s=seconds,
        cores=st.integers(0, 64),
        cores_free=st.integers(0, 64),
        pending=st.integers(0, 64),
        queued=st.integers(0, 100),
        load=st.integers(0, 3),
        managers=st.integers(0, 3),
        managers_open=st.integers(0, 3),
        full_s=seconds,
        failed_s=st.none() | seconds,
    )


some_names = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)
wishes = st.builds(
    Wish,
    job_id=st.text(max_size=5),
    count=st.integers(0, 7),
    named=some_names,
    policy=st.sampled_from(("strict", "prefer", "any")),
    excluded=some_names,
    cores=st.integers(0, 70),
)
snapshots = st.builds(
    Snapshot,
    wish=wishes,
    candidates=st.tuples(*map(candidates, NAMES)),
    held=some_names.flatmap(
        lambda names: st.tuples(
            *(
                st.builds(
                    Held,
                    name=st.just(name),
                    held_s=seconds,
                    score=st.floats(0.001, 10.0),
                    worse_s=st.none() | seconds,
                )
                for name in names
            )
        )
    ),
    by_distance=st.booleans(),
)


def buckets(decision: Decision) -> dict[str, int]:
    return {one.name: WORDS.index(one.health) for one in decision.scored if one.rank}


@given(snapshots)
def test_a_choice_is_sound(snapshot: Snapshot) -> None:
    decision, wish = choose(snapshot), snapshot.wish
    assert (
        bool(decision.chosen) != bool(decision.error)
        or not decision.scored
        or (wish.policy == "strict" and not wish.named)
    )
    assert {one.name for one in decision.scored} == set(NAMES), "each is told of, with a reason"
    assert all(one.rank or one.reason for one in decision.scored)
    assert not set(decision.chosen) & set(wish.excluded)
    assert not set(decision.chosen) & set(decision.fallback)
    if wish.policy == "strict":
        assert decision.chosen in ((), wish.named)
        return
    known = {one.name: one for one in snapshot.candidates}
    assert all(known[name].reachable and known[name].health < 3 for name in decision.chosen)
    ranked = buckets(decision)
    assert set(ranked) >= set(decision.chosen)
    if decision.chosen and not snapshot.held:
        worst = max(ranked[name] for name in decision.chosen)
        assert all(ranked[name] >= worst for name in decision.fallback), "never a worse bucket"
    order = [ranked[name] for name in decision.fallback]
    assert order == sorted(order)


@given(snapshots, st.randoms(use_true_random=False))
def test_it_depends_on_what_is_known_and_on_no_order(
    snapshot: Snapshot, dice: random.Random
) -> None:
    shuffled = list(snapshot.candidates)
    dice.shuffle(shuffled)
    other = msgspec.structs.replace(snapshot, candidates=tuple(shuffled))
    one, two = choose(snapshot), choose(other)
    assert (one.chosen, one.fallback, one.held) == (two.chosen, two.fallback, two.held)
    again = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
    assert choose(again) == one


@given(
    candidates("a"),
    st.sampled_from(
        ("rtt_s", "rtt_error_s", "age_s", "cores_free", "pending", "queued", "load",
         "managers_open", "samples", "failed_s")
    ),
    st.floats(0.0, 10.0),
)  # fmt: skip
def test_a_worse_input_never_lowers_the_score(one: Candidate, what: str, more: float) -> None:
    now = getattr(one, what)
    if now is None or (what == "rtt_error_s" and one.rtt_s is None):
        return
    better_is_more = what in ("cores_free", "samples", "failed_s")
    step = more if isinstance(now, float) else int(more)
    worse = max(type(now)(0), now - step) if better_is_more else now + step
    other = msgspec.structs.replace(one, **{what: worse})
    assert _score(other) >= _score(one) * 0.999_999


def _score(one: Candidate) -> float:
    parts = rtt_upper_s(one, SETTINGS), load(one, SETTINGS), quality_penalty(one, SETTINGS)
    return parts[0] * parts[1] * parts[2] * cooldown(one, SETTINGS)


@given(st.integers(0, 2**32))
def test_ten_minutes_of_noise_switch_nothing(seed: int) -> None:
    dice = random.Random(seed)
    held: tuple[Held, ...] = ()
    chosen = set()
    for second in range(0, 600, 5):
        snapshot = Snapshot(
            wish=Wish(job_id=str(dice.random()), count=1),
            candidates=tuple(
                Candidate(
                    name=name, cores=8, cores_free=8, samples=20, rtt_error_s=0.001,
                    rtt_s=0.1 * dice.uniform(0.9, 1.1),
                )
                for name in NAMES
            ),
            held=tuple(msgspec.structs.replace(one, held_s=one.held_s + 5) for one in held),
            by_distance=second > 0,
        )  # fmt: skip
        decision = choose(snapshot)
        held = decision.held
        chosen.add(decision.chosen)
    assert len(chosen) == 1

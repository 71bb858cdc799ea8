"""The life of a part: its table, its ordinary course, and every way to an end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.jobs.records import Action
from hyperscale.nodes.worker.part_life import (
    TRANSITIONS,
    Begin,
    Effect,
    Free,
    Kill,
    LifeState,
    LifeTrigger,
    PartLife,
    PartTimeouts,
    RunTeardown,
    Steer,
    TellEnd,
    TellReady,
    TellTornDown,
)

TIMEOUTS = PartTimeouts(
    prepare_s=90.0,
    start_wait_s=300.0,
    kill_grace_s=5.0,
    cut_grace_s=1.0,
    teardown_s=45.0,
    hold_s=120.0,
)


def life(*, limit_s: float = 10.0, tears_down: bool = False, vus: int = 8) -> PartLife:
    return PartLife(0.0, limit_s=limit_s, tears_down=tears_down, vus=vus, timeouts=TIMEOUTS)


def running(**kind: bool) -> PartLife:
    one = life(**kind)
    one.ready(1.0)
    one.start(2.0)
    return one


# -- the table -----------------------------------------------------------------------------------


def test_every_state_leads_to_the_end() -> None:
    reached = {LifeState.GONE}
    for _ in LifeState:
        reached |= {s for s, ways in TRANSITIONS.items() if reached & set(ways.values())}
    assert reached == set(LifeState)


def test_nothing_leaves_the_end_and_nothing_ended_runs_again() -> None:
    assert not TRANSITIONS[LifeState.GONE]
    over = {LifeState.ENDED, LifeState.TEARING, LifeState.GONE}
    assert all(set(TRANSITIONS[state].values()) <= over for state in over)


@pytest.mark.parametrize(
    ("state", "trigger"),
    list(itertools.product(LifeState, LifeTrigger)),
    ids=lambda each: each.name,
)
def test_the_table_names_states_only(state: LifeState, trigger: LifeTrigger) -> None:
    after = TRANSITIONS[state].get(trigger)
    assert after is None or isinstance(after, LifeState)


# -- the ordinary course -------------------------------------------------------------------------


def test_a_part_is_prepared_started_and_over() -> None:
    one = life()

    assert one.ready(1.0) == [TellReady()]
    assert one.start(2.0) == [Begin()]
    assert one.over(5.0) == [TellEnd(), Free()]
    assert one.state is LifeState.GONE


def test_a_second_start_changes_nothing() -> None:
    one = running()

    assert one.start(2.5) == []
    assert one.state is LifeState.RUNNING


def test_what_cannot_be_prepared_is_over_at_once() -> None:
    one = life(tears_down=True)

    assert one.broken(1.0) == [TellEnd(), Free()]


def test_a_part_with_teardown_is_kept_for_it() -> None:
    one = running(tears_down=True)

    assert one.over(5.0) == [TellEnd()]
    assert one.tear_down(6.0) == [RunTeardown()]
    assert one.torn_down(7.0, "it hurt") == [TellTornDown("it hurt"), Free()]


def test_a_settled_part_is_not_needed_for_teardown() -> None:
    one = running(tears_down=True)
    one.over(5.0)

    assert one.settled(6.0) == [Free()]
    assert one.tear_down(7.0) == []


def test_a_kept_part_waits_as_long_as_a_leader_speaks_of_it() -> None:
    one = running(tears_down=True)
    one.over(5.0)
    one.kept(100.0)

    assert one.tick(150.0) == []
    assert one.tick(220.0) == [Free()]


# -- steering ------------------------------------------------------------------------------------


def test_a_pause_is_not_counted_against_the_limit() -> None:
    one = running()  # limit 10 s, started at 2

    assert one.steer(5.0, "pause", 0, "") == [Steer("pause")]
    assert one.tick(100.0) == []
    assert one.steer(100.0, "resume", 0, "") == [Steer("resume")]
    assert one.tick(106.9) == []
    assert one.tick(107.0) == [Steer("cancel")]


def test_scaling_is_told_as_a_change_and_once() -> None:
    one = running()

    assert one.steer(3.0, "scale", 12, "") == [Steer("scale", 4)]
    assert one.steer(3.1, "scale", 12, "") == []
    assert one.steer(3.2, "scale", 2, "") == [Steer("scale", -10)]


def test_a_rate_is_told_as_it_shall_be() -> None:
    one = running()

    assert one.steer(3.0, "rate", 120, "") == [Steer("rate", 120)]


def test_stop_lets_iterations_finish_within_the_limit() -> None:
    one = running()

    assert one.steer(3.0, "stop", 0, "") == [Steer("stop")]
    assert one.over(4.0) == [TellEnd(), Free()]


def test_a_stop_that_does_not_end_is_killed_at_the_limit() -> None:
    one = running()
    one.steer(3.0, "stop", 0, "")

    assert one.tick(11.9) == []
    assert one.tick(12.0) == [Kill()]


@pytest.mark.parametrize("action", ["stop", "cancel"])
def test_a_prepared_part_ends_without_load(action: Action) -> None:
    one = life()
    one.ready(1.0)

    (end, free) = one.steer(2.0, action, 0, "enough")

    assert isinstance(end, TellEnd)
    assert (end.outcome, end.answered, free) == ("cancelled", False, Free())


def test_cancel_while_preparing_waits_for_it_then_kills() -> None:
    one = life()

    assert one.steer(1.0, "cancel", 0, "enough") == [Steer("cancel")]
    assert one.tick(5.9) == []
    assert one.tick(6.0) == [Kill()]
    assert one.broken(6.1) == [TellEnd("cancelled", "enough"), Free()]


def test_prepared_after_a_cancel_can_still_be_torn_down() -> None:
    one = life(tears_down=True)
    one.steer(1.0, "cancel", 0, "enough")

    assert one.ready(2.0) == [TellEnd("cancelled", "enough", answered=False)]
    assert one.tear_down(3.0) == [RunTeardown()]


def test_the_first_reason_to_end_names_the_end() -> None:
    one = running()
    one.steer(3.0, "cancel", 0, "enough")
    one.cut_off(3.5, "alone")

    assert one.tick(4.5) == [Kill()]  # but who is in a hurry is heard
    assert one.over(4.6) == [TellEnd("cancelled", "enough"), Free()]


# -- ends that nobody asked for ------------------------------------------------------------------


def test_the_limit_ends_it_with_grace_then_force_then_without_it() -> None:
    one = running()

    assert one.tick(12.0) == [Steer("cancel")]
    assert one.tick(17.0) == [Kill()]
    (end, free) = one.tick(22.0)
    assert end == TellEnd("failed", "it did not end within its limit of 10 s", answered=False)
    assert free == Free()


def test_cut_off_ends_before_managers_move_the_work() -> None:
    one = running()

    assert one.cut_off(6.0, "alone") == [Steer("cancel")]
    assert one.tick(7.0) == [Kill()]
    assert one.over(7.1) == [TellEnd("cut off", "alone"), Free()]


def test_a_barrier_nobody_opens_is_given_up() -> None:
    one = life()
    one.ready(1.0)

    (end, _) = one.tick(301.0)

    assert isinstance(end, TellEnd)
    assert end.outcome == "cut off"


def test_a_preparation_that_hangs_is_killed() -> None:
    one = life()

    assert one.tick(90.0) == [Kill()]
    assert one.broken(90.1)[0] == TellEnd("failed", "it was not prepared within 90 s")


def test_a_teardown_that_hangs_is_killed() -> None:
    one = running(tears_down=True)
    one.over(5.0)
    one.tear_down(6.0)

    warning = "teardown() did not return within 45 s"
    assert one.tick(51.0) == [Kill(), TellTornDown(warning), Free()]
    assert one.torn_down(52.0, "late") == []


def test_an_unwanted_part_is_ended_and_not_kept() -> None:
    one = running(tears_down=True)
    one.unwanted(3.0, "nobody waits")

    assert one.over(3.5) == [TellEnd("cancelled", "nobody waits"), Free()]


# -- all of it -----------------------------------------------------------------------------------

EVENTS = st.sampled_from(
    [
        "ready",
        "broken",
        "over",
        "torn",
        "start",
        "pause",
        "resume",
        "stop",
        "cancel",
        "scale",
        "tear down",
        "settled",
        "kept",
        "unwanted",
        "cut off",
        "tick",
        "long tick",
    ]
)


def happen(one: PartLife, now: float, event: str) -> list[Effect]:
    if event in ("pause", "resume", "stop", "cancel", "scale"):
        return one.steer(now, event, 3, "said")  # type: ignore[arg-type]
    if event == "kept":
        one.kept(now)
        return []
    acts = {
        "ready": lambda: one.ready(now),
        "broken": lambda: one.broken(now),
        "over": lambda: one.over(now),
        "torn": lambda: one.torn_down(now, ""),
        "start": lambda: one.start(now),
        "tear down": lambda: one.tear_down(now),
        "settled": lambda: one.settled(now),
        "unwanted": lambda: one.unwanted(now, "unwanted"),
        "cut off": lambda: one.cut_off(now, "alone"),
        "tick": lambda: one.tick(now),
        "long tick": lambda: one.tick(now),
    }
    return acts[event]()


@given(st.lists(EVENTS, max_size=40), st.booleans(), st.sampled_from([0.0, 5.0]))
def test_whatever_happens_it_ends_once_and_frees_once(
    events: list[str], tears_down: bool, limit_s: float
) -> None:
    one = PartLife(0.0, limit_s=limit_s, tears_down=tears_down, vus=3, timeouts=TIMEOUTS)
    now = 0.0
    effects: list[Effect] = []
    for event in events:
        now += 500.0 if event == "long tick" else 0.3
        effects += happen(one, now, event)
    effects += one.cut_off(now, "the test is over")
    for _ in range(6):
        now += 500.0
        effects += one.tick(now)

    assert one.state is LifeState.GONE
    assert sum(isinstance(effect, TellEnd) for effect in effects) == 1
    assert [effect for effect in effects if isinstance(effect, Free)] == effects[-1:]
    kinds = [type(effect) for effect in effects]
    assert kinds.count(Begin) <= 1
    assert kinds.count(RunTeardown) <= 1
    if Begin in kinds:
        assert kinds.index(TellReady) < kinds.index(Begin) < kinds.index(TellEnd)
    if RunTeardown in kinds:
        assert kinds.index(TellEnd) < kinds.index(RunTeardown)

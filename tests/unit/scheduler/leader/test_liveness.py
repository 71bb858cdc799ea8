from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.instants import SECOND, after
from hyperscale.scheduler.leader.liveness import Grace, Hearing, judge_workers
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.worker.registration import Worker, WorkerState

SETTINGS = CoordinatorSettings()
NOW = 1_000_000 * SECOND


def worker(name: str, sequence: int = 1, seen_at: int = NOW, **fields: WorkerState) -> Worker:
    return Worker(
        id=name,
        instance=name,
        capacity=1,
        sequence=sequence,
        started_at=0,
        seen_at=seen_at,
        **fields,  # type: ignore[arg-type]
    )


def test_fine_suspect_dead() -> None:
    verdict = judge_workers({"a": 20, "b": 31, "c": 46, "d": 0, "e": 1}, SETTINGS)
    assert verdict.suspects == ("b",)
    assert verdict.dead == ("c",)
    assert not verdict.doubted


def test_most_at_once_are_doubted_for_one_threshold_more() -> None:
    verdict = judge_workers({"a": 50, "b": 50, "c": 0}, SETTINGS)
    assert verdict.doubted
    assert verdict.dead == ()
    assert verdict.suspects == ("a", "b")
    assert judge_workers({"a": 95, "b": 91, "c": 0}, SETTINGS).dead == ("a", "b")


def test_the_only_worker_may_die() -> None:
    assert judge_workers({"a": 46}, SETTINGS).dead == ("a",)


def test_who_answers_when_asked_is_spared_for_one_threshold_more() -> None:
    silent = {"a": 46.0, "b": 46.0, "c": 0.0, "d": 0.0, "e": 31.0}
    verdict = judge_workers(silent, SETTINGS, frozenset({"a", "c"}))
    assert (verdict.suspects, verdict.dead, verdict.doubted) == (("a", "e"), ("b",), False)
    assert judge_workers({"a": 90.0}, SETTINGS, frozenset({"a"})).dead == ("a",)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 200)),
    st.frozensets(st.sampled_from("abcdef")),
)
def test_an_answer_spares_and_never_condemns(
    silences_s: dict[str, float], answered: frozenset[str]
) -> None:
    before, behind = (judge_workers(silences_s, SETTINGS, who) for who in (frozenset(), answered))
    assert set(behind.dead) <= set(before.dead)
    assert set(before.dead) - set(behind.dead) <= answered
    assert not set(behind.dead) & set(behind.suspects)
    assert all(silences_s[name] >= SETTINGS.dead_after_s for name in behind.dead)
    assert {n for n, s in silences_s.items() if s >= 2 * SETTINGS.dead_after_s} <= set(behind.dead)


def test_a_newborn_leader_gives_everybody_a_whole_threshold() -> None:
    hearing = Hearing(100.0)
    silent = [worker("a", seen_at=after(NOW, -3600))]
    assert hearing.silences_s(silent, NOW, 100.0) == {"a": 0.0}
    assert hearing.silences_s(silent, after(NOW, 44), 144.0) == {"a": 44.0}


def test_a_heartbeat_counts_from_when_it_came() -> None:
    hearing = Hearing(0.0)
    hearing.silences_s([worker("a")], NOW, 0.0)
    beaten = worker("a", 2, after(NOW, 3))
    assert hearing.silences_s([beaten], after(NOW, 10), 10.0) == {"a": 7.0}
    reborn = worker("b", 1, after(NOW, -500))
    assert hearing.silences_s([beaten, reborn], after(NOW, 20), 20.0) == {"a": 17.0, "b": 10.0}


def test_neither_a_step_of_the_clock_nor_another_clock_kills_anybody() -> None:
    hearing = Hearing(0.0)
    hearing.silences_s([worker("a")], NOW, 0.0)
    for step_s in (86_400, -86_400):
        now = after(NOW, step_s)
        assert hearing.silences_s([worker("a")], now, 5.0) == {"a": 5.0}
    elsewhere = worker("a", 2, after(NOW, -7200))
    assert hearing.silences_s([elsewhere], after(NOW, 15), 15.0) == {"a": 10.0}


def test_a_clock_that_was_set_back_does_not_keep_the_dead_alive() -> None:
    hearing = Hearing(0.0)
    hearing.silences_s([worker("a")], NOW, 0.0)
    long_ago = after(NOW, -3600)
    assert hearing.silences_s([worker("a")], long_ago, 46.0) == {"a": 46.0}


def test_who_left_is_not_judged_and_who_is_forgotten_begins_anew() -> None:
    hearing = Hearing(0.0)
    gone = worker("b", state=WorkerState.UNAVAILABLE)
    hearing.silences_s([worker("a"), gone], NOW, 0.0)
    assert hearing.silences_s([worker("a"), gone], NOW, 40.0) == {"a": 40.0}
    hearing.forget(50.0)
    assert hearing.silences_s([worker("a")], NOW, 50.0) == {"a": 0.0}


@given(
    st.lists(st.tuples(st.floats(0, 30), st.booleans()), min_size=1, max_size=30),
    st.integers(-(10**6), 10**6),
)
def test_nobody_is_more_silent_than_the_time_since_the_last_news(
    looks: list[tuple[float, bool]], skew_s: int
) -> None:
    """Whatever the two clocks say: at most since the look before the one that brought it."""
    hearing = Hearing(0.0)
    steady_s, sequence, seen_at, bound_from_s, looked_s = 0.0, 1, NOW, 0.0, 0.0
    hearing.silences_s([worker("a", sequence, seen_at)], NOW, steady_s)
    for wait_s, beaten in looks:
        steady_s += wait_s
        if beaten:
            sequence += 1
            seen_at = after(NOW, steady_s + skew_s)
            bound_from_s = looked_s
        now = after(NOW, steady_s)
        silent_s = hearing.silences_s([worker("a", sequence, seen_at)], now, steady_s)["a"]
        assert 0 <= silent_s <= steady_s - bound_from_s + 1e-6
        looked_s = steady_s


def test_grace_begins_anew_when_the_clock_is_set() -> None:
    grace = Grace(45, NOW, 0.0)
    assert not grace.over(44.0)
    assert grace.look(after(NOW, 45.5), 45.0) == 0.0
    assert grace.over(45.0)
    assert grace.look(after(NOW, 46.5 + 3600), 46.0) == 3600.0
    assert not grace.over(90.0)
    assert grace.over(91.0)
    assert grace.look(NOW, 92.0) < -3600
    assert not grace.over(92.0)

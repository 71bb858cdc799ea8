from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.coordinator.liveness import judge_workers
from hyperscale.scheduler.coordinator.settings import CoordinatorSettings
from hyperscale.scheduler.model.instants import SECOND
from hyperscale.scheduler.model.worker import Worker, WorkerState

SETTINGS = CoordinatorSettings()
NOW = 1_000_000 * SECOND


def worker(name: str, silent_s: float, state: WorkerState = WorkerState.AVAILABLE) -> Worker:
    seen = NOW - round(silent_s * SECOND)
    return Worker(id=name, instance=name, capacity=1, state=state, started_at=0, seen_at=seen)


def test_fine_suspect_dead() -> None:
    workers = [worker("a", 20), worker("b", 31), worker("c", 46), worker("d", 0), worker("e", 1)]
    verdict = judge_workers(workers, NOW, 0, SETTINGS)
    assert verdict.suspects == ("b",)
    assert verdict.dead == ("c",)
    assert not verdict.doubted


def test_a_newborn_leader_declares_nobody_dead() -> None:
    workers = [worker("a", 3600), worker("b", 0)]
    assert judge_workers(workers, NOW, NOW - 44 * SECOND, SETTINGS).dead == ()
    assert judge_workers(workers, NOW, NOW - 45 * SECOND, SETTINGS).dead == ("a",)


def test_most_at_once_are_doubted_for_one_threshold_more() -> None:
    workers = [worker("a", 50), worker("b", 50), worker("c", 0)]
    verdict = judge_workers(workers, NOW, 0, SETTINGS)
    assert verdict.doubted
    assert verdict.dead == ()
    assert verdict.suspects == ("a", "b")
    late = [worker("a", 95), worker("b", 91), worker("c", 0)]
    assert judge_workers(late, NOW, 0, SETTINGS).dead == ("a", "b")


def test_the_only_worker_may_die() -> None:
    assert judge_workers([worker("a", 46)], NOW, 0, SETTINGS).dead == ("a",)


def test_who_left_is_not_judged() -> None:
    gone = worker("a", 9999, WorkerState.UNAVAILABLE)
    assert judge_workers([gone], NOW, 0, SETTINGS) == ((), (), False)


@given(st.lists(st.floats(0, 500), max_size=20), st.floats(0, 500))
def test_nobody_heard_within_the_threshold_is_dead(silences: list[float], led_s: float) -> None:
    workers = [worker(f"w-{i:02}", s) for i, s in enumerate(silences)]
    verdict = judge_workers(workers, NOW, NOW - round(led_s * SECOND), SETTINGS)
    for i, silent_s in enumerate(silences):
        if min(silent_s, led_s) < SETTINGS.dead_after_s - 1e-6:
            assert f"w-{i:02}" not in verdict.dead
    assert not set(verdict.dead) & set(verdict.suspects)

"""Three signals, one decision, and nobody evicted in a hurry."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from hyperscale.cluster.jobs.events import (
    PartReport,
    WorkerRegistered,
)
from hyperscale.cluster.jobs.health import (
    Grade,
    HealthTracker,
    Pace,
    Progress,
    Routing,
    Signals,
    grade,
    route,
)
from hyperscale.cluster.jobs.records import TimedOut
from tests.unit.cluster.jobs.making import Shell, needs


@pytest.mark.parametrize(
    ("live", "ready", "progress"),
    list(itertools.product((True, False), (True, False), Progress)),
)
def test_the_routing_table(live: bool, ready: bool, progress: Progress) -> None:
    if not live:
        expected = Routing.EVICT
    elif progress is Progress.STUCK:
        expected = Routing.DRAIN
    elif not ready:
        expected = Routing.HOLD
    elif progress is Progress.STALLED:
        expected = Routing.INVESTIGATE
    else:
        expected = Routing.ROUTE
    assert route(live, ready, progress) is expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.0, "normal"), (0.8, "normal"), (0.79, "slow"), (0.3, "slow"), (0.29, "degraded"),
     (0.0, "stuck")],
)  # fmt: skip
def test_grades(ratio: float, expected: str) -> None:
    assert grade(ratio).value == expected


class TestPace:
    def pace(self, until: float = 30.0, each: int = 10) -> Pace:
        pace = Pace()
        pace.work(0.0, True)
        now = 0.0
        while now < until:
            now += 0.5
            pace.moved(now, each)
        return pace

    def test_without_work_it_is_idle(self) -> None:
        assert Pace().progress(5.0, 10.0, 120.0) is Progress.IDLE

    def test_a_long_run_progresses(self) -> None:
        assert self.pace(600.0).progress(600.0, 10.0, 120.0) is Progress.PROGRESSING

    @pytest.mark.parametrize(
        ("idle_s", "frozen_s", "expected"),
        [
            (0.0, 0.0, Progress.PROGRESSING),
            (0.0, 10.0, Progress.STALLED),  # one of its parts stands still
            (0.0, 500.0, Progress.STALLED),
            (10.0, 10.0, Progress.STALLED),
            (120.0, 120.0, Progress.STUCK),
        ],
    )
    def test_what_its_parts_say_stalls_it_then_it_is_stuck(
        self, idle_s: float, frozen_s: float, expected: Progress
    ) -> None:
        pace = self.pace()
        pace.idle_s, pace.frozen_s = idle_s, frozen_s
        assert pace.progress(30.5, 10.0, 120.0) is expected

    def test_silence_alone_says_nothing(self) -> None:
        assert self.pace().progress(500.0, 10.0, 120.0) is Progress.PROGRESSING

    def test_one_event_now_and_then_is_no_rate(self) -> None:
        pace = Pace()
        pace.work(0.0, True)
        for turn in range(30):
            pace.moved(turn * 2.0, 1 + turn % 3)
        pace.moved(61.5, 1)
        assert pace.grade(62.0, 120.0) is Grade.NORMAL

    def test_a_tenth_of_its_usual_rate_is_worth_a_look(self) -> None:
        pace = self.pace()
        for turn in range(1, 5):
            pace.moved(30.0 + turn * 0.5, 1)
        assert pace.grade(32.0, 120.0) is Grade.DEGRADED
        assert pace.progress(32.0, 10.0, 120.0) is Progress.STALLED

    def test_work_that_begins_starts_the_clock(self) -> None:
        pace = Pace()
        pace.work(500.0, True)
        assert pace.progress(501.0, 10.0, 120.0) is Progress.PROGRESSING
        pace.work(700.0, False)
        assert pace.progress(900.0, 10.0, 120.0) is Progress.IDLE


class TestEviction:
    def tracker(self, workers: int, bad: int) -> HealthTracker:
        tracker = HealthTracker(share=0.5, population_min=4, hold_s=30.0)
        for number in range(workers):
            tracker.update(0.0, f"w{number}", Signals(live=number >= bad))
        return tracker

    def test_one_of_four_is_evicted(self) -> None:
        assert self.tracker(4, 1).should_evict(0.0, "w0").evict

    @pytest.mark.parametrize("bad", [2, 3, 4])
    def test_half_of_them_are_held(self, bad: int) -> None:
        verdict = self.tracker(4, bad).should_evict(0.0, "w0")
        assert not verdict.evict
        assert verdict.reason == "systemic failure"
        assert len(verdict.correlated) == bad
        assert verdict.again_at == 30.0

    def test_but_not_for_ever(self) -> None:
        assert self.tracker(4, 3).should_evict(30.0, "w0").evict

    def test_few_workers_are_no_population(self) -> None:
        assert self.tracker(1, 1).should_evict(0.0, "w0").evict
        assert self.tracker(3, 2).should_evict(0.0, "w0").evict

    def test_the_others_and_strangers(self) -> None:
        tracker = self.tracker(4, 1)
        assert tracker.should_evict(0.0, "w1").reason == "healthy"
        assert tracker.should_evict(0.0, "w9").reason == "unknown node"

    def test_a_suspect_counts_but_is_not_evicted(self) -> None:
        tracker = self.tracker(4, 1)
        tracker.update(0.0, "w1", Signals(suspect=True))
        assert not tracker.should_evict(0.0, "w0").evict
        assert tracker.should_evict(40.0, "w1").reason == "healthy"

    def test_the_dead_of_long_ago_do_not_excuse_the_dead_of_today(self) -> None:
        tracker = self.tracker(8, 4)
        tracker.update(100.0, "w4", Signals(live=False))
        assert tracker.should_evict(100.0, "w4").evict

    def test_recovery_ends_the_hold(self) -> None:
        tracker = self.tracker(4, 2)
        tracker.should_evict(0.0, "w0")
        tracker.update(5.0, "w1", Signals())
        assert tracker.should_evict(5.0, "w0").evict


def test_a_worker_that_lists_its_parts_has_not_moved_by_that() -> None:
    shell = Shell()
    shell.register("w1")
    shell.submit(needs(planned_s=3_600.0, limit_s=3_630.0), timeout_s=4_000.0)
    (place,) = shell.prepare_all()
    for second in range(1, 300):
        shell.wait(1.0)
        if shell.records(TimedOut):
            break
        told = PartReport(place.part, place.fence, "running", shell.now)
        idle_s = max(0.0, second - 60.0)
        shell.hear("w1", replace(told, counter=min(second, 60), idle_s=idle_s))
        if second % 30 == 0:  # as a scan, or a worker that registers again
            shell.receive(WorkerRegistered("w1", 1, 4, 0, [told]))
    (timed_out,) = shell.records(TimedOut)
    assert "no progress" in timed_out.reason
    assert 175.0 <= timed_out.age_s <= 185.0

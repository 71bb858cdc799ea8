"""How old a job is, whoever leads: from records, without the time in which nobody led, and with no
judgement before the workers were heard."""

from __future__ import annotations

import random

import pytest

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.events import (
    Applied,
    Follow,
    Lead,
    LeaderSeen,
    PartReport,
    Tick,
    WorkerRegistered,
)
from hyperscale.cluster.jobs.led_time import LOOK_S_MAX, LedTime
from hyperscale.cluster.jobs.records import Aged, Failed, Placement, TimedOut
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs

LONG = needs(peak_vus=1, planned_s=900.0, limit_s=999.0)


def report(place: Placement, state: str = "running", **given: object) -> PartReport:
    return PartReport(place.part, place.fence, state, **given)  # type: ignore[arg-type]


def running(*workflows: object, **given: object) -> tuple[Shell, Placement]:
    shell = Shell()
    shell.register("w1")
    shell.submit(*(workflows or (LONG,)), **given)  # type: ignore[arg-type]
    [place] = shell.prepare_all()
    return shell, place


def restarted(shell: Shell, after_s: float = 0.0) -> Shell:
    """A manager that was started again with the same log, and does not lead yet."""
    heir = Shell(shell.jobs.settings)
    heir.core = Jobs(shell.jobs.settings, random.Random(9))
    heir.now, heir.log = shell.now + after_s, list(shell.log)
    for record in shell.log:
        heir.receive(Applied(record))
    return heir


def move(shell: Shell, place: Placement, seconds: int) -> None:
    for _ in range(seconds):
        shell.wait(1.0)
        if shell.job().ending:
            return
        shell.hear(place.worker, report(place, counter=int(shell.now)))


class TestLedTime:
    def test_only_time_with_a_leader_counts(self) -> None:
        led = LedTime()
        led.look(1_000.0)
        assert led.at(1_001.0) == 0.0
        led.look(1_001.0, led=True)
        led.look(1_002.0)
        led.look(1_003.0, led=False)
        assert led.at(1_500.0) == pytest.approx(2.0)

    def test_a_gap_in_which_nobody_looked_counts_for_one_look(self) -> None:
        led = LedTime()
        led.look(0.0, led=True)
        led.look(100.0)
        assert led.at(100.0) == LOOK_S_MAX


class TestAges:
    def test_a_manager_that_is_started_again_knows_how_old_a_job_is(self) -> None:
        shell, place = running()
        move(shell, place, 250)
        heir = restarted(shell)
        heir.receive(Lead(2))
        assert 235.0 <= heir.jobs.age_s(heir.now, "j1") <= 250.0
        heir.register("w1")
        move(heir, place, 70)
        assert heir.job().ending == "timeout"
        assert heir.job().reason.startswith("timed out: 300.0s > 300.0s")

    def test_recording_ages_costs_twenty_records_whatever_the_time(self) -> None:
        shell, place = running(timeout_s=800.0)
        move(shell, place, 790)
        assert 15 <= len(shell.records(Aged)) <= 20

    def test_followers_count_while_they_know_a_leader(self) -> None:
        shell, _ = running()
        heir = restarted(shell)
        for second in range(1, 101):
            heir.core.receive(heir.now + second, LeaderSeen(led=second <= 40))
        assert heir.jobs.age_s(heir.now + 100.0, "j1") == pytest.approx(40.0, abs=1.5)

    def test_time_without_a_leader_is_not_held_against_a_job(self) -> None:
        shell, place = running()
        move(shell, place, 100)
        shell.receive(Follow())
        shell.now += 1_000.0
        shell.receive(Lead(2))
        assert shell.jobs.age_s(shell.now, "j1") == pytest.approx(100.0, abs=0.1)
        shell.register("w1")
        move(shell, place, 195)
        assert not shell.records(TimedOut)
        move(shell, place, 10)
        assert shell.records(TimedOut)

    def test_a_leader_that_was_suspended_holds_nothing_against_a_job(self) -> None:
        shell, place = running()
        move(shell, place, 10)
        shell.now += 1_000.0
        shell.receive(Tick())
        assert not shell.job().ending
        assert shell.jobs.age_s(shell.now, "j1") == pytest.approx(10.0 + LOOK_S_MAX, abs=0.1)


class TestHearingFirst:
    """A manager that kept counting takes over after the limits have passed."""

    def late(self, *workflows: object, **given: object) -> tuple[Shell, Placement]:
        shell, place = running(*workflows, **given)
        move(shell, place, 55)
        heir = restarted(shell)
        heir.receive(LeaderSeen(led=True))
        for second in range(1, 301):
            heir.core.receive(heir.now + second, LeaderSeen(led=True))
        heir.now += 300.0
        heir.receive(Lead(2))
        return heir, place

    def test_a_run_that_completed_meanwhile_is_completed(self) -> None:
        heir, place = self.late(needs(peak_vus=1), timeout_s=100.0)
        heir.wait(5.0)
        assert not heir.records(Failed) + heir.records(TimedOut)
        listed = [report(place, "ended")]
        heir.receive(WorkerRegistered("w1", 1, 4, 4, listed))
        heir.beating.add("w1")
        heir.wait(5.0)
        heir.end(place)
        assert heir.job().status == "completed"

    def test_one_that_runs_on_past_its_time_is_ended_all_the_same(self) -> None:
        heir, place = self.late(timeout_s=100.0)
        heir.wait(5.0)
        assert not heir.records(TimedOut)
        heir.receive(WorkerRegistered("w1", 1, 4, 3, [report(place)]))
        assert heir.records(TimedOut)

    def test_an_end_that_is_not_told_after_all_holds_up_nothing_for_ever(self) -> None:
        heir, place = self.late(timeout_s=100.0)
        listed = [report(place, "ended")]
        heir.receive(WorkerRegistered("w1", 1, 4, 4, listed))
        heir.wait(14.0)
        assert not heir.records(TimedOut)
        heir.wait(2.0)
        assert heir.records(TimedOut)

    def test_a_worker_that_never_comes_holds_up_nothing_for_ever(self) -> None:
        heir, _ = self.late(timeout_s=100.0)
        heir.wait(heir.jobs.settings.register_s - 1.0)
        assert not heir.records(TimedOut)
        heir.wait(2.0)
        assert heir.records(TimedOut)

    def test_what_was_placed_by_this_leader_is_judged_at_once(self) -> None:
        shell, place = running(timeout_s=3.0)
        move(shell, place, 4)
        assert shell.records(TimedOut)

    def test_silence_before_it_led_is_not_held_against_a_part(self) -> None:
        shell, place = running()
        heir = restarted(shell)
        heir.receive(Lead(2))
        heir.register("w1")
        for second in range(1, 122):
            heir.wait(1.0)
            assert not heir.records(TimedOut)
            if second < 120:
                heir.hear("w1", report(place, counter=0, idle_s=600.0 + second))
        heir.hear("w1", report(place, counter=0, idle_s=720.0))
        assert "stuck" in heir.records(TimedOut)[0].reason


class TestSilence:
    def test_what_nobody_said_is_no_silence(self) -> None:
        """A leader under stress refuses reports: it hears of the worker by other ways."""
        shell, place = running(timeout_s=2_000.0)
        shell.hear("w1", report(place, counter=1, idle_s=30.0))
        shell.wait(600.0)
        assert not shell.job().ending
        assert shell.jobs.routing("w1") != "drain"

    def test_a_workflow_that_hangs_beside_one_that_moves_is_failed_alone(self) -> None:
        shell = Shell(JobSettings(stuck_s=30.0))
        shell.register("w1")
        names = ("hangs", "moves")
        shell.submit(*(needs(n, peak_vus=1, planned_s=300.0, limit_s=330.0) for n in names))
        shell.prepare_all()
        places = {name: shell.workflow(name).live()[0] for name in names}
        for second in range(1, 60):
            shell.wait(1.0)
            if shell.workflow("hangs").live():
                told = report(places["hangs"], counter=0, idle_s=float(second))
                shell.hear("w1", told, report(places["moves"], counter=second))
        assert shell.workflow("hangs").error.startswith("stuck: no progress for 30.0s")
        shell.end(places["moves"])
        assert shell.job().status == "partial"

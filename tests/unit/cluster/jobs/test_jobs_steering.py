"""Cancel at every stage, pause, scale, and running out of time."""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.effects import Command, Dispatch, Start
from hyperscale.cluster.jobs.events import (
    AppendFailed,
    ExtensionAsked,
    PartReport,
    Steering,
    ThresholdMoved,
)
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Extended,
    Placement,
    Steered,
    TimedOut,
    decode,
    encode,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import ReplicatedState
from tests.unit.cluster.jobs.making import Shell, needs


def accepted(answer: Steering) -> int:
    """How many workflows it concerns."""
    assert answer.accepted
    assert not answer.error
    return answer.workflows


def running(*workflows: object, **settings: object) -> Shell:
    shell = Shell(JobSettings(**settings))  # type: ignore[arg-type]
    shell.register("w1", 4)
    shell.submit(*(workflows or (needs(priority="exclusive"),)))  # type: ignore[arg-type]
    return shell


def report(place: Placement, counter: int, state: str = "running") -> PartReport:
    return PartReport(place.part, place.fence, state, counter=counter)


class TestCancel:
    def test_while_it_waits(self) -> None:
        shell = Shell()
        shell.submit(needs())
        assert accepted(shell.steer("cancel")) == 1
        assert shell.job().status == "cancelled"
        shell.register("w1", 4)
        assert not shell.dispatched()

    def test_while_its_dispatch_is_under_way(self) -> None:
        shell = Shell()
        shell.submit(needs())
        shell.hold = True
        shell.register("w1", 4)
        [dispatched] = shell.held
        shell.held.clear()
        shell.hold = False
        shell.steer("cancel")
        shell.commit(dispatched)  # lost the race
        assert not shell.take(Dispatch)
        assert shell.job().status == "cancelled"
        assert shell.jobs.pool.free(shell.jobs.pool.workers["w1"]) == 4

    def test_while_it_prepares(self) -> None:
        shell = running()
        [place] = shell.dispatched()
        shell.steer("cancel")
        [command] = shell.take(Command)
        assert (command.placement, command.action) == (place, "cancel")
        shell.prepare(place)
        assert not shell.take(Start)
        shell.end(place, "cancelled")
        assert shell.job().status == "cancelled"

    def test_while_it_runs(self) -> None:
        shell = running(needs(priority="exclusive"), needs("next", depends=("load",)))
        [place] = shell.prepare_all()
        assert accepted(shell.steer("cancel")) == 2
        assert shell.job().status == "cancelling"
        assert shell.workflow("next").lifecycle.state is LifecycleState.CANCELLED
        shell.end(place, "cancelled")
        assert shell.job().status == "cancelled"
        assert shell.job().reason == "cancelled by ada"
        assert shell.workflow().results() == [b"result"]

    def test_before_a_lost_part_found_another_worker(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        shell.die(place.worker)
        shell.wait(9.0)
        shell.steer("cancel")
        shell.register("w2", 4)
        assert not shell.dispatched()
        assert shell.job().status == "cancelled"

    def test_it_is_recorded_before_anybody_is_told(self) -> None:
        shell = running()
        shell.prepare_all()
        shell.hold = True
        shell.steer("cancel")
        assert not shell.take(Command)
        shell.release()
        assert len(shell.take(Command)) == 1

    def test_twice_is_once(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        assert shell.steer("cancel").accepted
        assert shell.steer("cancel").accepted
        shell.end(place, "cancelled")
        assert shell.steer("cancel").accepted
        assert len(shell.records(Steered)) == 1
        assert len(shell.take(Command)) == 1

    def test_an_accepted_cancel_is_insisted_on(self) -> None:
        shell = running()
        shell.prepare_all()
        shell.hold = True
        shell.steer("cancel")
        [record] = shell.held
        shell.hold = False
        shell.receive(AppendFailed(record, maybe_written=False))
        shell.wait(1.0)
        assert shell.job().ending == "cancel"

    def test_who_does_not_confirm_is_named(self) -> None:
        shell = running()
        shell.prepare_all()
        shell.steer("cancel")
        shell.wait(4.9)
        assert shell.job().status == "cancelling"
        shell.wait(0.2)
        assert shell.job().status == "cancelled"
        assert shell.jobs.lost_sentences("j1")[-1] == "worker w1 did not confirm that it ended"

    def test_completion_that_came_first_stands(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        shell.hold = True
        shell.end(place)
        shell.steer("cancel")
        end, cancel = shell.held
        shell.held.clear()
        shell.hold = False
        shell.commit(end)
        shell.commit(cancel)
        assert shell.job().status == "completed"

    def test_cancel_that_came_first_stands(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        shell.steer("cancel")
        shell.end(place, "completed")
        assert shell.job().status == "cancelled"
        assert shell.workflow().lifecycle.state is LifecycleState.CANCELLED

    def test_a_finished_or_unknown_job_is_told_apart(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        shell.end(place)
        assert shell.steer("cancel") == Steering(False, error="the job is over (completed)")
        assert shell.steer("cancel", job_id="x") == Steering(False, error="there is no job x")


def test_stop_lets_iterations_finish_and_starts_nothing_new() -> None:
    shell = running(needs(priority="exclusive"), needs("next", depends=("load",)))
    [place] = shell.prepare_all()
    shell.steer("stop")
    [command] = shell.take(Command)
    assert command.action == "stop"
    shell.end(place, "completed")
    assert not shell.dispatched()
    assert shell.workflow().lifecycle.succeeded
    assert shell.job().status == "cancelled"


class TestPause:
    def test_parts_are_told_and_marked_on_the_timeline(self) -> None:
        shell = running()
        [place] = shell.prepare_all()
        shell.wait(12.0)
        assert shell.steer("pause").accepted
        assert shell.steer("pause").accepted
        [command] = shell.take(Command)
        assert (command.placement, command.action) == (place, "pause")
        [mark] = shell.job().marks
        assert (mark.workflow, mark.at_s, mark.text) == ("load", 12.0, "paused")

    def test_a_copy_that_comes_late_changes_nothing(self) -> None:
        """A gate that lost a job had asked before its successor did, and is heard after it."""
        shell = running()
        shell.prepare_all()
        assert shell.steer("pause", command_id="a").accepted
        assert shell.steer("resume", command_id="b").accepted
        assert shell.steer("pause", command_id="a").accepted
        assert not shell.job().paused

    def test_a_copy_of_what_was_so_already_changes_nothing(self) -> None:
        shell = running()
        shell.prepare_all()
        for action, command_id in [("pause", "a"), ("pause", "b"), ("resume", "c"), ("pause", "b")]:
            assert shell.steer(action, command_id=command_id).accepted
        assert not shell.job().paused

    def test_load_time_stands_still(self) -> None:
        shell = running()
        shell.prepare_all()
        shell.wait(10.0)
        shell.steer("pause")
        shell.wait(100.0)
        assert shell.jobs.load_s(shell.now, "j1", "load") == 10.0
        shell.steer("resume")
        shell.wait(5.0)
        assert shell.jobs.load_s(shell.now, "j1", "load") == 15.0

    def test_a_pause_costs_no_time(self) -> None:
        shell = running(needs(priority="exclusive", planned_s=200.0, limit_s=250.0))
        [place] = shell.prepare_all()
        shell.wait(10.0)
        shell.steer("pause")
        shell.wait(2_000.0)
        assert shell.job().status == "running"
        shell.steer("resume")
        shell.hear("w1", report(place, 1))
        shell.wait(100.0)
        assert shell.job().ending == ""

    def test_a_paused_job_opens_no_barrier(self) -> None:
        shell = running()
        [place] = shell.dispatched()
        shell.steer("pause")
        shell.prepare(place)
        assert not shell.take(Start)
        shell.steer("resume")
        assert len(shell.take(Start)) == 1


class TestScale:
    def test_running_tests_are_told_the_new_total(self) -> None:
        shell = running(needs("load", peak_vus=2), needs("tool", is_test=False))
        shell.prepare_all()
        assert accepted(shell.steer("scale", 50)) == 1
        [command] = shell.take(Command)
        assert (command.placement.part.workflow, command.action, command.amount) == (
            "load", "scale", 50,
        )  # fmt: skip

    def test_a_part_that_comes_later_is_told_too(self) -> None:
        shell = running(needs(peak_vus=2))
        [place] = shell.prepare_all()
        shell.steer("scale", 50)
        shell.register("w2", 4)
        shell.die(place.worker)
        shell.wait(9.0)
        shell.take(Command)
        [again] = shell.prepare_all()
        [command] = shell.take(Command)
        assert (command.placement, command.action, command.amount) == (again, "scale", 50)

    def test_nobody_is_scaled_to_nothing(self) -> None:
        shell = running()
        assert not shell.steer("scale", 0).accepted
        assert not shell.steer("rate", 0).accepted

    def test_one_workflow_is_scaled_and_the_other_is_not(self) -> None:
        shell = running(needs("load", peak_vus=2), needs("other", peak_vus=2))
        shell.prepare_all()
        assert accepted(shell.steer("scale", 50, workflow="load")) == 1
        assert accepted(shell.steer("rate", 120, workflow="other")) == 1
        told = {(c.placement.part.workflow, c.action, c.amount) for c in shell.take(Command)}
        assert told == {("load", "scale", 50), ("other", "rate", 120)}
        marks = {(mark.workflow, mark.text) for mark in shell.job().marks}
        assert marks == {
            ("load", "scaled to 50 VUs"), ("other", "rate changed to 120 % of the plan"),
        }  # fmt: skip

    def test_a_workflow_that_is_not_there_is_named(self) -> None:
        shell = running(needs("load"), needs("other"))
        answer = shell.steer("scale", 5, workflow="lod")
        assert answer == Steering(False, error="it has no workflow lod; it has load, other")

    def test_a_part_that_comes_later_is_told_the_rate_too(self) -> None:
        shell = running(needs(peak_vus=2))
        [place] = shell.prepare_all()
        shell.steer("rate", 150)
        shell.register("w2", 4)
        shell.die(place.worker)
        shell.wait(9.0)
        shell.take(Command)
        [again] = shell.prepare_all()
        [command] = shell.take(Command)
        assert (command.placement, command.action, command.amount) == (again, "rate", 150)


class TestTime:
    def moving(self, shell: Shell, place: Placement, seconds: int) -> None:
        for _ in range(seconds):
            shell.wait(1.0)
            shell.hear("w1", report(place, int(shell.now)))

    def test_the_job_is_past_its_time(self) -> None:
        shell = running(needs(priority="exclusive", planned_s=900.0, limit_s=999.0))
        [place] = shell.prepare_all()
        self.moving(shell, place, 299)
        assert not shell.records(TimedOut)
        self.moving(shell, place, 2)
        [record] = shell.records(TimedOut)
        assert "300.0s > 300.0s" in record.reason
        shell.end(place, "cancelled")
        assert shell.job().status == "timeout"
        assert len(shell.records(TimedOut)) == 1

    def test_extensions_move_the_deadline(self) -> None:
        shell = running(needs(priority="exclusive", planned_s=900.0, limit_s=999.0))
        [place] = shell.prepare_all()
        self.moving(shell, place, 100)
        grant = shell.receive(ExtensionAsked("w1", "gc_pause", 0.3))
        assert (grant.granted, grant.seconds) == (True, 15.0)
        assert shell.records(Extended)[0].seconds == 15.0
        self.moving(shell, place, 214)
        assert not shell.records(TimedOut)
        self.moving(shell, place, 2)
        assert "base 300.0s + extensions 15.0s" in shell.records(TimedOut)[0].reason

    def test_a_quiet_workflow_without_counters_is_not_stuck(self) -> None:
        shell = running(needs(is_test=False, limit_s=400.0))
        [place] = shell.prepare_all()
        shell.wait(290.0)
        assert shell.job().status == "running"
        shell.end(place)
        assert shell.job().status == "completed"

    def test_a_part_past_its_limit_is_failed_from_here(self) -> None:
        shell = running(needs(is_test=False, limit_s=100.0))
        [place] = shell.prepare_all()
        shell.wait(116.0)
        assert shell.workflow().error == "did not end within its limit of 100 s"
        assert [c.placement for c in shell.take(Command)] == [place]
        shell.wait(6.0)
        assert shell.job().status == "failed"

    def test_queueing_does_not_count(self) -> None:
        shell = running(needs(is_test=False, limit_s=400.0))
        [place] = shell.prepare_all()
        shell.submit(needs(priority="exclusive"), job_id="j2")
        shell.wait(290.0)
        shell.end(place)
        [second] = shell.prepare_all()
        self.moving(shell, second, 59)
        shell.end(second)
        assert shell.job("j2").status == "completed"


def test_counts_sum_to_the_workflows_of_live_jobs() -> None:
    shell = running(needs("a", peak_vus=1), needs("b", depends=("a",)))
    shell.prepare_all()
    counts = shell.jobs.counts()
    assert (counts["running"], counts["pending"], sum(counts.values())) == (1, 1, 2)
    assert shell.jobs.transitions()["pending", "dispatched"] == 1


def test_stuck_job_names_the_time() -> None:
    shell = running(needs(priority="exclusive", planned_s=900.0, limit_s=999.0))
    [place] = shell.prepare_all()
    for second in range(1, 122):
        shell.wait(1.0)
        shell.hear("w1", replace(report(place, 1), idle_s=float(second)))
    [record] = shell.records(TimedOut)
    assert record.reason.startswith("stuck: no progress for 1")
    assert not shell.records(Dispatched)[1:]


# -- thresholds ----------------------------------------------------------------------------------


def test_how_a_threshold_stands_is_known_to_the_next_leader() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs())
    shell.receive(ThresholdMoved("j1", "load", 1, 12.5, None))
    assert shell.job().judged == {("load", 1): (12.5, None)}
    shell.receive(ThresholdMoved("j1", "load", 1, None, 812.0))
    again = ReplicatedState()
    for record in shell.log:
        apply(again, decode(encode(record)))
    assert again.jobs["j1"].judged == {("load", 1): (None, 812.0)}
    shell.receive(ThresholdMoved("j1", "nobody", 0, 1.0, None))
    shell.receive(ThresholdMoved("j9", "load", 0, 1.0, None))
    assert list(shell.job().judged) == [("load", 1)]

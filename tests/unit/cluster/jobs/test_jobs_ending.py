"""Ends: acknowledged when held, counted once, torn down, made into results, forgotten."""

from __future__ import annotations

from hyperscale.cluster.jobs.effects import Acknowledge, Command, MakeResults, Teardown
from hyperscale.cluster.jobs.records import Finished, PartEnded, TornDown
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def running(*workflows: object, workers: int = 1, **settings: object) -> Shell:
    shell = Shell(JobSettings(**settings))  # type: ignore[arg-type]
    for number in range(workers):
        shell.register(f"w{number + 1}", 4)
    shell.submit(*(workflows or (needs(priority="exclusive"),)))  # type: ignore[arg-type]
    return shell


def test_an_end_is_settled_after_its_record() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.hold = True
    assert not shell.end(place)
    assert not shell.end(place)  # the worker asks again meanwhile
    assert len(shell.held) == 1
    assert not shell.take(Acknowledge)
    shell.release()
    [ack] = shell.take(Acknowledge)
    assert (ack.worker, ack.part, ack.fence) == (place.worker, place.part, place.fence)
    assert shell.end(place)
    assert len(shell.records(PartEnded)) == 1


def test_the_same_end_three_times_counts_once() -> None:
    shell = running(needs(priority="exclusive"), workers=2)
    first, second = shell.prepare_all()
    for _ in range(3):
        shell.end(first)
    assert shell.job().status == "running"
    shell.end(second)
    shell.end(second)
    assert shell.workflow().results() == [b"result", b"result"]
    assert len(shell.records(Finished)) == 1
    assert shell.job().status == "completed"


def test_an_end_of_an_old_attempt_is_of_no_use() -> None:
    shell = running()
    [place] = shell.prepare_all()
    stale = place.__class__(place.part, place.fence._replace(epoch=0), place.worker, 1, 0, 4)
    assert shell.end(stale)
    assert not shell.records(PartEnded)


def test_one_failed_part_ends_the_workflow_everywhere() -> None:
    shell = running(needs(priority="exclusive"), workers=2)
    first, second = shell.prepare_all()
    shell.end(first, "failed", "ZeroDivisionError")
    [command] = shell.take(Command)
    assert (command.placement, command.action) == (second, "cancel")
    assert shell.job().status == "running"
    shell.end(second, "cancelled")
    assert shell.job().status == "failed"
    assert shell.job().reason == "load: ZeroDivisionError"


def test_teardown_runs_where_setup_ran_and_its_processes_are_kept() -> None:
    shell = running(needs(priority="exclusive", tears_down=True), workers=2)
    first, second = shell.prepare_all()
    shell.end(second)
    assert not shell.take(Acknowledge)  # in case part 0 never ends
    shell.end(first)
    assert [ack.part.number for ack in shell.take(Acknowledge)] == [1]
    [teardown] = shell.take(Teardown)
    assert teardown.placement == first
    assert shell.job().status == "running"
    worker = shell.jobs.pool.workers[first.worker]
    assert shell.jobs.pool.free(worker) == 0
    settled, effects = shell.jobs.torn_down(0.0, first.part, first.fence, first.worker, "slow")
    shell.carry(effects)
    assert not settled
    assert [ack.part.number for ack in shell.take(Acknowledge)] == [0]
    assert shell.jobs.pool.free(worker) == 4
    assert shell.workflow().warning == "slow"
    assert shell.job().status == "completed"


def test_teardown_that_never_ends_does_not_keep_the_job() -> None:
    shell = running(needs(priority="exclusive", tears_down=True))
    [place] = shell.prepare_all()
    shell.end(place)
    shell.wait(61.0)
    [record] = shell.records(TornDown)
    assert record.warning == "teardown() did not end within 60 s on w1"
    assert shell.job().status == "completed"


def test_teardown_moves_when_its_worker_dies() -> None:
    shell = running(needs(priority="exclusive", tears_down=True), workers=2)
    first, second = shell.prepare_all()
    shell.end(first)
    shell.die(first.worker)
    shell.wait(9.0)
    shell.end(second)
    [teardown] = shell.take(Teardown)
    assert teardown.placement == second


def test_teardown_without_anybody_left_is_told() -> None:
    shell = running(needs(priority="exclusive", tears_down=True))
    [place] = shell.prepare_all()
    shell.end(place)
    shell.die("w1")
    shell.wait(9.0)
    assert shell.workflow().warning.startswith("teardown() did not run")
    assert shell.job().status == "completed"


def test_teardown_runs_after_a_cancel_too() -> None:
    shell = running(needs(priority="exclusive", tears_down=True))
    [place] = shell.prepare_all()
    shell.steer("cancel")
    shell.end(place, "cancelled")
    assert [teardown.placement for teardown in shell.take(Teardown)] == [place]
    shell.carry(shell.jobs.torn_down(0.0, place.part, place.fence, "w1")[1])
    assert shell.job().status == "cancelled"


def test_an_error_in_setup_leaves_nothing_to_tear_down() -> None:
    shell = running(needs(priority="exclusive", sets_up=True, tears_down=True))
    [place] = shell.dispatched()
    shell.end(place, "failed", "setup() raised")
    assert not shell.take(Teardown)
    assert shell.job().status == "failed"


def test_results_that_were_not_written_are_asked_for_again() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.hold = True
    shell.end(place)
    shell.commit(shell.held.pop())
    [finished] = shell.held
    shell.held.clear()
    assert len(shell.take(MakeResults)) == 1
    shell.hold = False
    shell.carry(shell.jobs.append_failed(shell.now, finished, maybe_written=False))
    shell.wait(1.0)
    assert len(shell.take(MakeResults)) == 1
    assert shell.job().status == "completed"


def test_a_job_is_remembered_as_long_as_its_key() -> None:
    shell = running(completed_kept_s=1.0, failed_kept_s=900.0, key_kept_s=400.0)
    assert (shell.jobs.keep_s("completed"), shell.jobs.keep_s("failed")) == (400.0, 900.0)


def test_jobs_are_forgotten_when_the_log_says_so() -> None:
    shell = running(completed_kept_s=300.0, failed_kept_s=3600.0)
    [place] = shell.prepare_all()
    shell.end(place)
    shell.submit(needs(priority="exclusive"), job_id="j2", idempotency_key="k")
    [other] = shell.prepare_all()
    shell.end(other, "failed", "boom")
    assert (shell.jobs.keep_s("completed"), shell.jobs.keep_s("failed")) == (300.0, 3600.0)
    shell.wait(4_000.0)
    assert [job.job_id for job in shell.jobs.jobs()] == ["j1", "j2"]
    shell.carry(shell.jobs.forget(shell.now, "j1"))
    assert shell.jobs.job("j1") is None
    assert shell.job("j2").status == "failed"
    shell.carry(shell.jobs.follow(shell.now))  # forgetting is not the leader's alone
    shell.carry(shell.jobs.forget(shell.now, "j2"))
    assert shell.jobs.jobs() == []
    assert shell.jobs.replicated.keys == {}


def test_a_part_that_is_never_ready_fails_the_workflow() -> None:
    shell = running(prepare_s=100.0)
    shell.dispatched()
    shell.wait(101.0)
    assert shell.workflow().error == "was not ready within 100 s on w1"
    [command] = shell.take(Command)
    assert command.action == "cancel"

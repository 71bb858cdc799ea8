"""A workflow of which nothing runs says so from the moment that happens, until it is placed again,
given up or cancelled."""

from __future__ import annotations

import pytest

from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import PartEnded, PartLost, Started
from tests.unit.cluster.jobs.making import Shell, needs
from tests.unit.cluster.jobs.test_jobs_losing import kill, running

DIED = "generator process 7 of load was killed by SIGKILL at 4.0s: 2 of 2 VUs lost"


def alone(**given: object) -> Shell:
    """Its only worker is lost."""
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=2, limit_s=2000.0, **given), timeout_s=5000.0)
    [place] = shell.prepare_all()
    shell.wait(5.0)
    kill(shell, place.worker)
    assert len(shell.records(PartLost)) == 1
    return shell


def test_a_workflow_whose_only_worker_died_does_not_run() -> None:
    shell = alone()
    life = shell.workflow().lifecycle
    assert (life.state, life.public) == (LifecycleState.FAILED_READY_FOR_RETRY, "pending")
    [loss] = shell.workflow().parts[0].losses
    steps = [step for step in life.history if step.target is LifecycleState.FAILED]
    assert [(step.at_s, step.reason) for step in steps] == [(loss.age_s, loss.reason)]
    assert shell.jobs.counts()["failed_ready"] == 1

    shell.register("w9", 4)
    shell.wait(1.0)
    assert life.state is LifecycleState.DISPATCHED
    [again] = shell.prepare_all()
    assert life.state is LifecycleState.RUNNING
    shell.end(again)
    assert life.state is LifecycleState.COMPLETED
    assert life.refused == 0


def test_also_when_the_last_of_others_ends() -> None:
    shell = running(needs(priority="normal", peak_vus=100), workers=2, cores=2)
    first, second = shell.prepare_all()
    kill(shell, second.worker)
    assert shell.workflow().lifecycle.state is LifecycleState.RUNNING
    shell.end(first)  # its cores are free for what was lost
    assert [step.target for step in shell.workflow().lifecycle.history][-3:] == [
        LifecycleState.FAILED_READY_FOR_RETRY,
        LifecycleState.PENDING,
        LifecycleState.DISPATCHED,
    ]


@pytest.mark.parametrize(
    ("planned_s", "state"),
    [(60.0, LifecycleState.COMPLETED), (None, LifecycleState.FAILED_READY_FOR_RETRY)],
)
def test_it_is_given_up_when_its_time_is_over(
    planned_s: float | None, state: LifecycleState
) -> None:
    shell = alone(planned_s=planned_s)
    shell.wait(60.0)
    assert shell.workflow().lifecycle.state is state
    shell.wait(300.0)
    assert shell.workflow().lifecycle.state is LifecycleState.COMPLETED


def test_without_any_numbers_it_failed() -> None:
    shell = alone(is_test=False)
    shell.wait(400.0)
    assert shell.workflow().lifecycle.state is LifecycleState.FAILED
    assert shell.job().status == "failed"


@pytest.mark.parametrize(
    ("action", "state"), [("cancel", LifecycleState.CANCELLED), ("stop", LifecycleState.COMPLETED)]
)
def test_it_can_be_ended_meanwhile(action: str, state: LifecycleState) -> None:
    shell = alone()
    shell.steer(action)
    assert shell.workflow().lifecycle.state is state
    assert shell.job().is_over


def test_before_its_load_began_it_is_placed_anew() -> None:
    shell = running(needs(peak_vus=2), workers=1)
    [place] = shell.dispatched()
    kill(shell, place.worker)
    assert shell.workflow().lifecycle.state is LifecycleState.FAILED_READY_FOR_RETRY
    shell.wait(120.0)
    assert shell.workflow().lifecycle.state is LifecycleState.PENDING
    shell.register("w9", 4)
    shell.wait(1.0)
    [again] = shell.prepare_all()
    assert again.worker == "w9"
    assert shell.workflow().lifecycle.state is LifecycleState.RUNNING


def test_a_part_whose_processes_died_goes_on_like_that_of_a_lost_worker() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.end(place, "cut off", error=DIED, measured_s=20.0, lost=DIED)
    assert [record.lost for record in shell.records(PartEnded)] == [DIED]
    [again] = shell.prepare_all()
    assert (again.worker != place.worker, again.resume_at_s) == (True, 20.0)
    shell.wait(40.0)
    shell.end(again)
    assert shell.job().status == "completed"
    [sentence] = shell.jobs.lost_sentences("j1")
    assert sentence == (
        f"worker {place.worker}: {DIED} (2 of 2 cores), its load went on elsewhere at 20 s"
    )


def test_refused_transitions_are_counted() -> None:
    shell = running()
    shell.prepare_all()
    [record] = shell.records(Started)
    shell.commit(record)  # once more, as after an answer that was lost
    assert shell.jobs.transitions_refused == 1

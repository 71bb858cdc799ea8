"""A job of gates waits, prepared, for the word that its load begins everywhere."""

from __future__ import annotations

import pytest

from hyperscale.cluster.jobs.effects import Start
from hyperscale.cluster.jobs.events import Lead, PartReport, WorkerRegistered
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import Started, Steered
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def prepared() -> Shell:
    shell = Shell()
    shell.register()
    shell.submit(held=True)
    assert not shell.jobs.is_prepared(shell.job())
    shell.prepare_all()
    return shell


def test_it_is_prepared_and_does_not_begin() -> None:
    shell = prepared()
    assert shell.jobs.is_prepared(shell.job())
    shell.wait(100.0)
    assert shell.records(Started) == []


def test_it_begins_when_it_is_told_to_and_not_before() -> None:
    shell = prepared()
    assert shell.steer("begin", 2_500, command_id="begin").accepted
    assert not shell.jobs.is_prepared(shell.job())
    shell.wait(2.0)
    assert shell.take(Start) == []
    shell.wait(0.5)
    assert len(shell.take(Start)) == 1
    assert shell.records(Started)[0].age_s == pytest.approx(2.5)


def test_the_first_word_counts() -> None:
    shell = prepared()
    shell.steer("begin", 1_000, command_id="begin")
    assert shell.steer("begin", 9_000, command_id="begin").accepted
    shell.wait(1.0)
    assert len(shell.take(Start)) == 1
    assert shell.steer("begin", 0, command_id="begin").accepted
    shell.wait(1.0)
    assert shell.take(Start) == []
    assert len(shell.records(Steered)) == 1


def test_a_new_leader_that_finds_the_word_begins_at_once() -> None:
    """It was not there to hear how long that takes."""
    shell = prepared()
    (place,) = shell.ready
    shell.steer("begin", 5_000, command_id="begin")
    shell.receive(Lead(2))
    report = PartReport(place.part, place.fence, "prepared", context=b"")
    shell.receive(WorkerRegistered("w1", 1, 4, 0, [report]))
    assert len(shell.take(Start)) == 1


def test_what_is_told_before_it_is_prepared_begins_as_soon_as_it_is() -> None:
    shell = Shell()
    shell.register()
    shell.submit(held=True)
    shell.steer("begin", 0, command_id="begin")
    shell.prepare_all()
    assert len(shell.take(Start)) == 1


def test_without_the_word_it_gives_its_cores_back() -> None:
    shell = prepared()
    shell.wait(JobSettings().held_s + 1.0)
    assert shell.workflow().lifecycle.state is LifecycleState.CANCELLING
    assert shell.job().reason == "no gate said within 300 s that its load begins"


def test_waiting_takes_nothing_of_its_time() -> None:
    shell = Shell()
    shell.register()
    shell.submit(needs(), held=True, timeout_s=100.0)
    shell.prepare_all()
    shell.wait(200.0)
    shell.steer("begin", 0, command_id="begin")
    shell.wait(80.0)
    assert not shell.job().ending
    shell.wait(40.0)
    assert shell.job().reason.startswith("timed out")


def test_it_can_be_cancelled() -> None:
    shell = prepared()
    assert shell.steer("cancel").accepted
    assert not shell.jobs.is_prepared(shell.job())
    assert shell.workflow().lifecycle.state is LifecycleState.CANCELLING


def test_other_jobs_need_no_word() -> None:
    shell = Shell()
    shell.register()
    shell.submit()
    shell.prepare_all()
    assert len(shell.take(Start)) == 1
    assert shell.steer("begin", 0, command_id="begin").accepted

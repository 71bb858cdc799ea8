"""Histories that should make no difference: what one manager holds, all hold."""

from __future__ import annotations

import random

import pytest

from hyperscale.cluster.jobs import workers
from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import Acknowledge, CollectReported
from hyperscale.cluster.jobs.inputs import Accepted
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import PartLost, Steered
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def test_a_job_is_forgotten_by_the_log_and_not_by_the_clock_of_one_manager() -> None:
    """A key is free again when all managers agree that it is: else the next job under it exists
    on the leader only, and is gone with it."""
    shell = Shell()
    follower = Jobs(JobSettings(), random.Random(2))
    shell.register()
    shell.submit(idempotency_key="nightly")
    (place,) = shell.prepare_all()
    shell.end(place)
    assert shell.job().is_over
    shell.wait(3_700.0)
    assert isinstance(shell.submit(job_id="j2", idempotency_key="nightly"), Accepted)
    for record in shell.log:
        follower.applied(shell.now, record)
    assert [job.job_id for job in follower.jobs()] == [job.job_id for job in shell.jobs.jobs()]


def test_a_steering_that_is_accepted_is_written() -> None:
    """The client was refused, and asks again at once."""
    shell = Shell()
    shell.register()
    shell.submit()
    shell.prepare_all()
    shell.hold = True
    assert shell.steer("pause").accepted
    (record,) = shell.held
    shell.held.clear()
    shell.carry(shell.jobs.append_failed(shell.now, record, False))
    shell.now += 0.1
    answer = shell.steer("pause")
    shell.wait(10.0)
    assert not answer.accepted or any(isinstance(one, Steered) for one in shell.held)


def test_a_loss_that_could_not_be_written_is_written_later_though_its_worker_has_left() -> None:
    shell = Shell()
    shell.register("w1")
    shell.submit()
    shell.prepare_all()
    shell.hold = True
    shell.beating.discard("w1")
    shell.carry(shell.jobs.worker_left(shell.now, "w1", 1))
    (record,) = shell.held
    assert isinstance(record, PartLost)
    shell.held.clear()
    shell.carry(shell.jobs.append_failed(shell.now, record, False))
    shell.hold = False
    shell.wait(30.0)
    assert shell.records(PartLost), "nobody remembers that the worker is gone"


def test_an_end_that_lost_against_its_own_loss_is_acknowledged() -> None:
    """The worker waits for a word, and so does whoever serves it."""
    shell = Shell()
    shell.register("w1")
    shell.register("w2")
    shell.submit()
    (place, *_) = shell.prepare_all()
    shell.beating.discard(place.worker)
    shell.carry(shell.jobs.worker_dead(shell.now, place.worker, 1))
    shell.hold = True
    shell.wait(20.0)
    assert shell.take(CollectReported)
    assert shell.end(place) is False
    shell.take(Acknowledge)
    shell.release()
    assert (place.part, place.fence) in [(a.part, a.fence) for a in shell.take(Acknowledge)]


def test_submitted_again_after_a_change_of_leaders_is_the_same_job() -> None:
    shell = Shell()
    shell.submit(idempotency_key="k")
    shell.carry(shell.jobs.follow(shell.now))
    shell.carry(shell.jobs.lead(shell.now, 2))
    again = shell.submit(job_id="other", idempotency_key="k")
    assert again == Accepted("j1", shell.jobs.position("j1"), duplicate=True)


def test_a_deadline_that_cannot_be_kept_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two workers die at once; to look at the first one again raises."""
    shell = Shell(JobSettings(evict_population_min=99))
    shell.register("w1", cores=2)
    shell.register("w2", cores=2)
    shell.submit(needs(peak_vus=4_000))
    assert {place.worker for place in shell.prepare_all()} == {"w1", "w2"}
    shell.die("w1")
    shell.die("w2")
    assert not shell.take(CollectReported)
    real, broken = workers.check_worker, []

    def once(leader: LeaderState, now: float, worker: Worker) -> None:
        if not broken:
            broken.append(worker.name)
            raise RuntimeError("a bug")
        real(leader, now, worker)

    monkeypatch.setattr(workers, "check_worker", once)
    with pytest.raises(RuntimeError, match="a bug"):
        shell.wait(30.0)
    shell.wait(30.0)
    (other,) = {"w1", "w2"} - set(broken)
    assert other in {effect.placement.worker for effect in shell.take(CollectReported)}

"""Workflows of one job that share cores, those that run alone, and when each begins."""

from __future__ import annotations

from collections import defaultdict

import pytest

from hyperscale.cluster.jobs.effects import Start
from hyperscale.cluster.jobs.events import (
    DispatchAnswered,
    PartReport,
)
from hyperscale.cluster.jobs.records import Needs, Placement, Started
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def three() -> list[Needs]:
    return [needs(name) for name in ("A", "B", "C")]


def slots(places: list[Placement]) -> dict[str, set[tuple[str, int]]]:
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for place in places:
        found[place.part.workflow] |= {(place.worker, slot) for slot in place.slots}
    return found


def booked(shell: Shell) -> int:
    return sum(shell.jobs.pool.booked(worker) for worker in shell.jobs.pool.workers.values())


def test_three_workflows_run_at_once_on_one_core() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(*three())
    places = shell.prepare_all()
    assert slots(places) == {name: {("w1", 0)} for name in "ABC"}
    assert all(workflow.started for workflow in shell.job().workflows.values())
    assert booked(shell) == 1
    for count, place in enumerate(places, 1):
        shell.end(place)
        assert booked(shell) == (count < 3)
    assert shell.job().status == "completed"


def test_all_of_a_layer_begin_when_all_of_them_are_prepared() -> None:
    shell = Shell()
    shell.register(cores=2)
    shell.submit(needs("quick"), needs("slow"))
    quick, slow = sorted(shell.dispatched(), key=lambda place: place.part.workflow)
    shell.prepare(quick)
    assert shell.records(Started) == []
    shell.prepare(slow)
    assert {record.workflow for record in shell.records(Started)} == {"quick", "slow"}


def test_nobody_waits_for_one_that_cannot_be_prepared() -> None:
    shell = Shell()
    shell.register(cores=2)
    shell.submit(needs("quick"), needs("slow"))
    quick, slow = sorted(shell.dispatched(), key=lambda place: place.part.workflow)
    shell.prepare(quick)
    shell.end(slow, "failed", "setup() raised")
    assert [record.workflow for record in shell.records(Started)] == ["quick"]


def test_cores_are_shared_over_workers() -> None:
    shell = Shell()
    shell.register("w1", 2)
    shell.register("w2", 2)
    shell.submit(needs("Big", priority="high"), needs("Other", priority="high"))
    found = slots(shell.prepare_all())
    assert [len(found[name]) for name in ("Big", "Other")] == [3, 3]
    assert len(found["Big"] | found["Other"]) == booked(shell) == 4


def test_jobs_share_nothing() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(*three())
    shell.prepare_all()
    shell.submit(needs(), job_id="j2")
    assert not shell.dispatched()
    assert shell.jobs.waiting_for("j2") == "0 of 1 cores are free"


def test_a_workflow_that_is_no_test_takes_no_core_from_one() -> None:
    shell = Shell()
    shell.register("w1", 2)
    shell.submit(needs("Load"), needs("SetsUp", is_test=False, peak_vus=1))
    found = slots(shell.prepare_all())
    assert len(found["Load"]) == 2
    assert found["SetsUp"] < found["Load"]


def test_the_slot_of_a_core_is_never_that_of_another() -> None:
    shell = Shell()
    shell.register("w1", 2)
    shell.submit(needs("First"), needs("Then", depends=("First",)))
    [first] = shell.prepare_all()
    shell.end(first)
    [then] = shell.prepare_all()
    assert not set(first.slots) & set(then.slots)


def test_one_that_was_given_back_joins_the_others() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(*three())
    a, b, c = shell.dispatched()
    shell.prepare(a)
    shell.prepare(b)
    shell.receive(DispatchAnswered(c, False, no_room=True, reason="full"))
    shell.wait(1.0)
    [again] = shell.prepare_all()
    assert (again.part.workflow, again.slots) == ("C", a.slots)
    assert booked(shell) == 1
    assert all(workflow.started for workflow in shell.job().workflows.values())


def test_parts_that_shared_cores_share_them_elsewhere() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(*three())
    shell.prepare_all()
    shell.register("w2", 1)
    shell.die("w1")
    shell.wait(10.0)
    again = shell.prepare_all()
    assert {place.worker for place in again} == {"w2"}
    assert len({place.slots for place in again}) == 1
    assert all(place.fence.attempt == 2 for place in again)
    for place in again:
        shell.end(place)
    assert shell.job().status == "completed"


def test_without_room_for_all_each_is_placed_by_itself() -> None:
    shell = Shell()
    shell.register("w1", 2)
    shell.submit(
        needs("Wide", priority="high", peak_vus=10),
        needs("Small", priority="high", peak_vus=1),
        needs("Other", priority="high", peak_vus=1),
    )
    found = slots(shell.prepare_all())
    assert (len(found["Wide"]), booked(shell)) == (2, 2)
    shell.register("w2", 1)
    shell.die("w1")
    shell.wait(10.0)
    [only] = shell.dispatched()
    assert only.part.workflow != "Wide"
    assert (only.worker, only.cores) == ("w2", 1)


def test_an_exclusive_workflow_runs_after_the_others_and_alone() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs("Alone", priority="exclusive", peak_vus=1), needs("Load"))
    [load] = shell.prepare_all()
    assert load.part.workflow == "Load"
    shell.end(load)
    [alone] = shell.prepare_all()
    assert (alone.part.workflow, alone.cores) == ("Alone", 1)
    shell.submit(needs(peak_vus=1), job_id="j2")
    assert not shell.dispatched(), "three cores are free, and nobody may have them"
    assert shell.jobs.waiting_for("j2") == "a workflow of job j1 runs alone"
    shell.end(alone)
    assert [place.part.job_id for place in shell.dispatched()] == ["j2"]


def test_an_exclusive_workflow_waits_for_other_jobs() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=1))
    [other] = shell.prepare_all()
    shell.submit(needs(priority="exclusive", peak_vus=1), job_id="j2")
    assert not shell.dispatched()
    shell.end(other)
    assert [place.part.job_id for place in shell.dispatched()] == ["j2"]


def test_nothing_takes_the_place_of_an_exclusive_workflow_that_lost_its_worker() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(needs(priority="exclusive"))
    shell.prepare_all()
    shell.die("w1")
    shell.wait(9.0)
    shell.submit(needs(), job_id="j2")
    shell.register("w2", 1)
    assert [place.part.job_id for place in shell.dispatched()] == ["j1"]


@pytest.mark.parametrize(("start_time_s", "rest_s"), [(0.0, 0.0), (10.0, 0.0), (60.0, 30.0)])
def test_start_time_counts_from_the_first_start(start_time_s: float, rest_s: float) -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(needs("First"), needs("Then", depends=("First",), start_time_s=start_time_s))
    [first] = shell.prepare_all()
    assert [start.run_age_s for start in shell.take(Start)] == [0.0]
    shell.wait(30.0)
    shell.end(first)
    shell.prepare_all()
    assert [start.run_age_s for start in shell.take(Start)] == [30.0]
    workflow = shell.workflow("Then")
    assert shell.job().load_age_s(workflow) == 30.0 + rest_s
    shell.wait(rest_s + 5.0)
    assert shell.jobs.load_s(shell.now, "j1", "Then") == pytest.approx(5.0)


def test_a_part_that_is_lost_before_its_load_waits_for_it_elsewhere() -> None:
    shell = Shell()
    shell.register("w1", 1)
    shell.submit(needs(start_time_s=60.0, warmup_s=5.0))
    shell.prepare_all()
    shell.register("w2", 1)
    shell.lost_at_s = 0.0
    shell.die("w1")
    shell.wait(10.0)
    [again] = shell.prepare_all()
    assert again.resume_at_s == 0.0
    assert shell.take(Start)[-1].run_age_s == pytest.approx(shell.now, abs=1.0)


def test_waiting_for_its_start_time_is_not_being_stuck() -> None:
    shell = Shell(JobSettings(stuck_s=30.0))
    shell.register("w1", 1)
    shell.submit(needs(start_time_s=100.0, limit_s=200.0))
    [place] = shell.prepare_all()
    for second in range(1, 150):
        shell.wait(1.0)
        idle_s = max(0.0, second - 100.0)  # its worker knows that it waits, and then that it hangs
        told = PartReport(place.part, place.fence, "running", counter=0, idle_s=idle_s)
        if shell.job().ending:
            break
        assert second <= 131
        shell.hear("w1", told)
    assert shell.job().ending == "timeout"
    assert "stuck" in shell.job().reason

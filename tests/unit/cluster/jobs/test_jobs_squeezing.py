"""A worker is lost and no core is free: its part shares cores of its job, waits, or is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale.cluster.jobs.coverage import coverage, losses, sentences
from hyperscale.cluster.jobs.inputs import CpuUse
from hyperscale.cluster.jobs.records import (
    Dispatched,
    GivenUp,
    Needs,
    PartLost,
    Placement,
    Returned,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.squeezing import REFUSALS_MAX
from tests.unit.cluster.jobs.making import Shell, needs

IDLE = CpuUse(5.0, 5.0)
UNTIL_KNOWN_S = 10.0


def running(
    workers: dict[str, int], *workflows: Needs, cpu: CpuUse | None = IDLE, **given: Any
) -> tuple[Shell, list[Placement]]:
    """All cores are used by the job, whose load runs; reports tell the workers' CPU."""
    shell = Shell(JobSettings(evict_population_min=99))
    for name, cores in workers.items():
        shell.register(name, cores)
        if cpu is not None:
            shell.cpu[name] = cpu
    shell.submit(*(workflows or (needs(),)), **given)
    places = shell.prepare_all()
    shell.wait(3.0)
    return shell, places


def lose(shell: Shell, worker: str) -> list[Placement]:
    """What is placed when its death is known, and a moment later."""
    shell.die(worker)
    shell.wait(UNTIL_KNOWN_S)
    return shell.prepare_all()


def free(shell: Shell) -> dict[str, int]:
    return {name: shell.jobs.pool.free(worker) for name, worker in shell.jobs.pool.workers.items()}


def test_a_survivor_takes_the_part_on_the_core_it_has() -> None:
    shell, places = running({"w1": 1, "w2": 1})
    kept = next(place for place in places if place.worker == "w1")
    shell.lost_at_s = 3.0
    [again] = lose(shell, "w2")
    assert (again.worker, again.slots) == ("w1", kept.slots)
    assert (again.fence.attempt, again.cores) == (2, 1)
    assert again.resume_at_s == pytest.approx(shell.now - UNTIL_KNOWN_S + 9.0, abs=1.5)
    assert free(shell)["w1"] == 0


def test_a_part_that_fits_nowhere_shares_the_cores_that_are_free_when_nobody_runs_the_job() -> None:
    shell, places = running({"w1": 1, "w2": 3}, needs(planned_s=None, peak_vus=8))
    for place in places:
        if place.worker == "w1":
            shell.end(place)
    again = lose(shell, "w2")
    assert {place.worker for place in again} == {"w1"}
    assert len({place.part.number for place in again}) == 3
    assert len({place.slots for place in again}) == 1
    assert sum(place.cores for place in again) == 3
    assert free(shell)["w1"] == 0
    for place in again:
        shell.end(place)
    assert free(shell)["w1"] == 1


def test_a_core_that_is_shared_is_free_when_the_last_has_ended() -> None:
    shell, places = running({"w1": 1, "w2": 1})
    kept = next(place for place in places if place.worker == "w1")
    [again] = lose(shell, "w2")
    shell.end(kept)
    assert free(shell)["w1"] == 0
    shell.end(again)
    assert free(shell)["w1"] == 1
    assert shell.job().status == "completed"


def test_a_free_core_is_better() -> None:
    shell, _ = running({"w1": 1, "w2": 1})
    shell.register("w3", 1)
    [again] = lose(shell, "w2")
    assert again.worker == "w3"


def test_a_core_that_becomes_free_in_time_is_better() -> None:
    settings = JobSettings()
    shell, _ = running({"w1": 1, "w2": 1})
    shell.die("w2")
    shell.wait(settings.reschedule_s - 2.5)
    while not shell.records(PartLost):
        shell.wait(0.1)
    shell.wait(settings.squeeze_after_s / 2)
    assert not shell.dispatched()
    shell.register("w3", 1)
    [again] = shell.dispatched()
    assert again.worker == "w3"


def test_who_has_the_most_to_spare_is_asked() -> None:
    shell, _ = running({"w1": 1, "w2": 1, "w3": 1})
    shell.cpu |= {"w1": CpuUse(30.0, 5.0), "w3": CpuUse(10.0, 10.0)}
    shell.wait(5.0)
    [again] = lose(shell, "w2")
    assert again.worker == "w3"


def test_a_part_with_many_cores_is_spread_over_those_there_are() -> None:
    shell, places = running({"w1": 1, "w2": 1, "big": 4})
    lost = next(place for place in places if place.worker == "big")
    pieces = lose(shell, "big")
    assert sorted(piece.worker for piece in pieces) == ["w1", "w1", "w2", "w2"]
    assert sum(piece.cores for piece in pieces) == 4
    cores = [c for p in pieces for c in range(p.first_core, p.first_core + p.cores)]
    assert sorted(cores) == list(range(lost.first_core, lost.first_core + lost.cores))
    assert {piece.part.number for piece in pieces} >= {lost.part.number}
    assert len({piece.part for piece in pieces}) == 4
    assert (free(shell)["w1"], free(shell)["w2"]) == (0, 0)
    for placement in [p for w in ("w1", "w2") for p in shell.jobs.replicated.by_worker[w].values()]:
        shell.end(placement)
    assert (free(shell)["w1"], free(shell)["w2"]) == (1, 1)


def test_processes_are_shared_evenly() -> None:
    shell, places = running({"w1": 2, "w2": 2})
    kept = next(place for place in places if place.worker == "w1")
    [again] = lose(shell, "w2")
    assert (again.slots, again.cores) == (kept.slots, 2)


@pytest.mark.parametrize(
    "cpu", [None, CpuUse(45.0, 5.0), CpuUse(5.0, 45.0), CpuUse(90.0, 90.0)], ids=str
)
def test_nobody_is_asked_who_could_not_bear_it(cpu: CpuUse | None) -> None:
    """With 45 % for one core of load a second one would make it 90 %."""
    shell, _ = running({"w1": 1, "w2": 1}, cpu=cpu)
    assert not lose(shell, "w2")
    shell.cpu["w1"] = IDLE
    shell.wait(10.0)
    [again] = shell.dispatched()
    assert again.worker == "w1"


def test_one_process_of_many_may_be_too_busy() -> None:
    """Four cores at 60 %: with one more the machine has 75 %, and a process would have 120 %."""
    shell, _ = running({"w1": 4, "w2": 1}, cpu=CpuUse(60.0, 60.0))
    assert not lose(shell, "w2")
    shell.cpu["w1"] = CpuUse(60.0, 39.0)
    shell.wait(10.0)
    assert len(shell.dispatched()) == 1


def test_what_is_taken_counts_before_it_shows() -> None:
    """Two parts are lost: the survivor could bear one more, not two."""
    shell, _ = running({"w1": 1, "w2": 1, "w3": 1}, cpu=CpuUse(30.0, 30.0))
    shell.die("w2")
    shell.die("w3")
    shell.wait(9.6)
    assert len(shell.dispatched()) == 1


def test_a_worker_that_has_just_begun_is_not_asked() -> None:
    """Its CPU tells nothing of what it has to do yet."""
    shell, _ = running({"w1": 1, "w2": 1})
    shell.die("w1")
    shell.die("w2")
    shell.wait(UNTIL_KNOWN_S)
    shell.register("w3", 1)
    shell.cpu["w3"] = IDLE
    [first] = shell.prepare_all()
    assert first.worker == "w3"
    shell.wait(2.0)
    assert not shell.dispatched()
    shell.wait(3.0)
    assert [place.slots for place in shell.dispatched()] == [first.slots]


def test_a_degraded_worker_is_not_asked() -> None:
    shell, _ = running({"w1": 1, "w2": 1})
    shell.degraded.add("w1")
    assert not lose(shell, "w2")


def test_one_that_gives_cores_back_shares_none() -> None:
    """Nobody knows which of its cores are still its own."""
    shell, places = running({"w1": 2, "w2": 1})
    kept = next(place for place in places if place.worker == "w1")
    worker = shell.jobs.pool.workers["w1"]
    shell.jobs.pool.cores_done(worker, kept, 1)
    shell.submit(needs(peak_vus=1), job_id="j2")
    [other] = shell.prepare_all()
    assert other.worker == "w1"
    assert not lose(shell, "w2")
    assert free(shell)["w1"] == 0


def test_a_worker_that_does_not_run_the_job_is_not_asked() -> None:
    shell, _ = running({"w1": 1, "w2": 1})
    shell.register("w3", 1)
    shell.cpu["w3"] = CpuUse(1.0, 1.0)
    shell.submit(needs(peak_vus=1), job_id="j2")
    assert [place.worker for place in shell.prepare_all()] == ["w3"]
    [again] = lose(shell, "w2")
    assert again.worker == "w1"


def test_moving_only_waits_for_a_free_core() -> None:
    shell, _ = running({"w1": 1, "w2": 1}, lost_load="move")
    assert not lose(shell, "w2")
    shell.wait(5.0)
    assert not shell.dispatched()
    shell.register("w3", 1)
    [again] = shell.dispatched()
    assert again.worker == "w3"


def test_dropping_gives_it_up_at_once() -> None:
    shell, places = running({"w1": 1, "w2": 1}, lost_load="drop")
    shell.register("w3", 1)
    assert not lose(shell, "w2")
    [given_up] = shell.records(GivenUp)
    assert "drop" in given_up.reason
    shell.end(next(place for place in places if place.worker == "w1"))
    assert shell.job().status == "completed"
    [sentence] = sentences(shell.job())
    assert sentence == "load: worker w2 lost at 41 s (1 of 2 cores), " + given_up.reason
    assert coverage(shell.job()) == pytest.approx(1 - 19 / 60 / 2)


def test_what_is_no_test_is_never_dropped() -> None:
    shell, _ = running({"w1": 1}, needs(is_test=False, limit_s=900.0), lost_load="drop")
    shell.die("w1")
    shell.register("w2", 1)
    shell.wait(UNTIL_KNOWN_S)
    [again] = shell.dispatched()
    assert again.worker == "w2"


def test_an_exclusive_test_shares_its_cores_with_itself() -> None:
    shell, places = running({"w1": 1, "w2": 1}, needs(priority="exclusive"))
    kept = next(place for place in places if place.worker == "w1")
    [again] = lose(shell, "w2")
    assert again.slots == kept.slots


def test_before_the_load_begins_the_workflow_is_placed_again() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 1)
        shell.cpu[name] = IDLE
    shell.submit()
    kept = next(place for place in shell.dispatched() if place.worker == "w1")
    shell.prepare(kept)
    shell.die("w2")
    shell.wait(20.0)
    assert not [r for r in shell.records(Dispatched) if r.replaces]
    assert shell.records(Returned)


def test_a_worker_that_refuses_is_not_asked_for_ever() -> None:
    shell, _ = running(
        {"w1": 1, "w2": 1}, needs(planned_s=None, limit_s=9_000.0), timeout_s=9_000.0
    )
    shell.die("w2")
    refused = 0
    for _ in range(120):
        shell.wait(1.0)
        for place in shell.dispatched():
            refused += 1
            answer = shell.jobs.dispatch_answered(
                shell.now, place, False, no_room=True, reason="full", free=0
            )
            shell.carry(answer)
    assert refused == REFUSALS_MAX
    shell.register("w3", 1)
    [again] = shell.dispatched()
    assert again.worker == "w3"


def test_retries_are_limited() -> None:
    workers = {f"w{number}": 1 for number in range(1, 7)}
    shell, [place, *_] = running(workers, needs(limit_s=900.0, planned_s=600.0))
    attempts = [1]
    while True:
        moved = [p for p in lose(shell, place.worker) if p.part == place.part]
        if not moved:
            break
        [place] = moved
        attempts.append(place.fence.attempt)
    assert attempts == list(range(1, 2 + shell.jobs.settings.retries_max))
    assert ("no retry is left", place.part) in {(r.reason, r.part) for r in shell.records(GivenUp)}


def test_lost_together_they_get_cores_of_their_own_where_there_are_some() -> None:
    shell, _ = running({"w1": 1, "w2": 1})
    lose(shell, "w2")
    shell.register("w3", 2)
    shell.die("w1")
    shell.wait(UNTIL_KNOWN_S)
    again = shell.dispatched()
    assert {place.worker for place in again} == {"w3"}
    assert len({place.slots for place in again}) == len(again) == 2


def test_a_piece_that_is_given_back_is_missing_until_it_goes_on() -> None:
    shell, _ = running({"w1": 1, "w2": 1, "big": 2})
    shell.die("big")
    shell.wait(UNTIL_KNOWN_S)
    first, second = shell.dispatched()
    shell.prepare(first)
    shell.carry(shell.jobs.dispatch_answered(shell.now, second, False, no_room=True, reason="full"))
    facts = losses(shell.job())
    assert {fact.worker: fact.cores for fact in facts} == {"big": 1}
    assert sorted(fact.resumed_at_s is None for fact in facts) == [False, True]
    shell.wait(30.0)
    assert [place.part for place in shell.dispatched()] == [second.part]
    assert all(fact.resumed_at_s is not None for fact in losses(shell.job()))
    assert sum(fact.cores for fact in losses(shell.job())) == 2


def test_the_timeline_tells_the_loss_and_who_took_over() -> None:
    shell, _ = running({"w1": 1, "w2": 1})
    lose(shell, "w2")
    marks = shell.job().marks
    assert [mark.text for mark in marks] == [
        "worker w2 lost, 1 of 2 cores",
        "lost load taken over by w1, sharing cores",
    ]
    assert marks[0].at_s == shell.lost_at_s
    assert marks[1].at_s == shell.records(Dispatched)[-1].placements[0].resume_at_s


def test_what_came_back_in_pieces_is_told_once() -> None:
    shell, _ = running({"w1": 1, "w2": 1, "big": 4})
    lose(shell, "big")
    [sentence] = sentences(shell.job())
    assert "worker big lost at 41 s (4 of 6 cores), its load went on elsewhere" in sentence

"""Each illness by its name."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import Job, JobState, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules.schedule import Schedule, ScheduleDefinition
from hyperscale.scheduler.store.types import Counts
from hyperscale.scheduler.telemetry.doctor import Facts, Severity, diagnose
from hyperscale.scheduler.worker.registration import Worker, WorkerState

NOW = 1_700_000_000 * SECOND
SPEC = JobSpec(name="probe", kind="http")
WORKER = Worker(id="w-1", instance="i", capacity=1, started_at=NOW, seen_at=NOW)
COUNTS = Counts(states={}, ready=0, delayed=0, waiting=0, schedules=0, letters=0)


def job(**changes: Any) -> Job:
    return replace(new_job("j-1", SPEC, NOW), **changes)


def names(**facts: Any) -> list[str]:
    healthy: dict[str, Any] = {
        "leader": "node-1",
        "degraded": "",
        "pending": (),
        "held": (),
        "schedules": (),
        "workers": (WORKER,),
    }
    return [one.name for one in diagnose(Facts(now=NOW, counts=COUNTS, **(healthy | facts)))]


def test_nothing_is_wrong() -> None:
    assert names(pending=(job(),)) == []


def test_stuck() -> None:
    claimed = job(state=JobState.CLAIMED, claimed_at=NOW - 61 * SECOND)
    lapsed = job(state=JobState.EXECUTING, lease_until=NOW - 31 * SECOND)
    moving = job(
        state=JobState.EXECUTING, started_at=NOW - 9 * SECOND, lease_until=NOW + SECOND,
        spec=replace(SPEC, stall_timeout_s=10.0),
    )  # fmt: skip
    assert names(held=(claimed,)) == ["stuck"]
    assert names(held=(lapsed,)) == ["stuck"]
    assert names(held=(moving,)) == []
    assert names(held=(replace(moving, started_at=NOW - 11 * SECOND),)) == ["stuck"]


def test_bouncing() -> None:
    assert names(pending=(job(claims_lost=3),)) == ["bouncing"]


def test_drifting() -> None:
    definition = ScheduleDefinition(name="s", job=SPEC, cron="* * * * *")
    late = Schedule(
        id="s-1", definition=definition, created_at=0, updated_at=0, cursor=0,
        next_at=NOW - 6 * SECOND,
    )  # fmt: skip
    assert names(schedules=(late,)) == ["drifting"]
    assert names(schedules=(replace(late, next_at=NOW - 4 * SECOND),)) == []


def test_starving_and_unrunnable() -> None:
    assert names(pending=(job(due_at=NOW - 1801 * SECOND),)) == ["starving"]
    picky = job(spec=replace(SPEC, capabilities=("gpu",)))
    assert names(pending=(picky,)) == ["unrunnable"]
    assert names(pending=(picky,), workers=(replace(WORKER, capabilities=("gpu",)),)) == []
    asks_only = replace(WORKER, metadata={"kinds": "python,command"})
    assert names(pending=(job(),), workers=(asks_only,)) == ["unrunnable"]
    assert names(pending=(job(),), workers=(asks_only, WORKER)) == []


def test_skewed_and_silent() -> None:
    assert names(workers=(replace(WORKER, seen_at=NOW + 2 * SECOND),)) == ["skewed"]
    assert names(workers=(replace(WORKER, seen_at=NOW - 31 * SECOND),)) == ["silent"]


def test_nobody_there() -> None:
    gone = replace(WORKER, state=WorkerState.UNAVAILABLE)
    found = diagnose(
        Facts(
            now=NOW, leader="", degraded="no store", counts=COUNTS, pending=(), held=(),
            schedules=(), workers=(gone,),
        )
    )  # fmt: skip
    assert [one.name for one in found] == ["degraded", "no leader", "no workers"]
    assert {one.severity for one in found} == {Severity.CRITICAL}


def test_unpromoted() -> None:
    assert names(next_due=NOW - 6 * SECOND) == ["unpromoted"]
    assert names(next_due=NOW - 4 * SECOND) == []
    assert names(next_due=NOW + 60 * SECOND) == []


def test_exhausted() -> None:
    late, full = job(due_at=NOW - 61 * SECOND), replace(WORKER, state=WorkerState.BUSY)
    assert names(pending=(late,), workers=(full,)) == ["exhausted"]
    assert names(pending=(late,), workers=(full, WORKER)) == []
    elsewhere = replace(WORKER, metadata={"kinds": "python"})
    assert names(pending=(late,), workers=(full, elsewhere)) == ["exhausted"]
    assert names(pending=(job(due_at=NOW - 59 * SECOND),), workers=(full,)) == []


def test_retry_storm() -> None:
    again = tuple(job(id=f"j-{n}", retries=1, error="no answer") for n in range(20))
    assert names(pending=again) == ["retry storm"]
    assert names(pending=again[1:]) == []
    assert names(pending=again + tuple(job(id=f"new-{n}") for n in range(20))) == []


def test_set_aside() -> None:
    definition = ScheduleDefinition(name="s", job=SPEC, cron="* * * * *", zone="Mars/Phobos")
    aside = Schedule(id="s-1", definition=definition, created_at=0, updated_at=0, cursor=0)
    assert names(schedules=(aside,)) == ["set aside"]
    assert names(schedules=(replace(aside, definition=replace(definition, paused=True)),)) == []
    over = replace(definition, zone="UTC", end_at=1)
    assert names(schedules=(replace(aside, definition=over),)) == []


def test_most_workers_silent() -> None:
    silent = [replace(WORKER, id=f"w-{n}", seen_at=NOW - 31 * SECOND) for n in range(2)]
    assert names(workers=(*silent, WORKER)) == ["mass silence"]
    assert names(workers=(silent[0], WORKER, replace(WORKER, id="w-9"))) == ["silent"]


def test_many_subjects_are_counted_not_listed() -> None:
    jobs = tuple(job(id=f"j-{number}", claims_lost=3) for number in range(8))
    (found,) = diagnose(
        Facts(
            now=NOW, leader="n", degraded="", counts=COUNTS, pending=jobs, held=(), schedules=(),
            workers=(WORKER,),
        )
    )  # fmt: skip
    assert found.sentence.endswith(": j-0, j-1, j-2, j-3, j-4 and 3 more")
    assert len(found.subjects) == 8

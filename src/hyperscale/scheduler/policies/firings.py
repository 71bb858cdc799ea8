"""From decided ticks to what the store writes."""

from __future__ import annotations

from collections.abc import Iterable

from hyperscale.scheduler.model.firing import Advance, Firing
from hyperscale.scheduler.model.instants import Instant, after
from hyperscale.scheduler.model.job import Job, new_job
from hyperscale.scheduler.model.schedule import Overlap, Schedule
from hyperscale.scheduler.policies.chance import chance
from hyperscale.scheduler.policies.identity import instance_id
from hyperscale.scheduler.policies.ticks import Plan


def instance(schedule: Schedule, tick: Instant, now: Instant) -> Job:
    """The job of one tick: the same id and the same jitter, whoever makes it and when."""
    definition = schedule.definition
    jitter_s = definition.jitter_s
    wait_s = chance("jitter", schedule.id, tick) * jitter_s if jitter_s else 0.0
    job_id = instance_id(schedule.id, tick)
    return new_job(
        job_id,
        definition.job,
        now,
        due_at=after(tick, wait_s),
        schedule_id=schedule.id,
        tick=tick,
        correlation_id=job_id,
    )


def planned(schedule: Schedule, plan: Plan, now: Instant) -> Firing:
    return Firing(
        schedule_id=schedule.id,
        version=schedule.version,
        advance=Advance(schedule.cursor, plan.cursor, plan.next_at),
        jobs=tuple(instance(schedule, tick, now) for tick in plan.run),
        missed=plan.missed,
    )


def aside(
    schedule: Schedule, ticks: Iterable[Instant], now: Instant, overlap: Overlap | None = None
) -> Firing:
    """A backfill, or with `[now]` a run by hand: the order of ticks goes on undisturbed."""
    return Firing(
        schedule_id=schedule.id,
        version=schedule.version,
        advance=None,
        jobs=tuple(instance(schedule, tick, now) for tick in ticks),
        overlap=overlap,
    )

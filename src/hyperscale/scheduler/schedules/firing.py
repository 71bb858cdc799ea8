"""From schedules that are due to what the store shall write, a slice at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.instants import SECOND, Instant, after
from hyperscale.scheduler.queue.identity import instance_id, jitter
from hyperscale.scheduler.queue.job import Job, new_job
from hyperscale.scheduler.schedules.schedule import Advance, Firing, Overlap, Schedule
from hyperscale.scheduler.schedules.ticks import Plan, plan, ticks_of


def instance(schedule: Schedule, tick: Instant, now: Instant) -> Job:
    """The job of one tick: the same id and the same jitter, whoever makes it and when."""
    definition = schedule.definition
    jitter_s = definition.jitter_s
    wait_s = jitter("jitter", schedule.id, tick) * jitter_s if jitter_s else 0.0
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


WALKED_MAX: Final = 2000
"""Ticks after which a slice ends, some 15 ms; one schedule alone may add `ticks.SCAN_MAX` to them.
After a long absence a thousand schedules have millions, and a lease must be renewed meanwhile."""


class Decided(NamedTuple):
    firings: list[Firing]
    """Empty: no schedule is left."""
    broken: dict[str, str]
    """Schedules whose ticks cannot be computed (a zone that is gone), and why: they are set aside
    until somebody edits them, so that they cannot hold up the others."""
    lateness_s: float
    """Of the latest tick within its grace; what was missed is counted elsewhere."""


def decide(schedules: Iterator[Schedule], now: Instant) -> Decided:
    """Takes as many as make a slice; call again for the rest."""
    firings: list[Firing] = []
    broken: dict[str, str] = {}
    lateness = walked = 0
    for schedule in schedules:
        try:
            due = plan(schedule, ticks_of(schedule.definition), now)
        except HyperscaleError as error:
            broken[schedule.id] = error.message
            aside = Advance(schedule.cursor, schedule.cursor, None)
            firings.append(Firing(schedule_id=schedule.id, version=schedule.version, advance=aside))
            continue
        firings.append(planned(schedule, due, now))
        grace = schedule.definition.misfire.grace_s * SECOND
        for tick in due.run:
            if lateness < now - tick <= grace:
                lateness = now - tick
        walked += len(due.run) + due.missed
        if due.more or walked >= WALKED_MAX:
            break
    return Decided(firings, broken, lateness / SECOND)

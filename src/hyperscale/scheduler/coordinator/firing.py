"""From schedules that are due to what the store shall write, a slice at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.coordinator.timetable import ticks_of
from hyperscale.scheduler.model.firing import Advance, Firing
from hyperscale.scheduler.model.instants import SECOND, Instant
from hyperscale.scheduler.model.schedule import Schedule
from hyperscale.scheduler.policies.firings import planned
from hyperscale.scheduler.policies.ticks import plan

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

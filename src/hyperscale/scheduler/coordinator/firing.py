"""From schedules that are due to what the store shall write. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.coordinator.timetable import ticks_of
from hyperscale.scheduler.model.firing import Advance, Firing
from hyperscale.scheduler.model.instants import SECOND, Instant
from hyperscale.scheduler.model.schedule import Schedule
from hyperscale.scheduler.policies.firings import planned
from hyperscale.scheduler.policies.ticks import plan


class Decided(NamedTuple):
    firings: list[Firing]
    broken: dict[str, str]
    """Schedules whose ticks cannot be computed (a zone that is gone), and why: they are set aside
    until somebody edits them, so that they cannot hold up the others."""
    lateness_s: float
    """Of the latest tick within its grace; what was missed is counted elsewhere."""


def decide(schedules: Iterable[Schedule], now: Instant) -> Decided:
    firings: list[Firing] = []
    broken: dict[str, str] = {}
    lateness = 0
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
    return Decided(firings, broken, lateness / SECOND)

"""Which ticks a schedule has, which of them are due, and what becomes of those that were missed.

Ticks are walked strictly forward from the cursor, so a clock that steps back finds nothing to do
and a change of leader finds exactly what is left. The walk is bounded: after a long absence a
plan covers part of the way and says `more`. Definitions are parsed once, not once per tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import Instant, after, instant_of, moment_of
from hyperscale.scheduler.schedules.cron import Cron, CronError, DstPolicy
from hyperscale.scheduler.schedules.cron.zones import offsets_of
from hyperscale.scheduler.schedules.schedule import (
    RUN_ALL_CAP_MAX,
    Misfire,
    MisfirePolicy,
    Schedule,
    ScheduleDefinition,
)

SCAN_MAX: Final = 10_000
RUNS_MAX: Final = 1000
"""Ticks run by one plan, and by one backfill."""
assert RUN_ALL_CAP_MAX < SCAN_MAX


class Ticks(Protocol):
    def next(self, after: Instant) -> Instant | None:
        """The first tick strictly after."""
        ...


class CronLike(Protocol):
    def next(self, after: datetime, zone: Any, policy: Any) -> datetime | None: ...


class CronTicks:
    """A parsed cron expression in its zone. It remembers its last answer: of ten thousand schedules
    with one expression all ask for the tick after the same one."""

    def __init__(self, cron: CronLike, zone: Any, policy: Any) -> None:
        self._cron = cron
        self._zone = zone
        self._policy = policy
        self._last: tuple[Instant, Instant | None] | None = None

    def next(self, after: Instant) -> Instant | None:
        last = self._last
        if last is not None and last[0] == after:
            return last[1]
        moment = self._cron.next(moment_of(after), self._zone, self._policy)
        tick = None if moment is None else instant_of(moment)
        self._last = (after, tick)
        return tick


class OneTick:
    """Of a schedule with `run_at`."""

    def __init__(self, at: Instant) -> None:
        self._at = at

    def next(self, after: Instant) -> Instant | None:
        return self._at if self._at > after else None


class Plan(NamedTuple):
    run: tuple[Instant, ...]
    missed: int
    cursor: Instant
    next_at: Instant | None
    more: bool
    """Ticks before now are still undecided: plan again from the new cursor."""


def next_tick(definition: ScheduleDefinition, ticks: Ticks, behind: Instant) -> Instant | None:
    """The first tick after `behind` within the schedule's start and end."""
    if definition.start_at is not None:
        behind = max(behind, definition.start_at - 1)
    tick = ticks.next(behind)
    if tick is None or (definition.end_at is not None and tick >= definition.end_at):
        return None
    return tick


def upcoming(definition: ScheduleDefinition, ticks: Ticks, behind: Instant) -> Iterator[Instant]:
    tick = next_tick(definition, ticks, behind)
    while tick is not None:
        yield tick
        tick = next_tick(definition, ticks, tick)


def first_cursor(definition: ScheduleDefinition, now: Instant) -> Instant:
    """Of a new schedule: nothing before now counts, except a `run_at` that has just gone by."""
    return now if definition.run_at is None else min(now, definition.run_at - 1)


def plan(schedule: Schedule, ticks: Ticks, now: Instant) -> Plan:
    definition = schedule.definition
    if definition.paused:
        return Plan((), 0, schedule.cursor, None, more=False)
    due: list[Instant] = []
    following = _first(schedule, ticks)
    while following is not None and following <= now and len(due) < SCAN_MAX:
        due.append(following)
        following = next_tick(definition, ticks, following)
    more = following is not None and following <= now
    on_time_from = after(now, -definition.misfire.grace_s)
    late = [tick for tick in due if tick < on_time_from]
    on_time = due[len(late) :]
    if more and not on_time:
        return _pass_over(due, following, definition.misfire)
    wanted = _caught_up(late, definition.misfire)
    missed = len(late) - len(wanted)
    run = wanted + on_time
    if len(run) > RUNS_MAX:
        return Plan(tuple(run[:RUNS_MAX]), missed, run[RUNS_MAX - 1], run[RUNS_MAX], more=True)
    return Plan(tuple(run), missed, due[-1] if due else schedule.cursor, following, more)


def _first(schedule: Schedule, ticks: Ticks) -> Instant | None:
    """Stored with the cursor, unless an edit under another clock left it behind."""
    if schedule.next_at is not None and schedule.next_at > schedule.cursor:
        return schedule.next_at
    return next_tick(schedule.definition, ticks, schedule.cursor)


def count_between(
    definition: ScheduleDefinition, ticks: Ticks, behind: Instant, until: Instant
) -> int:
    """Ticks in (behind, until], at most SCAN_MAX: what a pause skipped."""
    count = 0
    for tick in upcoming(definition, ticks, behind):
        if tick > until or count == SCAN_MAX:
            break
        count += 1
    return count


def backfill(
    definition: ScheduleDefinition, ticks: Ticks, start: Instant, end: Instant
) -> tuple[Instant, ...]:
    """Every tick in [start, end)."""
    found: list[Instant] = []
    for tick in upcoming(definition, ticks, start - 1):
        if tick >= end:
            break
        if len(found) == RUNS_MAX:
            raise InvalidJob(
                f"more than {RUNS_MAX} ticks lie in this range", "backfill it in parts"
            )
        found.append(tick)
    return tuple(found)


def _caught_up(late: list[Instant], misfire: MisfirePolicy) -> list[Instant]:
    kept = _kept(misfire)
    return late[-kept:] if kept else []


def _pass_over(due: list[Instant], following: Instant | None, misfire: MisfirePolicy) -> Plan:
    """All of `due` are late and more follow. The newest late ones may be wanted, and whether these
    are the newest is not known yet: they stay for the next plan."""
    gone = due[: len(due) - _kept(misfire)]
    rest = due[len(gone) :]
    return Plan((), len(gone), gone[-1], rest[0] if rest else following, more=True)


def _kept(misfire: MisfirePolicy) -> int:
    if misfire.kind is Misfire.SKIP:
        return 0
    return 1 if misfire.kind is Misfire.RUN_ONCE else misfire.cap


def ticks_of(definition: ScheduleDefinition) -> Ticks:
    """Raises CronError, BadInput (zone) or InvalidJob (DST policy)."""
    if definition.run_at is not None:
        _policy(definition.dst)
        offsets_of(definition.zone)
        return OneTick(definition.run_at)
    return _cron_ticks(definition.cron, definition.zone, definition.dst)


@lru_cache(maxsize=20_000)
def _cron_ticks(text: str, zone: str, dst: str) -> Ticks:
    cron = Cron.parse(text)
    # The expression's own zone suffix counts unless the schedule names another than the default.
    own = cron.fields.timezone
    return CronTicks(cron, own if own is not None and zone == "UTC" else zone, _policy(dst))


def zone_of(definition: ScheduleDefinition) -> str:
    """By which its ticks are counted; an expression may end with one."""
    with suppress(CronError):
        if definition.cron and definition.zone == "UTC":
            return _suffix(definition.cron) or "UTC"
    return definition.zone


def check_zone(definition: ScheduleDefinition) -> None:
    """Raises InvalidJob when its expression ends with another one, CronError."""
    own = _suffix(definition.cron) if definition.cron else None
    if own is not None and definition.zone not in ("UTC", own):
        raise InvalidJob(
            f"the expression is in {own}, the schedule in {definition.zone}",
            "leave one of them out",
        )


@lru_cache(maxsize=20_000)
def _suffix(cron: str) -> str | None:
    return Cron.parse(cron).fields.timezone


def _policy(dst: str) -> DstPolicy:
    try:
        return DstPolicy(dst)
    except ValueError:
        near = get_close_matches(dst.lower(), list(DstPolicy), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(DstPolicy)}"
        raise InvalidJob(f"{dst!r} is not a DST policy", hint) from None


def preview(definition: ScheduleDefinition, behind: Instant, count: int) -> list[Instant]:
    return list(islice(upcoming(definition, ticks_of(definition), behind), count))

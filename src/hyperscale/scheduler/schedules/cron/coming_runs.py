"""The coming runs as people read them: local time, offset, and what a change of clocks did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from hyperscale.scheduler.schedules.cron.expression import Cron, DstPolicy
from hyperscale.scheduler.schedules.cron.zones import END_S, FIRST_S, Offsets, Span, offsets_of

SAME_DAY = "%H:%M"
OTHER_DAY = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class Run:
    """`note` is empty unless the wall time is missing or comes twice; `change` says when and how
    the clocks were last changed since the run before, if this run has another offset."""

    instant: datetime
    local: datetime
    note: str
    change: str


def coming_runs(
    cron: Cron, after: datetime, zone: str, count: int, policy: DstPolicy = DstPolicy.DEBIAN
) -> list[Run]:
    offsets = offsets_of(zone)
    runs, previous = [], after
    for instant in islice(cron.iterate(after, zone, policy), count):
        second = int(instant.timestamp())
        runs.append(
            Run(
                instant,
                instant.astimezone(offsets.zone),
                _note(cron, offsets, second),
                _change(offsets, int(previous.timestamp()), second),
            )
        )
        previous = instant
    return runs


def _note(cron: Cron, offsets: Offsets, second: int) -> str:
    span = offsets.at(second)
    wall = _wall(second + span.offset)
    gap = span.offset - span.before
    if second - span.start < gap and not cron.matches(wall):
        meant = wall - timedelta(seconds=gap)
        return f"moved: {_clock(meant, wall)} does not exist"
    if second - span.start < -gap:
        return f"second {wall.strftime(SAME_DAY)} of that day"
    following = _following(offsets, span)
    if following is not None and second + span.offset >= following.start + following.offset:
        return f"first {wall.strftime(SAME_DAY)} of that day"
    return ""


def _following(offsets: Offsets, span: Span) -> Span | None:
    """The next span, if a change separates the two."""
    if span.end >= END_S:
        return None
    following = offsets.at(span.end)
    return following if following.start == span.end else None


def _change(offsets: Offsets, since: int, until: int) -> str:
    """Bounded: the spans between two runs, at most 24 days long each, over the search's horizon."""
    if offsets.at(max(since, FIRST_S)).offset == offsets.at(until).offset:
        return ""
    span = offsets.at(until)
    while span.before == span.offset:
        span = offsets.at(span.low - 1)
    before, behind = _wall(span.start + span.before), _wall(span.start + span.offset)
    width = _width(abs(span.offset - span.before))
    return (
        f"clocks go {'forward' if span.offset > span.before else 'back'} {width}: "
        f"{before.strftime(f'%a {OTHER_DAY}')} → {_clock(behind, before)}"
    )


def _width(seconds: int) -> str:
    units = ((seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in units if number)


def _clock(wall: datetime, beside: datetime) -> str:
    return wall.strftime(SAME_DAY if wall.date() == beside.date() else OTHER_DAY)


def _wall(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None)

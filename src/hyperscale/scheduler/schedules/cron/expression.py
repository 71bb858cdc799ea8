"""A cron expression that has been read: the next and the previous instant at which it is due.

Instants come in and go out; no clock is read. The search walks over the zone's spans of constant
offset. Within a span it looks for matching wall-clock seconds, then subtracts the offset. What a
change of offset does to wall times that are left out or repeated is the policy's business:

    policy    left out (clock goes forward)      repeated (clock goes back)
    debian    due later by the width of the gap  due the first time only
    skip      not due                            due the first time only
    literal   not due                            due both times

This holds for fixed hours. An expression for every hour (or every n-th: `*/2`) follows elapsed time
under each policy, or `*/15 * * * *` would fall silent for an hour in autumn.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from hyperscale.errors import BadInput
from hyperscale.scheduler.schedules.cron.calendar import DAY_S, Calendar
from hyperscale.scheduler.schedules.cron.fields import WITH_SECONDS, mask_of
from hyperscale.scheduler.schedules.cron.zones import END_S, FIRST_S, Offsets, Span, offsets_of

# 29 February is up to 8 years away. A policy that drops wall times may drop the same date for
# longer: Cairo left out 01:00 to 02:00 of 1 May from 1959 to 1981, 23 years, the most there are.
HORIZON_YEARS = 40
HORIZON_S = HORIZON_YEARS * 366 * 86_400

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DstPolicy(StrEnum):
    DEBIAN = "debian"
    LITERAL = "literal"
    SKIP = "skip"


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The expression as it is stored: sorted values, and what their lists cannot tell any more.

    A day field that is a bare star leaves the choice of days to the other one, while `1-31` does
    not; `hourly` is true for hours that begin with a star or name all 24.
    """

    original: str
    seconds: tuple[int, ...] | None  # None: five fields, on the full minute
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days_of_month: tuple[int, ...]
    months: tuple[int, ...]
    days_of_week: tuple[int, ...]
    any_day_of_month: bool
    any_day_of_week: bool
    hourly: bool
    timezone: str | None = None

    def columns(self) -> tuple[tuple[int, ...], ...]:
        """In the order of `fields.WITH_SECONDS`."""
        return (
            (0,) if self.seconds is None else self.seconds,
            self.minutes,
            self.hours,
            self.days_of_month,
            self.months,
            self.days_of_week,
        )


class Cron:
    """Immutable and safe to share. Equal when it is written and read the same."""

    __slots__ = ("_calendar", "fields")

    def __init__(self, fields: Fields) -> None:
        """From stored fields; `Cron.parse` is the way from text."""
        for field, values in zip(WITH_SECONDS, fields.columns(), strict=True):
            if not values or not all(field.low <= value <= field.high for value in values):
                raise BadInput(f"the stored {field.name} of {fields.original!r} is {values}")
        self.fields = fields
        seconds, minutes, hours, days, months, weekdays = map(mask_of, fields.columns())
        self._calendar = Calendar(
            seconds,
            minutes,
            hours,
            None if fields.any_day_of_month else days,
            months,
            None if fields.any_day_of_week else weekdays,
        )

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Raises CronError with every problem; `check` gives warnings too and never raises."""
        from hyperscale.scheduler.schedules.cron.parser import parse

        return parse(text)

    def __repr__(self) -> str:
        return f"Cron({self.fields.original!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cron) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def next(
        self,
        after: datetime,
        zone: str | ZoneInfo | None = None,
        policy: DstPolicy = DstPolicy.DEBIAN,
    ) -> datetime | None:
        """The first instant strictly after an aware one, in UTC.

        Without a zone, the expression's own one counts, else UTC. None when nothing is due within
        HORIZON_YEARS or before the year 9999.
        """
        offsets, literal = self._rules(zone, policy)
        here = max(_seconds(after) + 1, FIRST_S)
        until = min(here + HORIZON_S, END_S)
        while here < until:
            span = offsets.at(here)
            found = self._first(span, here, literal, policy)
            if found is not None:
                return _EPOCH + timedelta(seconds=found)
            # No zone is a whole day off UTC, so nothing is due a day before its wall time.
            wall = self._calendar.first(span.end - DAY_S, until + DAY_S)
            if wall is None:
                return None
            here = max(span.end, wall - DAY_S)
        return None

    def previous(
        self,
        before: datetime,
        zone: str | ZoneInfo | None = None,
        policy: DstPolicy = DstPolicy.DEBIAN,
    ) -> datetime | None:
        """The last instant strictly before an aware one; otherwise as `next`."""
        offsets, literal = self._rules(zone, policy)
        end = min(_seconds(before) + (before.microsecond > 0), END_S)
        until = max(end - HORIZON_S, FIRST_S)
        while end > until:
            span = offsets.at(end - 1)
            found = self._last(span, end, literal, policy)
            if found is not None:
                return _EPOCH + timedelta(seconds=found)
            wall = self._calendar.last(until - DAY_S, span.low + DAY_S)
            if wall is None:
                return None
            end = min(span.low, wall + DAY_S)
        return None

    def iterate(
        self,
        after: datetime,
        zone: str | ZoneInfo | None = None,
        policy: DstPolicy = DstPolicy.DEBIAN,
    ) -> Iterator[datetime]:
        """Every instant strictly after, for as long as there is one."""
        due = self.next(after, zone, policy)
        while due is not None:
            yield due
            due = self.next(due, zone, policy)

    def matches(self, wall: datetime) -> bool:
        """Whether a wall-clock time, given without a zone, is one of the expression's."""
        second = _seconds(wall.replace(tzinfo=UTC))
        return self._calendar.first(second, second + 1) is not None

    def _rules(self, zone: str | ZoneInfo | None, policy: DstPolicy) -> tuple[Offsets, bool]:
        if zone is None:
            zone = self.fields.timezone or "UTC"
        offsets = offsets_of(zone if isinstance(zone, str) else zone.key)
        return offsets, self.fields.hourly or policy == DstPolicy.LITERAL

    def _first(self, span: Span, here: int, literal: bool, policy: DstPolicy) -> int | None:
        if literal or span.before == span.offset:
            found = self._calendar.first(here + span.offset, span.end + span.offset)
            return None if found is None else found - span.offset
        hits = []
        for low, high, shift in _pieces(span, policy):
            found = self._calendar.first(max(low, here + shift), high)
            if found is not None:
                hits.append(found - shift)
        return min(hits, default=None)

    def _last(self, span: Span, end: int, literal: bool, policy: DstPolicy) -> int | None:
        if literal or span.before == span.offset:
            found = self._calendar.last(span.low + span.offset, end + span.offset)
            return None if found is None else found - span.offset
        hits = []
        for low, high, shift in _pieces(span, policy):
            found = self._calendar.last(max(low, span.low + shift), min(high, end + shift))
            if found is not None:
                hits.append(found - shift)
        return max(hits, default=None)


def _pieces(span: Span, policy: DstPolicy) -> list[tuple[int, int, int]]:
    """The wall times due in a span that begins with a change: from, to, and what to subtract.

    No gap or repetition is longer than the span it opens (a test looks at every zone).
    """
    start, end, offset, before, _ = span
    if before > offset:
        return [(start + before, end + offset, offset)]
    pieces = [(start + offset, end + offset, offset)]
    if policy == DstPolicy.DEBIAN:
        pieces.append((start + before, start + offset, before))
    return pieces


def _seconds(instant: datetime) -> int:
    """Whole seconds since 1970; a fraction is cut off towards the past."""
    if instant.tzinfo is None:
        raise BadInput(
            f"{instant.isoformat()} has no time zone", "give an instant, such as 2024-03-10T07:00Z"
        )
    delta = instant - _EPOCH
    return delta.days * 86_400 + delta.seconds

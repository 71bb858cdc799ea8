"""The wall clock as integers: which seconds of local time match, and the first or last of a span.

A wall second counts from 1970-01-01 00:00 on a clock that knows no zone. The days of a month are
one int, made from the days of the month and a repeated pattern of the week, so a month costs a few
operations and a month that cannot match costs none.

The search ends: it moves by whole months and stops behind the end of the span it was given.
"""

from __future__ import annotations

from datetime import date

DAY_S = 86_400
HOUR_S = 3_600
MINUTE_S = 60
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
EPOCH_WEEKDAY = 4  # a Thursday, counted from Sunday
YEAR_MAX = 9999

_MONTH_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SIX_WEEKS = sum(1 << 7 * week for week in range(6))  # 31 days beginning on any day of the week


class Calendar:
    """Sets are ints as in `fields`. Both day sets restricted: a day needs to be in one of them."""

    __slots__ = (
        "_day_bits",
        "_every_day",
        "_first_s",
        "_hour_first_s",
        "_hour_last_s",
        "_hours",
        "_last_s",
        "_minutes",
        "_month_first",
        "_month_last",
        "_months",
        "_second_first",
        "_second_last",
        "_seconds",
        "_week_bits",
    )

    def __init__(
        self,
        seconds: int,
        minutes: int,
        hours: int,
        days: int | None,
        months: int,
        weekdays: int | None,
    ) -> None:
        """`None` for a day set that restricts nothing."""
        self._seconds, self._minutes, self._hours, self._months = seconds, minutes, hours, months
        self._every_day = days is None and weekdays is None and months == 0b1_1111_1111_1110
        any_day = days is None and weekdays is None
        self._day_bits = (1 << 31) - 1 if any_day else (days or 0) >> 1
        self._week_bits = (weekdays or 0) * _SIX_WEEKS
        self._second_first, self._second_last = _lowest(seconds), seconds.bit_length() - 1
        self._hour_first_s = _lowest(minutes) * MINUTE_S + self._second_first
        self._hour_last_s = (minutes.bit_length() - 1) * MINUTE_S + self._second_last
        self._first_s = _lowest(hours) * HOUR_S + self._hour_first_s
        self._last_s = (hours.bit_length() - 1) * HOUR_S + self._hour_last_s
        self._month_first, self._month_last = _lowest(months), months.bit_length() - 1

    def first(self, low: int, high: int) -> int | None:
        """The first matching second of low <= second < high."""
        day, clock = divmod(low, DAY_S)
        if clock <= self._last_s and (self._every_day or self._day_from(day, day) is not None):
            wall = day * DAY_S + self._clock_from(clock)
        else:
            found = self._day_from(day + 1, high // DAY_S)
            if found is None:
                return None
            wall = found * DAY_S + self._first_s
        return wall if wall < high else None

    def last(self, low: int, high: int) -> int | None:
        """The last matching second of low <= second < high."""
        day, clock = divmod(high - 1, DAY_S)
        if clock >= self._first_s and (self._every_day or self._day_until(day, day) is not None):
            wall = day * DAY_S + self._clock_until(clock)
        else:
            found = self._day_until(day - 1, low // DAY_S)
            if found is None:
                return None
            wall = found * DAY_S + self._last_s
        return wall if wall >= low else None

    def _day_from(self, day: int, until: int) -> int | None:
        if day > until:
            return None
        if self._every_day:
            return day
        then = date.fromordinal(day + EPOCH_ORDINAL)
        year, month, skipped = then.year, then.month, then.day - 1
        month_start = day - skipped
        while month_start <= until:
            if self._months >> month & 1:
                left = self._bits(year, month, month_start) >> skipped
                if left:
                    found = month_start + skipped + _lowest(left)
                    return found if found <= until else None
            later = self._months >> month + 1
            if later:
                month += 1 + _lowest(later)
            elif year == YEAR_MAX:
                return None
            else:
                year, month = year + 1, self._month_first
            skipped = 0
            month_start = date(year, month, 1).toordinal() - EPOCH_ORDINAL
        return None

    def _day_until(self, day: int, since: int) -> int | None:
        if day < since:
            return None
        if self._every_day:
            return day
        then = date.fromordinal(day + EPOCH_ORDINAL)
        year, month = then.year, then.month
        month_start, wanted = day - then.day + 1, (1 << then.day) - 1
        while True:
            if self._months >> month & 1:
                left = self._bits(year, month, month_start) & wanted
                if left:
                    found = month_start + left.bit_length() - 1
                    return found if found >= since else None
            if month_start <= since:
                return None
            earlier = self._months & (1 << month) - 1
            if earlier:
                month = earlier.bit_length() - 1
            elif year == 1:
                return None
            else:
                year, month = year - 1, self._month_last
            wanted = -1
            month_start = date(year, month, 1).toordinal() - EPOCH_ORDINAL

    def _bits(self, year: int, month: int, month_start: int) -> int:
        """The matching days of a month; bit 0 is its first day."""
        length = _MONTH_DAYS[month]
        if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
            length = 29
        week = self._week_bits >> (month_start + EPOCH_WEEKDAY) % 7
        return (self._day_bits | week) & (1 << length) - 1

    def _clock_from(self, clock: int) -> int:
        """The first second of the day from `clock` on; one has to be there."""
        hour, rest = divmod(clock, HOUR_S)
        if self._hours >> hour & 1:
            minute, second = divmod(rest, MINUTE_S)
            if self._minutes >> minute & 1:
                left = self._seconds >> second
                if left:
                    return clock + _lowest(left)
            left = self._minutes >> minute + 1
            if left:
                minute += 1 + _lowest(left)
                return hour * HOUR_S + minute * MINUTE_S + self._second_first
        hour += 1 + _lowest(self._hours >> hour + 1)
        return hour * HOUR_S + self._hour_first_s

    def _clock_until(self, clock: int) -> int:
        """The last second of the day up to `clock`; one has to be there."""
        hour, rest = divmod(clock, HOUR_S)
        if self._hours >> hour & 1:
            minute, second = divmod(rest, MINUTE_S)
            if self._minutes >> minute & 1:
                left = self._seconds & (2 << second) - 1
                if left:
                    return clock - second + left.bit_length() - 1
            left = self._minutes & (1 << minute) - 1
            if left:
                minute = left.bit_length() - 1
                return hour * HOUR_S + minute * MINUTE_S + self._second_last
        hour = (self._hours & (1 << hour) - 1).bit_length() - 1
        return hour * HOUR_S + self._hour_last_s


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1

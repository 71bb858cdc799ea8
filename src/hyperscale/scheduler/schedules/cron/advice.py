"""What an expression means that its author may not: dates that never come, days that add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperscale.scheduler.schedules.cron.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    WEEKDAY,
    Reading,
    Token,
    restricts_nothing,
)
from hyperscale.scheduler.schedules.cron.problems import Kind, Problem

_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_DAY = 1 << 29


def never_due(readings: Sequence[Reading], tokens: Sequence[Token]) -> Iterator[Problem]:
    """Days of the month that none of the months has, with nothing else to choose a day."""
    day, month, weekday = readings[-3:]
    if not restricts_nothing(WEEKDAY, weekday, day) or restricts_nothing(DAY, day, weekday):
        return
    if any(_days(day, number) for number in _months(month)):
        return
    months = _month_list(_months(month))
    yield Problem(
        Kind.SEMANTIC,
        DAY.name,
        tokens[-3].text,
        tokens[-3].position,
        f"it is never due: {months} {'has' if len(_months(month)) == 1 else 'have'} no day "
        f"{tokens[-3].text}",
        _last_days(_months(month)),
    )


def surprises(readings: Sequence[Reading], tokens: Sequence[Token]) -> Iterator[Problem]:
    yield from _either_day(readings, tokens)
    yield from _missing_days(readings, tokens)
    yield from _every_inner(readings, tokens)


def _either_day(readings: Sequence[Reading], tokens: Sequence[Token]) -> Iterator[Problem]:
    day, _, weekday = readings[-3:]
    if restricts_nothing(DAY, day, weekday) or restricts_nothing(WEEKDAY, weekday, day):
        return
    day_token, weekday_token = tokens[-3], tokens[-1]
    for field, reading, token, other in (
        (DAY, day, day_token, weekday_token),
        (WEEKDAY, weekday, weekday_token, day_token),
    ):
        if reading.values == field.everything:
            yield _warning(
                field.name,
                token,
                f"{token.text} names every {field.name}, and a day has to match only one of the "
                f"two: {other.text} restricts nothing",
                f"write * for the {field.name}",
            )
            return
    starred = next((token.text for token in (day_token, weekday_token) if token.text[0] == "*"), "")
    vixie = f"; Vixie cron asks for both, because {starred} begins with a star" if starred else ""
    yield _warning(
        WEEKDAY.name,
        weekday_token,
        f"due on each day that matches {day_token.text} (day of month) or {weekday_token.text} "
        f"(day of week), not only when both do{vixie}",
        "put * into one of them to use the other alone",
    )


def _missing_days(readings: Sequence[Reading], tokens: Sequence[Token]) -> Iterator[Problem]:
    day, month, _ = readings[-3:]
    if day.wild:
        return
    without = [number for number in _months(month) if not _days(day, number)]
    if without:
        yield _warning(
            DAY.name,
            tokens[-3],
            f"there is no day {tokens[-3].text} in {_month_list(without)}",
            _last_days(without) if len(without) == 1 else "",
        )
    if month.values >> 2 & 1 and _days(day, 2) == _LEAP_DAY:
        yield _warning(DAY.name, tokens[-3], "in February it is due in leap years only")


def _every_inner(readings: Sequence[Reading], tokens: Sequence[Token]) -> Iterator[Problem]:
    """`* 2 * * *`: sixty runs where one was meant."""
    minute, hour = readings[-5], readings[-4]
    if minute.wild and not hour.wild and hour.values.bit_count() == 1:
        yield _warning(
            MINUTE.name,
            tokens[-5],
            f"due in all 60 minutes of {HOUR.name} {tokens[-4].text}",
            "write 0 for the minute to have one run",
        )
    if len(readings) > 5 and readings[0].wild and not minute.wild:
        yield _warning(
            "second",
            tokens[0],
            f"due in all 60 seconds of {MINUTE.name} {tokens[1].text}",
            "write 0 for the second to have one run a minute",
        )


def _days(day: Reading, month: int) -> int:
    return day.values & (2 << _LONGEST[month]) - 1


def _months(month: Reading) -> list[int]:
    return [number for number in range(1, 13) if month.values >> number & 1]


def _month_list(numbers: Sequence[int]) -> str:
    return ", ".join(MONTH.names[number - 1].title() for number in numbers)


def _last_days(numbers: Sequence[int]) -> str:
    longest = max(_LONGEST[number] for number in numbers)
    leap = " (28 outside leap years)" if longest == 29 else ""
    return f"the last day there is {longest}{leap}"


def _warning(field: str, token: Token, message: str, suggestion: str = "") -> Problem:
    return Problem(Kind.WARNING, field, token.text, token.position, message, suggestion)

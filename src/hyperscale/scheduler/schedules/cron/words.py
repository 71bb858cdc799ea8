"""An expression in words: what it means, not how it is written.

The sentence is made from the values, so `*/15`, `0-59/15` and `0,15,30,45` read the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperscale.scheduler.schedules.cron.expression import Fields
from hyperscale.scheduler.schedules.cron.fields import HOUR, MINUTE, SECOND, Field

TIMES_MAX = 6  # clock times listed one by one before minutes and hours are described apart
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def in_words(fields: Fields) -> str:
    """Such as "at 09:00 and 17:00 from Monday to Friday, in January"."""
    clock = _clock(fields)
    days = _days(fields) or ("" if "every" in clock else "every day")
    months = "" if _is_date(fields) else _months(fields.months)
    joined = f", {days}" if "," in clock and days.startswith("from") else f" {days}"
    sentence = clock + (joined if days else "") + (f", {months}" if months else "")
    return sentence + (f" ({fields.timezone} time)" if fields.timezone else "")


def _clock(fields: Fields) -> str:
    seconds = fields.seconds or (0,)
    if len(fields.hours) * len(fields.minutes) * len(seconds) <= TIMES_MAX:
        return f"at {listed(_times(fields.hours, fields.minutes, seconds))}"
    if seconds != (0,):
        of = "of every minute" if len(fields.minutes) == 60 else "of the minute"
        parts = [_part(SECOND, seconds, of), _in_minutes(fields.minutes)]
        return ", ".join(part for part in (*parts, _in_hours(fields.hours)) if part)
    if len(fields.minutes) == 1 and (step := _step(HOUR, fields.hours)):
        every = "every hour" if step == 1 else f"every {step} hours"
        return f"{every}, at minute {fields.minutes[0]}"
    every_hour = "of every hour" if len(fields.hours) == 24 else "of the hour"
    clock = _part(MINUTE, fields.minutes, every_hour)
    hours = _in_hours(fields.hours)
    return f"{clock}, {hours}" if hours else clock


def _times(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> list[str]:
    plain = tuple(seconds) == (0,)
    return [
        f"{hour:02}:{minute:02}" + ("" if plain else f":{second:02}")
        for hour in hours
        for minute in minutes
        for second in seconds
    ]


def _part(field: Field, values: Sequence[int], of: str) -> str:
    step = _step(field, values)
    if step == 1:
        return f"every {field.name}"
    if step:
        return f"every {step} {field.plural}"
    named = _named(field, values)
    return f"{named} {of}" if named.startswith("every") else f"at {named} {of}"


def _in_minutes(minutes: Sequence[int]) -> str:
    step = _step(MINUTE, minutes)
    if step == 1:
        return ""
    return f"in every minute divisible by {step}" if step else f"in {_named(MINUTE, minutes)}"


def _in_hours(hours: Sequence[int]) -> str:
    step = _step(HOUR, hours)
    if step == 1:
        return ""
    if step:
        return f"in every hour divisible by {step}"
    if len(hours) > 2 and _is_run(hours):
        return f"from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f"in the {'hour' if len(hours) == 1 else 'hours'} {listed(f'{h:02}' for h in hours)}"


def _is_date(fields: Fields) -> bool:
    """Days of one month and nothing else: `1 and 15 January`."""
    return (
        len(fields.months) == 1
        and len(fields.days_of_month) < 31
        and not fields.any_day_of_month
        and fields.any_day_of_week
    )


def _days(fields: Fields) -> str:
    if _is_date(fields):
        return f"on {_numbers(fields.days_of_month)} {MONTHS[fields.months[0] - 1]}"
    by_month = "" if fields.any_day_of_month else _days_of_month(fields.days_of_month)
    by_week = "" if fields.any_day_of_week else _days_of_week(fields.days_of_week)
    if by_month and by_week:
        return f"{by_month}, or {by_week}"
    return by_month or by_week


def _days_of_month(days: Sequence[int]) -> str:
    if len(days) == 31:
        return "on every day of the month"
    return f"on {'day' if len(days) == 1 else 'days'} {_numbers(days)} of the month"


def _numbers(values: Sequence[int]) -> str:
    if len(values) > 2 and _is_run(values):
        return f"{values[0]} to {values[-1]}"
    return listed(map(str, values))


def _days_of_week(days: Sequence[int]) -> str:
    if len(days) == 7:
        return "on every day of the week"
    # The week of a sentence ends with Sunday: Saturday and Sunday, not Sunday and Saturday.
    ordered = sorted(days, key=lambda day: (day - 1) % 7)
    positions = [(day - 1) % 7 for day in ordered]
    if len(days) > 2 and _is_run(positions):
        return f"from {DAYS[ordered[0]]} to {DAYS[ordered[-1]]}"
    return f"on {listed(f'{DAYS[day]}s' for day in ordered)}"


def _months(months: Sequence[int]) -> str:
    if len(months) == 12:
        return ""
    if len(months) > 2 and _is_run(months):
        return f"from {MONTHS[months[0] - 1]} to {MONTHS[months[-1] - 1]}"
    return f"in {listed(MONTHS[month - 1] for month in months)}"


def _step(field: Field, values: Sequence[int]) -> int:
    """The n of `*/n` if these are its values and n divides the whole evenly; else 0."""
    if len(values) < 2 or values[0] != field.low:
        return 0
    step = values[1] - values[0]
    if tuple(values) != tuple(range(field.low, field.high + 1, step)):
        return 0
    return 0 if (field.high + 1) % step else step


def _named(field: Field, values: Sequence[int]) -> str:
    if len(values) == 1:
        return f"{field.name} {values[0]}"
    step = values[1] - values[0]
    if (
        step > 1
        and len(values) > 3
        and list(values) == list(range(values[0], values[-1] + 1, step))
    ):
        return f"every {step} {field.plural} from {field.name} {values[0]} to {values[-1]}"
    return f"{field.plural} {_numbers(values)}"


def _is_run(values: Sequence[int]) -> bool:
    return list(values) == list(range(values[0], values[-1] + 1))


def listed(items: Iterable[str]) -> str:
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

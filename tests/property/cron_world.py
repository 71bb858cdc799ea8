"""Random expressions, zones and instants for cron, and a second opinion that is slow and obvious.

Instants lie near changes of offset more often than chance would have it: that is where schedules
go wrong.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from hyperscale.scheduler.schedules.cron import Cron, DstPolicy, Fields
from hyperscale.scheduler.schedules.cron.fields import DAY_NAMES, MONTH_NAMES
from hyperscale.scheduler.schedules.cron.zones import offsets_of

ZONES = (
    "UTC", "America/New_York", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Asia/Kolkata",
    "Asia/Kathmandu", "Asia/Tokyo", "Asia/Tehran", "Asia/Gaza", "Australia/Lord_Howe",
    "Australia/Adelaide", "Pacific/Apia", "Pacific/Chatham", "America/St_Johns",
    "America/Sao_Paulo", "America/Havana", "America/Santiago", "Africa/Casablanca", "Africa/Cairo",
    "Antarctica/Troll",
)  # fmt: skip

RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
SINCE = int(datetime(1972, 1, 1, tzinfo=UTC).timestamp())
UNTIL = int(datetime(2037, 1, 1, tzinfo=UTC).timestamp())
DAY_S = 86_400


def expression(dice: random.Random, with_seconds: bool | None = None) -> str:
    seconds = dice.random() < 0.25 if with_seconds is None else with_seconds
    return " ".join(_field(dice, column) for column in range(0 if seconds else 1, 6))


def _field(dice: random.Random, column: int) -> str:
    star = (0.1, 0.2, 0.3, 0.55, 0.7, 0.6)[column]
    if dice.random() < star:
        return "*"
    return ",".join(_item(dice, column) for _ in range(dice.choice((1, 1, 1, 1, 2, 3))))


def _item(dice: random.Random, column: int) -> str:
    low, high = RANGES[column]
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    shape = dice.randrange(7)
    if shape == 0:
        return f"*/{dice.randint(1, max(2, high // 2))}"
    if shape == 1:
        return f"{first}-{last}"
    if shape == 2:
        return f"{first}-{last}/{dice.randint(1, 7)}"
    if shape == 3 and column == 5:
        start, end = sorted((dice.randrange(7), dice.randrange(7)))
        return f"{DAY_NAMES[start]}-{DAY_NAMES[end].lower()}" if start != end else DAY_NAMES[start]
    if shape == 3 and column == 4:
        return MONTH_NAMES[dice.randrange(12)].title()
    return str(first)


def instant(dice: random.Random, zone: str) -> datetime:
    second = dice.randrange(SINCE, UNTIL)
    if dice.random() < 0.6:
        second = _near_change(dice, zone, second)
    if dice.random() < 0.5:
        second -= second % 60
    return datetime.fromtimestamp(second, UTC)


def _near_change(dice: random.Random, zone: str, second: int) -> int:
    """Up to two days around the next change of offset within a year."""
    offsets = offsets_of(zone)
    here = second
    while here < second + 366 * DAY_S:
        here = offsets.at(here).end
        if offsets.at(here).before != offsets.at(here).offset:
            return here + dice.randint(-2 * DAY_S, DAY_S)
    return second


def due_instants(
    cron: Cron, zone: str, policy: DstPolicy, around: datetime, days: int
) -> list[datetime]:
    """Every instant due within some days of another, wall time by wall time.

    By the definition of the policies and of the fields, with nothing that the search itself uses.
    """
    info, fields = ZoneInfo(zone), cron.fields
    middle = around.astimezone(info).replace(tzinfo=None, fold=0).date()
    due = set()
    for number in range(-days, days + 1):
        day = middle + timedelta(days=number)
        if not _is_due_on(fields, day):
            continue
        clocks = product(fields.hours, fields.minutes, fields.seconds or (0,))
        for hour, minute, second in clocks:
            wall = datetime(day.year, day.month, day.day, hour, minute, second)
            due |= _instants(wall, info, policy, fields.hourly)
    return sorted(due)


def _is_due_on(fields: Fields, day: date) -> bool:
    by_month = day.day in fields.days_of_month
    by_week = day.isoweekday() % 7 in fields.days_of_week
    if fields.any_day_of_month or fields.any_day_of_week:
        chosen = by_month and by_week
    else:
        chosen = by_month or by_week
    return chosen and day.month in fields.months


def _instants(wall: datetime, zone: ZoneInfo, policy: DstPolicy, hourly: bool) -> set[datetime]:
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    exists = first.astimezone(zone).replace(tzinfo=None, fold=0) == wall
    if not exists:
        return {first} if policy == DstPolicy.DEBIAN and not hourly else set()
    if hourly or policy == DstPolicy.LITERAL:
        return {first, second}
    return {first}

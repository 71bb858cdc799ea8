"""Changes of the clock: what each policy does with hours that are left out or come twice."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from hyperscale.scheduler.schedules.cron import Cron, DstPolicy
from hyperscale.scheduler.schedules.cron.coming_runs import coming_runs

NEW_YORK = "America/New_York"
LORD_HOWE = "Australia/Lord_Howe"
D, L, S = DstPolicy.DEBIAN, DstPolicy.LITERAL, DstPolicy.SKIP


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(expression: str, zone: str, after: str, count: int, policy: DstPolicy = D) -> list[str]:
    due = islice(Cron.parse(expression).iterate(at(after), zone, policy), count)
    return [f"{run:%m-%d %H:%M}" for run in due]


def backwards(expression: str, zone: str, before: str, count: int, policy: DstPolicy) -> list[str]:
    cron, here, found = Cron.parse(expression), at(before), []
    for _ in range(count):
        due = cron.previous(here, zone, policy)
        assert due is not None
        here = due
        found.append(f"{due:%m-%d %H:%M}")
    return found[::-1]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "policy", "due"),
    [
        # New York, 10 March 2024: 02:00 EST is 03:00 EDT, at 07:00Z.
        ("30 2 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:30", "03-11 06:30"]),
        ("30 2 * * *", NEW_YORK, "2024-03-09 12:00", S, ["03-11 06:30", "03-12 06:30"]),
        ("30 2 * * *", NEW_YORK, "2024-03-09 12:00", L, ["03-11 06:30", "03-12 06:30"]),
        # The edges of the gap and of the repeated hour.
        ("59 1 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 06:59", "03-11 05:59"]),
        ("0 2 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:00", "03-11 06:00"]),
        ("59 2 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:59", "03-11 06:59"]),
        ("59 59 2 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:59", "03-11 06:59"]),
        ("0 1 * * *", NEW_YORK, "2024-11-02 12:00", D, ["11-03 05:00", "11-04 06:00"]),
        ("59 1 * * *", NEW_YORK, "2024-11-02 12:00", D, ["11-03 05:59", "11-04 06:59"]),
        ("0 2 * * *", NEW_YORK, "2024-11-02 12:00", D, ["11-03 07:00", "11-04 07:00"]),
        # Moved onto a time that is due anyway: once.
        ("30 2,3 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:30", "03-11 06:30"]),
        # Moved behind a time of the hour it lands in: in order of time.
        ("0 3 * * *", NEW_YORK, "2024-03-09 12:00", D, ["03-10 07:00", "03-11 07:00"]),
        ("45 2 10 3 *", NEW_YORK, "2024-03-10 07:10", D, ["03-10 07:45", "03-10 06:45"]),
        ("*/20 2 * * *", NEW_YORK, "2024-03-09 12:00", D,
         ["03-10 07:00", "03-10 07:20", "03-10 07:40", "03-11 06:00"]),
        # Every hour, and every n-th: elapsed time under each policy.
        ("30 * * * *", NEW_YORK, "2024-03-10 05:45", D, ["03-10 06:30", "03-10 07:30"]),
        ("0 */2 * * *", NEW_YORK, "2024-03-10 04:00", D, ["03-10 05:00", "03-10 08:00"]),
        ("0 0-23 * * *", NEW_YORK, "2024-03-10 05:00", S, ["03-10 06:00", "03-10 07:00"]),
        # New York, 3 November 2024: 02:00 EDT is 01:00 EST, at 06:00Z.
        ("30 1 * * *", NEW_YORK, "2024-11-02 12:00", D, ["11-03 05:30", "11-04 06:30"]),
        ("30 1 * * *", NEW_YORK, "2024-11-02 12:00", S, ["11-03 05:30", "11-04 06:30"]),
        ("30 1 * * *", NEW_YORK, "2024-11-02 12:00", L,
         ["11-03 05:30", "11-03 06:30", "11-04 06:30"]),
        ("30 1 * * *", NEW_YORK, "2024-11-03 06:10", D, ["11-04 06:30", "11-05 06:30"]),
        ("0 1-3 * * *", NEW_YORK, "2024-11-03 04:00", D,
         ["11-03 05:00", "11-03 07:00", "11-03 08:00"]),
        ("*/30 * * * *", NEW_YORK, "2024-11-03 05:00", D,
         ["11-03 05:30", "11-03 06:00", "11-03 06:30", "11-03 07:00"]),
        # Lord Howe moves by half an hour: 02:00 +10:30 is 02:30 +11, at 15:30Z.
        ("15 2 * * *", LORD_HOWE, "2024-10-05 00:00", D, ["10-05 15:45", "10-06 15:15"]),
        ("15 2 * * *", LORD_HOWE, "2024-10-05 00:00", L, ["10-06 15:15", "10-07 15:15"]),
        # And back: 02:00 +11 is 01:30 +10:30, at 15:00Z.
        ("45 1 * * *", LORD_HOWE, "2024-04-06 00:00", D, ["04-06 14:45", "04-07 15:15"]),
        ("45 1 * * *", LORD_HOWE, "2024-04-06 00:00", L,
         ["04-06 14:45", "04-06 15:15", "04-07 15:15"]),
        # Apia has no 30 December 2011: the clock went on by a whole day.
        ("0 9 * * *", "Pacific/Apia", "2011-12-29 00:00", D, ["12-29 19:00", "12-30 19:00"]),
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-01 00:00", D, ["12-30 19:00", "12-29 19:00"]),
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-01 00:00", S, ["12-29 19:00", "12-29 19:00"]),
        # Sao Paulo had no midnight on 4 November 2018: 00:00 was 01:00, at 03:00Z.
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", D, ["11-04 03:00", "11-05 02:00"]),
        ("@daily", "America/Sao_Paulo", "2018-11-03 12:00", S, ["11-05 02:00", "11-06 02:00"]),
        # Casablanca goes back for Ramadan and forward after it.
        ("30 2 * * *", "Africa/Casablanca", "2024-03-09 12:00", L, ["03-10 01:30", "03-10 02:30"]),
    ],
)  # fmt: skip
def test_a_change_of_the_clock(
    expression: str, zone: str, after: str, policy: DstPolicy, due: list[str]
) -> None:
    assert runs(expression, zone, after, len(due), policy) == due
    last = Cron.parse(expression).next(at(after), zone, policy)
    for _ in due[1:]:
        assert last is not None
        last = Cron.parse(expression).next(last, zone, policy)
    assert last is not None
    assert backwards(expression, zone, f"{last:%Y-%m-%d %H:%M:59.5}", len(due), policy) == due


def test_leap_day_at_a_change_of_year_and_zone() -> None:
    assert runs("0 0 29 2 *", "Pacific/Kiritimati", "2023-01-01", 2) == ["02-28 10:00"] * 2
    assert runs("59 23 31 12 *", "Pacific/Pago_Pago", "2023-06-01", 1) == ["01-01 10:59"]


def notes(expression: str, zone: str, after: str, count: int) -> list[tuple[str, str]]:
    table = coming_runs(Cron.parse(expression), at(after), zone, count)
    return [(run.note, run.change) for run in table]


def test_the_timetable_tells_of_the_change() -> None:
    assert notes("30 2 * * *", NEW_YORK, "2024-03-09 00:00", 3) == [
        ("", ""),
        ("moved: 02:30 does not exist", "clocks go forward 1 h: Sun 2024-03-10 02:00 → 03:00"),
        ("", ""),
    ]
    assert notes("30 1 * * *", NEW_YORK, "2024-11-03 00:00", 2) == [
        ("first 01:30 of that day", ""),
        ("", "clocks go back 1 h: Sun 2024-11-03 02:00 → 01:00"),
    ]
    assert notes("30 * * * *", NEW_YORK, "2024-11-03 05:00", 3) == [
        ("first 01:30 of that day", ""),
        ("second 01:30 of that day", "clocks go back 1 h: Sun 2024-11-03 02:00 → 01:00"),
        ("", ""),
    ]
    assert notes("0 9 30 12 *", "Pacific/Apia", "2011-12-01", 1) == [
        (
            "moved: 2011-12-30 09:00 does not exist",
            "clocks go forward 24 h: Fri 2011-12-30 00:00 → 2011-12-31 00:00",
        )
    ]
    assert notes("0 3 * * *", NEW_YORK, "2024-03-10 00:00", 1)[0][0] == ""
    assert notes("0 9 * * *", "UTC", "0001-01-01", 1) == [("", "")]

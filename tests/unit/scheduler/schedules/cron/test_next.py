"""When an expression is due: the calendar, without and with zones, forward and backward."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.schedules.cron import Cron, DstPolicy


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after", "due"),
    [
        ("0 9 * * *", "2024-01-15 10:00", "2024-01-16 09:00"),
        ("0 9 * * 1-5", "2024-01-05 10:00", "2024-01-08 09:00"),
        ("*/15 * * * *", "2024-01-01 00:00", "2024-01-01 00:15"),
        ("* * * * *", "2024-01-01 00:00", "2024-01-01 00:01"),
        ("* * * * *", "2023-12-31 23:59:59", "2024-01-01 00:00"),
        ("* * * * * *", "2024-01-01 00:00:00", "2024-01-01 00:00:01"),
        ("30 0 9 * * 1-5", "2024-01-05 09:00:30", "2024-01-08 09:00:30"),
        ("0 0 1 1 *", "2023-12-31 23:59", "2024-01-01 00:00"),
        ("0 0 29 2 *", "2023-03-01 00:00", "2024-02-29 00:00"),
        ("0 0 29 2 *", "2096-03-01 00:00", "2104-02-29 00:00"),
        ("0 0 29 2 *", "1896-03-01 00:00", "1904-02-29 00:00"),
        ("0 0 31 * *", "2024-03-31 00:00", "2024-05-31 00:00"),
        ("0 0 31 2,12 *", "2024-01-01 00:00", "2024-12-31 00:00"),
        ("0 9 15 * 1", "2024-01-08 09:00", "2024-01-15 09:00"),
        ("0 9 15 * 1", "2024-02-12 09:00", "2024-02-15 09:00"),
        ("0 9 15 * 1", "2024-02-15 09:00", "2024-02-19 09:00"),
        ("0 9 1-31 * 1", "2024-01-09 09:00", "2024-01-10 09:00"),
        ("0 9 */10 * 0-6", "2024-01-01 09:00", "2024-01-11 09:00"),
        ("0 0 * * 0", "2024-06-28 00:00", "2024-06-30 00:00"),
        ("0 0 * * MON", "2024-06-30 00:00", "2024-07-01 00:00"),
        ("0 0 * * 7", "2024-12-30 00:00", "2025-01-05 00:00"),
        ("59 23 31 12 *", "2024-12-31 23:59", "2025-12-31 23:59"),
        ("0 12 * 2 *", "2024-02-29 12:00", "2025-02-01 12:00"),
    ],
)
def test_next_and_previous_are_neighbours(expression: str, after: str, due: str) -> None:
    cron = Cron.parse(expression)
    assert cron.next(at(after)) == at(due)
    before = cron.previous(at(due))
    assert before is not None
    assert before <= at(after)
    assert cron.next(before) == at(due)


def test_strictly_after_also_with_fractions() -> None:
    cron = Cron.parse("0 9 * * *")
    nine = at("2024-01-15 09:00")
    shortly = timedelta(microseconds=1)
    assert cron.next(nine - shortly) == nine
    assert cron.next(nine) == nine + timedelta(days=1)
    assert cron.next(nine + shortly) == nine + timedelta(days=1)
    assert cron.previous(nine + shortly) == nine
    assert cron.previous(nine) == nine - timedelta(days=1)


def test_instants_may_come_in_any_zone_and_leave_in_utc() -> None:
    due = Cron.parse("0 9 * * *").next(
        datetime(2024, 1, 15, 10, tzinfo=timezone(timedelta(hours=2)))
    )
    assert due == at("2024-01-15 09:00")
    assert due.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(BadInput, match="has no time zone"):
        Cron.parse("0 9 * * *").next(datetime(2024, 1, 1))


def test_an_unknown_zone_is_refused() -> None:
    for zone in ("PST", "UTC+5", "", "../etc/passwd", "America", "localtime", "a\0b", "x" * 5000):
        with pytest.raises(BadInput, match="there is no time zone"):
            Cron.parse("0 9 * * *").next(at("2024-01-01"), zone)


def test_the_zone_moves_the_instant_with_the_season() -> None:
    cron = Cron.parse("0 9 * * *")
    assert cron.next(at("2024-01-15"), "America/New_York") == at("2024-01-15 14:00")
    assert cron.next(at("2024-07-15"), ZoneInfo("America/New_York")) == at("2024-07-15 13:00")
    assert cron.next(at("2024-01-15"), "EST") == at("2024-01-15 14:00")
    assert cron.next(at("2024-01-15"), "GMT") == at("2024-01-15 09:00")


def test_the_zone_of_the_expression_holds_unless_another_is_given() -> None:
    cron = Cron.parse("0 9 * * * Asia/Kolkata")
    assert cron.next(at("2024-01-15")) == at("2024-01-15 03:30")
    assert cron.next(at("2024-01-15"), "UTC") == at("2024-01-15 09:00")


def test_iterate_yields_each_run_once() -> None:
    runs = list(islice(Cron.parse("0 */6 * * *").iterate(at("2024-02-28 20:00")), 5))
    assert runs == [at("2024-02-29") + timedelta(hours=6) * number for number in range(5)]


@pytest.mark.parametrize("policy", DstPolicy)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia"])
def test_the_ends_of_time_end_the_search(zone: str, policy: DstPolicy) -> None:
    cron = Cron.parse("0 0 1 1 *")
    assert cron.next(datetime.max.replace(tzinfo=UTC), zone, policy) is None
    assert cron.next(at("9999-01-01"), zone, policy) is None
    assert cron.previous(datetime.min.replace(tzinfo=UTC), zone, policy) is None
    late = list(Cron.parse("0 0 29 2 *").iterate(at("9980-01-01"), zone, policy))
    assert [run.year for run in late] == [9980, 9984, 9988, 9992, 9996]
    early = cron.next(datetime.min.replace(tzinfo=UTC), zone, policy)
    assert early is not None
    assert early.year in (1, 2, 3)


def test_a_time_that_a_policy_drops_for_decades_is_found() -> None:
    """Cairo left out 01:00 to 02:00 of 1 May from 1959 to 1981: the longest the database has."""
    cron = Cron.parse("30 1 1 5 *")
    after = at("1958-06-01")
    assert cron.next(after, "Africa/Cairo", DstPolicy.DEBIAN) == at("1959-04-30 23:30")
    assert cron.next(after, "Africa/Cairo", DstPolicy.SKIP) == at("1982-04-30 23:30")
    assert cron.previous(at("1982-01-01"), "Africa/Cairo", DstPolicy.SKIP) == at("1958-04-30 22:30")


@pytest.mark.parametrize("system_zone", ["America/New_York", "Asia/Kathmandu"])
def test_the_zone_of_the_machine_changes_nothing(system_zone: str) -> None:
    code = (
        "from datetime import datetime, UTC; from hyperscale.scheduler import Cron;"
        "print(Cron.parse('30 2 * * *').next(datetime(2024, 3, 10, tzinfo=UTC)),"
        " Cron.parse('0 0 1 1 *').next(datetime(2023, 12, 31, 20, tzinfo=UTC), 'Asia/Tokyo'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "TZ": system_zone},
    )  # fmt: skip
    assert ended.stdout.strip() == "2024-03-10 02:30:00+00:00 2024-12-31 15:00:00+00:00"

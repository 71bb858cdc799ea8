"""Reading expressions: what each form means, and what each mistake says."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.schedules.cron import Cron, CronError, Fields, Kind, check
from hyperscale.scheduler.schedules.cron.parser import ALIASES, CHARACTERS_MAX


def fields(text: str) -> Fields:
    return Cron.parse(text).fields


def test_five_fields_start_with_the_minute() -> None:
    read = fields("0 9 * * 1")
    assert (read.seconds, read.minutes, read.hours, read.days_of_week) == (None, (0,), (9,), (1,))
    assert read.days_of_month == tuple(range(1, 32))
    assert read.months == tuple(range(1, 13))
    assert (read.any_day_of_month, read.any_day_of_week) == (True, False)


def test_six_fields_start_with_the_second() -> None:
    read = fields("30 0 9 * * 1-5")
    assert (read.seconds, read.minutes, read.days_of_week) == ((30,), (0,), (1, 2, 3, 4, 5))


def test_any_run_of_spaces_and_tabs_separates() -> None:
    assert fields("  0\t 9 *  * \t1 \n").hours == (9,)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("*/15", (0, 15, 30, 45)),
        ("10-20/3", (10, 13, 16, 19)),
        ("0-59/100", (0,)),
        ("5", (5,)),
        ("05", (5,)),
        ("7-7", (7,)),
        ("7-7/2", (7,)),
        ("3,1,2,1", (1, 2, 3)),
        ("50-52,0,*/30", (0, 30, 50, 51, 52)),
        ("40/10", (40, 50)),
    ],
)
def test_values_are_sorted_and_single(text: str, minutes: tuple[int, ...]) -> None:
    assert fields(f"{text} * * * *").minutes == minutes


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0", (0,)),
        ("7", (0,)),
        ("5-7", (0, 5, 6)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6)),
        ("MON-FRI", (1, 2, 3, 4, 5)),
        ("mon,Wed,FRI", (1, 3, 5)),
        ("MON-FRI/2", (1, 3, 5)),
        ("FRI-SUN", (0, 5, 6)),
        ("SUN-TUE", (0, 1, 2)),
        ("*/3", (0, 3, 6)),
        ("7/2", (0,)),
    ],
)
def test_days_of_the_week(text: str, days: tuple[int, ...]) -> None:
    assert fields(f"0 0 * * {text}").days_of_week == days


def test_months_have_names() -> None:
    assert fields("0 0 1 JAN,mar-May *").months == (1, 3, 4, 5)


@pytest.mark.parametrize(("alias", "meaning"), ALIASES.items())
def test_aliases(alias: str, meaning: str) -> None:
    for spelling in (alias, alias.upper()):
        read = msgspec.structs.replace(fields(spelling), original="")
        assert read == msgspec.structs.replace(fields(meaning), original="")


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("0 9 * * * America/New_York", "America/New_York"),
        ("0 9 * * MON UTC", "UTC"),
        ("0 0 9 * * 1-5 Europe/Berlin", "Europe/Berlin"),
        ("@daily Asia/Tokyo", "Asia/Tokyo"),
        ("0 9 * * SAT", None),
        ("0 0 9 * * SAT", None),
    ],
)
def test_a_zone_may_stand_at_the_end(text: str, zone: str | None) -> None:
    assert fields(text).timezone == zone


@pytest.mark.parametrize(
    ("text", "field", "value", "position", "suggestion"),
    [
        ("60 * * * *", "minute", "60", 0, "the full hour is minute 0"),
        ("60 * * * * *", "second", "60", 0, "the full minute is second 0"),
        ("0 24 * * *", "hour", "24", 2, "midnight is hour 0"),
        ("0 0 0 * *", "day of month", "0", 4, "days of the month are 1 to 31"),
        ("0 0 32 * *", "day of month", "32", 4, "days of the month are 1 to 31"),
        ("0 0 * 0 *", "month", "0", 6, "months are 1 to 12 or JAN to DEC"),
        ("0 0 * 13 *", "month", "13", 6, "months are 1 to 12 or JAN to DEC"),
        ("0 0 * * 8", "day of week", "8", 8, "days of the week are 0 to 7"),
        ("0 0 * * MOM", "day of week", "MOM", 8, "did you mean MON?"),
        ("0 0 * * Monday", "day of week", "Monday", 8, "did you mean MON?"),
        ("0 0 * JUM *", "month", "JUM", 6, "did you mean JUN?"),
        ("0 23-1 * * *", "hour", "23-1", 2, "write it in two parts: 23,0-1"),
        ("0 0 * * FRI-MON", "day of week", "FRI-MON", 8, "FRI-SAT,SUN-MON"),
        ("0 0 * * 7-2", "day of week", "7-2", 8, "write 0-2"),
        ("*/0 * * * *", "minute", "0", 2, "*/2 is every other one of the minutes"),
        ("*/-5 * * * *", "minute", "-5", 2, "*/2"),
        ("*/ * * * *", "minute", "/", 1, "*/2"),
        ("1,,2 * * * *", "minute", ",", 2, ""),
        ("5- * * * *", "minute", "5-", 0, "a range is written 0-59"),
        ("-5 * * * *", "minute", "-5", 0, "a range is written 0-59"),
        ("1-2-3 * * * *", "minute", "1-2-3", 0, "a range is written 0-59"),
        ("*-5 * * * *", "minute", "*", 0, "a star stands alone"),
        ("1/2/3 * * * *", "minute", "1/2/3", 0, ""),
        ("0 0 L * *", "day of month", "L", 4, "list the days"),
        ("0 0 15W * *", "day of month", "15W", 4, "list the days"),
        ("0 0 * * 5#2", "day of week", "5#2", 8, "list the days"),
        ("0 0 ? * MON", "day of month", "?", 4, "write * instead"),
        ("٣ * * * *", "minute", "٣", 0, "minutes are 0 to 59"),
        (f"{'9' * 500} * * * *", "minute", "9" * 500, 0, "minutes are 0 to 59"),
        ("", "expression", "", 0, "every five minutes"),
        ("* * * *", "expression", "* * * *", 0, "minute, hour"),
        (" 0 0 0 1 1 * 2024", "expression", "0 0 0 1 1 * 2024", 1, "no field for the year"),
        ("@reboot", "expression", "@reboot", 0, "submit a job instead"),
        ("@dialy", "expression", "@dialy", 0, "did you mean @daily?"),
        ("@every 5m", "expression", "@every", 0, "*/5 * * * *"),
        ("@daily 5", "expression", "5", 7, ""),
        ("0 9 * * * Europe/Berln", "time zone", "Europe/Berln", 10, "Europe/Berlin?"),
        ("0 9 * * * PST", "time zone", "PST", 10, "America/Los_Angeles"),
        ("0 9 * * * UTC+5", "time zone", "UTC+5", 10, "a fixed offset is no zone"),
        ("@daily Mars/Olympus", "time zone", "Mars/Olympus", 7, "IANA names"),
        ("0 0 9 * * 1 Berlin", "time zone", "Berlin", 12, "did you mean Europe/Berlin?"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    text: str, field: str, value: str, position: int, suggestion: str
) -> None:
    parsed = check(text)
    assert parsed.cron is None
    (problem,) = parsed.syntax_errors
    assert (problem.field, problem.value, problem.position) == (field, value, position)
    assert suggestion in problem.suggestion
    assert problem.message


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(CronError) as caught:
        Cron.parse("75 9 32 * MOM")
    assert [problem.field for problem in caught.value.problems] == [
        "minute", "day of month", "day of week",
    ]  # fmt: skip
    assert "75 9 32 * MOM\n  ^^" in caught.value.message
    assert isinstance(caught.value, BadInput)


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 2 *", "0 0 31 4 *", "0 0 30,31 2 *", "0 0 31 2,4,6,9,11 *"]
)
def test_a_date_that_never_comes_is_a_semantic_error(text: str) -> None:
    parsed = check(text)
    assert parsed.cron is None
    assert not parsed.syntax_errors
    (problem,) = parsed.semantic_errors
    assert (problem.kind, problem.field) == (Kind.SEMANTIC, "day of month")
    assert "never due" in problem.message


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2 MON", "0 0 31 2,3 *", "0 0 31 * *"])
def test_a_date_that_comes_at_times_is_good(text: str) -> None:
    assert check(text).cron is not None


def test_too_long_is_refused_before_it_is_read() -> None:
    (problem,) = check("1," * CHARACTERS_MAX).errors
    assert f"at most {CHARACTERS_MAX}" in problem.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 9 15 * MON", ["15 (day of month) or MON (day of week)"]),
        ("0 9 */2 * MON", ["Vixie cron asks for both, because */2 begins with a star"]),
        ("0 9 1-31 * MON", ["MON restricts nothing"]),
        ("0 9 15 * 0-6", ["15 restricts nothing"]),
        ("0 9 31 2,3,4 *", ["no day 31 in Feb, Apr"]),
        ("0 9 31 2 MON", ["or MON", "no day 31 in Feb"]),
        ("0 9 29 2 *", ["leap years only"]),
        ("*/7 * * * *", ["from minute 56 to the next 0 it is 4, not 7"]),
        ("0 */5 * * *", ["from hour 20 to the next 0 it is 4, not 5"]),
        ("10-20/30 * * * *", ["only 10 is left"]),
        ("5/15 * * * *", ["read as 5-59/15"]),
        ("* 2 * * *", ["all 60 minutes of hour 2"]),
        ("* 0 9 * * *", ["all 60 seconds of minute 0"]),
    ],
)
def test_surprises_are_warned_of(text: str, said: list[str]) -> None:
    parsed = check(text)
    assert parsed.cron is not None
    assert len(parsed.warnings) == len(said)
    for problem, words in zip(parsed.warnings, said, strict=True):
        assert problem.kind is Kind.WARNING
        assert words in problem.message
        assert text[problem.position :].startswith(problem.value)


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "0 9 * * MON-FRI", "*/15 * * * *", "0 0 1 1 *", "0 9 */2 * 0-6", "@weekly UTC"],
)
def test_plain_expressions_give_no_warning(text: str) -> None:
    assert check(text).warnings == ()


def test_stored_fields_bring_the_expression_back() -> None:
    for text in ("30 0 9 1-31 * 1-5 Europe/Berlin", "0 */2 * * *", "0 0 1-31 * MON"):
        cron = Cron.parse(text)
        raw = msgspec.json.encode(cron.fields)
        again = Cron(msgspec.json.decode(raw, type=Fields))
        assert again == cron
        assert hash(again) == hash(cron)
        assert again.fields.original == text


def test_stored_fields_are_not_trusted() -> None:
    good = fields("0 9 * * *")
    for broken in ({"minutes": ()}, {"hours": (24,)}, {"days_of_week": (7,)}, {"seconds": (-1,)}):
        with pytest.raises(BadInput):
            Cron(msgspec.structs.replace(good, **broken))

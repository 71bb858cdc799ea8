"""Laws of cron: any text gets an answer, and the search agrees with a slow and obvious one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hyperscale.errors import BadInput
from hyperscale.scheduler.schedules.cron import Cron, CronError, DstPolicy, Fields, Kind, check
from hyperscale.scheduler.schedules.cron.expression import HORIZON_S
from hyperscale.scheduler.schedules.cron.words import in_words
from hyperscale.scheduler.schedules.cron.zones import is_zone
from tests.property.cron_world import ZONES, due_instants, expression, instant

SEEDS = st.integers(min_value=0, max_value=2**32)
POLICIES = st.sampled_from(DstPolicy)
PIECES = st.sampled_from(
    [
        "*", "/", "-", ",", "#", "?", "L", "W", "@", " ", "\t", "\n", "\0", "0", "7", "31", "59",
        "99", "MON", "sun", "JAN", "@daily", "UTC", "Europe/Berlin", "*/5", "1-5", "٣", "²",
    ]
)  # fmt: skip
ALMOST = st.lists(PIECES, max_size=40).map("".join) | st.lists(PIECES, max_size=9).map(" ".join)


@settings(max_examples=600, deadline=None)
@given(st.text(max_size=80) | ALMOST)
@example("²² * * * *")
@example("0 9 * * * ../../etc/passwd")
@example("0 9 * * * /etc/localtime")
@example("0 9 * * * America")
@example("* * * * * a\0b")
@example("@\0")
@example(", , , , ,")
@example("1/ 1/ 1/ 1/ 1/")
def test_any_text_gets_an_answer(text: str) -> None:
    parsed = check(text)
    assert (parsed.cron is None) == bool(parsed.errors)
    assert {problem.kind for problem in parsed.errors} <= {Kind.SYNTAX, Kind.SEMANTIC}
    for problem in parsed.errors + parsed.warnings:
        assert problem.message
        assert 0 <= problem.position <= len(text)
    if parsed.cron is None:
        with pytest.raises(CronError):
            Cron.parse(text)
    else:
        assert parsed.cron.next(datetime(2024, 1, 1, tzinfo=UTC)) is not None
        assert in_words(parsed.cron.fields)


@settings(max_examples=150, deadline=None)
@given(SEEDS, POLICIES)
def test_the_search_finds_what_counting_finds(seed: int, policy: DstPolicy) -> None:
    dice = random.Random(seed)
    zone = dice.choice(ZONES)
    here = instant(dice, zone)
    cron = readable(dice)
    due = due_instants(cron, zone, policy, here, days=4)
    # A gap is a day wide at most, so the outer day on each side may lack what it pushed there.
    near = [run for run in due if abs(run - here) < timedelta(days=2)]
    later = [run for run in near if run > here]
    earlier = [run for run in near if run < here]
    assert list(islice(cron.iterate(here, zone, policy), len(later))) == later
    assert list(islice(reverse(cron, here, zone, policy), len(earlier))) == earlier[::-1]


def readable(dice: random.Random) -> Cron:
    """Due every few days at least, so that a window of days shows something."""
    while True:
        day_fields = dice.choice(("* * *", "* * *", "* * 1-5", "*/2 * *", "1-31 * MON"))
        minute_and_hour = expression(dice, with_seconds=False).split()[:2]
        second = dice.choice(("", "", "15 ", "*/30 "))
        parsed = check(f"{second}{' '.join(minute_and_hour)} {day_fields}")
        if parsed.cron is not None:
            return parsed.cron


def reverse(cron: Cron, before: datetime, zone: str, policy: DstPolicy) -> Iterator[datetime]:
    while (due := cron.previous(before, zone, policy)) is not None:
        yield due
        before = due


@settings(max_examples=300, deadline=None)
@given(SEEDS, POLICIES)
def test_next_and_previous_undo_each_other(seed: int, policy: DstPolicy) -> None:
    dice = random.Random(seed)
    zone = dice.choice(ZONES)
    here = instant(dice, zone)
    parsed = check(expression(dice))
    if parsed.cron is None:
        assert parsed.semantic_errors
        return
    cron = parsed.cron
    runs = [here, *islice(cron.iterate(here, zone, policy), 4)]
    assert len(runs) == 5
    assert all(earlier < later for earlier, later in pairwise(runs))
    assert runs[-1] - runs[0] < timedelta(seconds=5 * HORIZON_S)
    for earlier, later in pairwise(runs[1:]):
        assert cron.previous(later, zone, policy) == earlier
        between = earlier + (later - earlier) * dice.random()
        assert cron.next(between, zone, policy) == later


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_stored_expressions_behave_the_same(seed: int) -> None:
    dice = random.Random(seed)
    parsed = check(expression(dice))
    if parsed.cron is None:
        return
    again = Cron(msgspec.json.decode(msgspec.json.encode(parsed.cron.fields), type=Fields))
    here = instant(dice, "Europe/London")
    assert again.next(here, "Europe/London") == parsed.cron.next(here, "Europe/London")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=70))
@example("Europe/Berlin/")
@example("..")
@example("zone.tab")
@example("tzdata.zi")
def test_any_zone_name_gets_an_answer(name: str) -> None:
    cron, here = Cron.parse("0 9 * * *"), datetime(2024, 1, 1, tzinfo=UTC)
    if is_zone(name):
        assert cron.next(here, name) is not None
    else:
        with pytest.raises(BadInput, match="there is no time zone"):
            cron.next(here, name)

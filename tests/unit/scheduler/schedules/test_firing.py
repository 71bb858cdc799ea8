"""Decisions about ticks under a clock that is only a number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from hyperscale.scheduler.instants import Instant, after, instant_of, moment_of
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules.firing import WALKED_MAX, decide
from hyperscale.scheduler.schedules.schedule import (
    Misfire,
    MisfirePolicy,
    Schedule,
    ScheduleDefinition,
)
from hyperscale.scheduler.schedules.ticks import RUNS_MAX, next_tick, preview, ticks_of
from hyperscale.scheduler.store.types import BATCH_MAX

SPEC = JobSpec(name="job", kind="python")


def at(*parts: int) -> Instant:
    return instant_of(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


def schedule(cron: str, now: Instant, **fields: Any) -> Schedule:
    definition = ScheduleDefinition(name="s", job=SPEC, cron=cron, **fields)
    next_at = next_tick(definition, ticks_of(definition), now)
    return Schedule(
        id="s", definition=definition, created_at=now, updated_at=now, cursor=now, next_at=next_at
    )


def walk(known: Schedule, until: Instant, step_s: float) -> list[datetime]:
    """What a leader that looks every `step_s` makes of it."""
    made: list[datetime] = []
    now = known.cursor
    while now < until:
        now = after(now, step_s)
        (firing,) = decide(iter([known]), now).firings
        assert firing.advance is not None
        assert firing.advance.before == known.cursor
        made += [moment_of(job.tick or 0) for job in firing.jobs]
        known = replace(known, cursor=firing.advance.cursor, next_at=firing.advance.next_at)
    assert len(set(made)) == len(made)
    return made


def test_spring_forward_runs_the_missing_time_once_later() -> None:
    made = walk(
        schedule("30 2 * * *", at(2024, 3, 9, 12), zone="America/New_York"),
        at(2024, 3, 11, 12),
        600,
    )
    assert made == [
        datetime(2024, 3, 10, 7, 30, tzinfo=UTC),
        datetime(2024, 3, 11, 6, 30, tzinfo=UTC),
    ]


def test_fall_back_runs_the_repeated_time_once() -> None:
    made = walk(
        schedule("30 1 * * *", at(2024, 11, 3, 0), zone="America/New_York"),
        at(2024, 11, 4, 0),
        300,
    )
    assert made == [datetime(2024, 11, 3, 5, 30, tzinfo=UTC)]


def test_every_quarter_goes_on_through_the_repeated_hour() -> None:
    made = walk(
        schedule("*/15 * * * *", at(2024, 11, 3, 4), zone="America/New_York"),
        at(2024, 11, 3, 8),
        60,
    )
    gaps = {later - earlier for earlier, later in pairwise(made)}
    assert gaps == {timedelta(minutes=15)}


def test_leap_day_and_year_change() -> None:
    leap = schedule("0 0 29 2 *", at(2023, 3, 1))
    assert moment_of(leap.next_at or 0) == datetime(2024, 2, 29, tzinfo=UTC)
    made = walk(schedule("59 23 31 12 *", at(2024, 12, 31, 23)), at(2025, 1, 1, 1), 60)
    assert made == [datetime(2024, 12, 31, 23, 59, tzinfo=UTC)]


def test_a_clock_that_steps_back_fires_nothing_twice() -> None:
    known = schedule("* * * * *", at(2024, 1, 1, 12))
    (firing,) = decide(iter([known]), at(2024, 1, 1, 12, 5, 30)).firings
    assert firing.advance is not None
    assert len(firing.jobs) == 1 + 1, "one for the four that are late, and the one on time"
    known = replace(known, cursor=firing.advance.cursor, next_at=firing.advance.next_at)
    (back,) = decide(iter([known]), at(2024, 1, 1, 12, 2)).firings
    assert back.jobs == ()
    assert back.advance is not None
    assert back.advance.cursor == known.cursor
    (again,) = decide(iter([known]), at(2024, 1, 1, 12, 6)).firings
    assert [job.tick for job in again.jobs] == [at(2024, 1, 1, 12, 6)]


def test_what_nobody_was_there_for_follows_the_misfire_policy() -> None:
    now = at(2024, 1, 1, 13, 0, 30)
    wanted = {Misfire.SKIP: 0, Misfire.RUN_ONCE: 1, Misfire.RUN_ALL: 3}
    for kind, late in wanted.items():
        policy = MisfirePolicy(kind=kind, cap=3, grace_s=60)
        known = schedule("* * * * *", at(2024, 1, 1, 12), misfire=policy)
        (firing,) = decide(iter([known]), now).firings
        assert len(firing.jobs) == late + 1
        assert firing.missed == 60 - late - 1
        assert firing.advance is not None
        assert firing.advance.next_at == at(2024, 1, 1, 13, 1)


def test_a_schedule_that_cannot_be_computed_does_not_hold_up_the_others() -> None:
    now = at(2024, 1, 1, 12)
    good = schedule("* * * * *", now)
    bad = replace(good, id="bad", definition=replace(good.definition, zone="Atlantis/Capital"))
    decided = decide(iter([bad, good]), at(2024, 1, 1, 12, 1))
    assert list(decided.broken) == ["bad"]
    aside, fired = decided.firings
    assert aside.advance is not None
    assert aside.advance.next_at is None
    assert len(fired.jobs) == 1


def test_a_slice_ends_when_it_has_walked_enough_and_the_next_takes_the_rest() -> None:
    began, now = at(2024, 1, 1), at(2024, 1, 2)
    left = [replace(schedule("* * * * *", began), id=f"s{number}") for number in range(10)]
    taken: list[str] = []
    slices = 0
    todo = iter(left)
    while firings := decide(todo, now).firings:
        taken += [firing.schedule_id for firing in firings]
        slices += 1
        walked = [len(firing.jobs) + firing.missed for firing in firings]
        assert walked == [1440] * len(firings)
        assert sum(walked[:-1]) < WALKED_MAX
    assert taken == [each.id for each in left]
    assert slices == 5


def test_who_was_away_longest_has_a_slice_alone() -> None:
    """Thousands that run are behind its plan, not only those it tells of."""
    policy = MisfirePolicy(grace_s=1e6)
    known = schedule("* * * * * *", at(2024, 1, 1), misfire=policy)
    todo = iter([known, replace(known, id="other")])
    (firing,) = decide(todo, at(2024, 1, 2)).firings
    assert len(firing.jobs) == RUNS_MAX < WALKED_MAX
    (firing,) = decide(todo, at(2024, 1, 2)).firings
    assert firing.schedule_id == "other"


def test_a_thousand_on_time_are_one_slice() -> None:
    known = schedule("* * * * *", at(2024, 1, 1, 12))
    todo = iter([replace(known, id=f"s{number}") for number in range(BATCH_MAX)])
    assert len(decide(todo, at(2024, 1, 1, 12, 1)).firings) == BATCH_MAX


def test_lateness_is_that_of_the_latest_tick_on_time() -> None:
    known = schedule("* * * * *", at(2024, 1, 1, 12))
    assert decide(iter([known]), at(2024, 1, 1, 12, 1, 2)).lateness_s == 2.0


def test_preview_gives_the_coming_ticks() -> None:
    definition = ScheduleDefinition(name="s", job=SPEC, cron="0 9 * * 1-5 Europe/Berlin")
    assert [moment_of(tick) for tick in preview(definition, at(2024, 1, 5, 10), 2)] == [
        datetime(2024, 1, 8, 8, tzinfo=UTC),
        datetime(2024, 1, 9, 8, tzinfo=UTC),
    ]

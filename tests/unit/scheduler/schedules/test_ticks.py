"""Which ticks are due, and what becomes of late ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import SECOND, instant_of, moment_of
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules.firing import aside, instance, planned
from hyperscale.scheduler.schedules.operations import Entry, decide_entry
from hyperscale.scheduler.schedules.schedule import (
    Misfire,
    MisfirePolicy,
    Overlap,
    Schedule,
    ScheduleDefinition,
)
from hyperscale.scheduler.schedules.ticks import (
    RUNS_MAX,
    SCAN_MAX,
    CronTicks,
    OneTick,
    backfill,
    count_between,
    first_cursor,
    next_tick,
    plan,
)

MINUTE = 60 * SECOND


class Every:
    def __init__(self, period: int) -> None:
        self._period = period

    def next(self, after: int) -> int:
        return (after // self._period + 1) * self._period


MINUTELY = Every(MINUTE)


def schedule(cursor: int = 0, **fields: Any) -> Schedule:
    fields.setdefault("cron", "* * * * *")
    definition = ScheduleDefinition(name="s", job=JobSpec(name="n", kind="k"), **fields)
    return Schedule(id="s", definition=definition, created_at=0, updated_at=0, cursor=cursor)


def test_a_tick_on_time_runs() -> None:
    made = plan(schedule(), MINUTELY, MINUTE)
    assert made == ((MINUTE,), 0, MINUTE, 2 * MINUTE, False)


def test_before_the_tick_nothing_happens() -> None:
    assert plan(schedule(), MINUTELY, MINUTE - 1) == ((), 0, 0, MINUTE, False)


def test_a_clock_that_steps_back_finds_nothing() -> None:
    assert plan(schedule(cursor=5 * MINUTE), MINUTELY, 2 * MINUTE).run == ()


@pytest.mark.parametrize(
    ("misfire", "run", "missed"),
    [
        (MisfirePolicy(kind=Misfire.SKIP), [10], 9),
        (MisfirePolicy(kind=Misfire.RUN_ONCE), [9, 10], 8),
        (MisfirePolicy(kind=Misfire.RUN_ALL, cap=4), [6, 7, 8, 9, 10], 5),
        (MisfirePolicy(kind=Misfire.RUN_ALL, cap=100), list(range(1, 11)), 0),
        (MisfirePolicy(kind=Misfire.SKIP, grace_s=300), [6, 7, 8, 9, 10], 5),
    ],
)
def test_late_ticks(misfire: MisfirePolicy, run: list[int], missed: int) -> None:
    made = plan(schedule(misfire=misfire), MINUTELY, 10 * MINUTE + 1)
    assert made.run == tuple(minute * MINUTE for minute in run)
    assert made.missed == missed
    assert made.cursor == 10 * MINUTE


@pytest.mark.parametrize("seconds", [3 * 86_400, 2 * SCAN_MAX + 11, 2 * SCAN_MAX + 14])
@pytest.mark.parametrize("kind", Misfire)
def test_after_a_long_absence_every_tick_is_accounted_for(kind: Misfire, seconds: int) -> None:
    known = schedule(misfire=MisfirePolicy(kind=kind, cap=7, grace_s=10))
    run: list[int] = []
    missed = rounds = 0
    now = seconds * SECOND
    while True:
        made = plan(known, Every(SECOND), now)
        run += made.run
        missed += made.missed
        assert made.cursor >= known.cursor
        known = schedule(cursor=made.cursor, misfire=known.definition.misfire)
        rounds += 1
        if not made.more:
            break
    caught_up = {Misfire.SKIP: 0, Misfire.RUN_ONCE: 1, Misfire.RUN_ALL: 7}[kind]
    assert len(run) == 11 + caught_up
    assert run == [now - i * SECOND for i in reversed(range(11 + caught_up))]
    assert missed + len(run) == seconds
    assert rounds <= seconds / (SCAN_MAX - 7) + 2


def test_one_plan_runs_a_bounded_number() -> None:
    known = schedule(misfire=MisfirePolicy(grace_s=86_400))
    made = plan(known, Every(SECOND), 2500 * SECOND)
    assert len(made.run) == RUNS_MAX
    assert made.more
    assert made.next_at == made.cursor + SECOND


def test_start_and_end() -> None:
    known = schedule(start_at=2 * MINUTE, end_at=4 * MINUTE, misfire=MisfirePolicy(grace_s=999))
    made = plan(known, MINUTELY, 10 * MINUTE)
    assert made.run == (2 * MINUTE, 3 * MINUTE)
    assert made.next_at is None
    assert next_tick(known.definition, MINUTELY, 3 * MINUTE) is None


def test_paused_decides_nothing_and_tells_what_it_skipped() -> None:
    known = schedule(paused=True)
    assert plan(known, MINUTELY, 5 * MINUTE) == ((), 0, 0, None, False)
    assert count_between(known.definition, MINUTELY, 0, 5 * MINUTE) == 5
    assert count_between(known.definition, Every(1), 0, 5 * MINUTE) == SCAN_MAX


def test_one_shot() -> None:
    definition = schedule(cron="", run_at=5 * MINUTE).definition
    ticks = OneTick(5 * MINUTE)
    for created in (MINUTE, 9 * MINUTE):
        cursor = first_cursor(definition, created)
        known = schedule(cron="", run_at=5 * MINUTE, cursor=cursor)
        made = plan(known, ticks, 9 * MINUTE)
        assert made.run == (5 * MINUTE,)
        assert made.next_at is None
        again = schedule(cron="", run_at=5 * MINUTE, cursor=made.cursor)
        assert plan(again, ticks, 9 * MINUTE).run == ()


def test_backfill_is_a_range_and_bounded() -> None:
    definition = schedule().definition
    assert backfill(definition, MINUTELY, MINUTE, 4 * MINUTE) == (MINUTE, 2 * MINUTE, 3 * MINUTE)
    assert backfill(definition, MINUTELY, MINUTE + 1, 2 * MINUTE) == ()
    with pytest.raises(InvalidJob):
        backfill(definition, Every(1), 0, 10_000)


def test_cron_is_asked_with_moments() -> None:
    class Hourly:
        def next(self, after: datetime, zone: Any, policy: Any) -> datetime | None:
            assert after.tzinfo is not None
            assert (zone, policy) == ("Europe/Berlin", "debian")
            return after.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)

    ticks = CronTicks(Hourly(), "Europe/Berlin", "debian")
    noon = instant_of(datetime(2024, 1, 1, 12, 0, 0, 1, UTC))
    assert moment_of(ticks.next(noon) or 0) == datetime(2024, 1, 1, 13, tzinfo=UTC)


def test_instances_have_one_identity_and_one_jitter() -> None:
    known = schedule(jitter_s=30.0)
    first, again = instance(known, MINUTE, MINUTE), instance(known, MINUTE, 9 * MINUTE)
    assert (first.id, first.due_at) == (again.id, again.due_at)
    assert MINUTE <= first.due_at < MINUTE + 30 * SECOND
    other = instance(known, 2 * MINUTE, MINUTE)
    assert other.due_at - 2 * MINUTE != first.due_at - MINUTE


def test_a_plan_becomes_a_firing() -> None:
    known = schedule()
    made = plan(known, MINUTELY, 2 * MINUTE)
    firing = planned(known, made, 2 * MINUTE)
    assert firing.advance is not None
    assert (firing.advance.before, firing.advance.cursor) == (0, 2 * MINUTE)
    assert [job.tick for job in firing.jobs] == [MINUTE, 2 * MINUTE]
    by_hand = aside(known, [5], 5, Overlap.SKIP)
    assert by_hand.advance is None
    assert by_hand.overlap is Overlap.SKIP


@pytest.mark.parametrize(
    ("policy", "live", "waiting", "entry"),
    [
        (Overlap.ALLOW, 5, 0, Entry(True)),
        (Overlap.SKIP, 0, 0, Entry(True)),
        (Overlap.SKIP, 1, 0, Entry(False)),
        (Overlap.QUEUE, 0, 0, Entry(True)),
        (Overlap.QUEUE, 2, 1, Entry(True, waiting=True)),
        (Overlap.QUEUE, 4, 3, Entry(False)),
        (Overlap.CANCEL_PREVIOUS, 1, 0, Entry(True, waiting=True, cancel_others=True)),
    ],
)
def test_entries(policy: Overlap, live: int, waiting: int, entry: Entry) -> None:
    assert decide_entry(policy, live, waiting, line_max=3) == entry

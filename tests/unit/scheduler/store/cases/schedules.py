"""Cases of schedules: editing, firing, overlap."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from hyperscale.scheduler.errors import (
    AlreadyExists,
    NotFound,
    StaleLeader,
    StoreFull,
    VersionConflict,
)
from hyperscale.scheduler.queue.job import Failure, JobState
from hyperscale.scheduler.schedules.firing import aside
from hyperscale.scheduler.schedules.schedule import Fired, Overlap, Schedule
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter
from tests.unit.scheduler.store.cases.harness import (
    LIMITS,
    NOON,
    at,
    failed,
    finish,
    firing,
    scenario,
    schedule,
    start_one,
    take,
)


async def fire(store: Store, known: Schedule, *seconds: float, epoch: int = 0) -> Fired:
    """Fires and succeeds."""
    now = at(max(seconds))
    (fired,) = await store.fire([firing(known, *map(at, seconds), now=now)], now, epoch)
    assert isinstance(fired, Fired), fired
    return fired


class ScheduleCases:
    @scenario
    async def test_made_edited_listed_deleted(self, store: Store) -> None:
        made = await store.create_schedule(schedule("b"))
        assert await store.create_schedule(schedule("b")) == made
        with pytest.raises(AlreadyExists):
            await store.create_schedule(replace(schedule("b"), created_at=at(1)))
        await store.create_schedule(schedule("a"))
        assert [each.id for each in await store.schedules()] == ["a", "b"]
        assert [each.id for each in await store.schedules(after="a")] == ["b"]
        paused = replace(made.definition, paused=True)
        edited = await store.update_schedule("b", 1, paused, at(5), None, cursor=at(5), skipped=2)
        assert await store.schedule("b") == edited
        assert (edited.version, edited.cursor, edited.next_at) == (2, at(5), None)
        assert edited.skipped == 2
        with pytest.raises(VersionConflict):
            await store.update_schedule("b", 1, paused, at(6), None)
        with pytest.raises(VersionConflict):
            await store.delete_schedule("b", 1)
        await store.delete_schedule("b", 2)
        assert await store.schedule("b") is None
        for gone in (store.delete_schedule("b"), store.update_schedule("b", 2, paused, NOON, None)):
            with pytest.raises(NotFound):
                await gone

    @scenario
    async def test_the_cursor_never_moves_back(self, store: Store) -> None:
        made = await store.create_schedule(schedule())
        edited = await store.update_schedule(
            made.id, 1, made.definition, at(1), at(60), cursor=at(-500)
        )
        assert edited.cursor == NOON

    @scenario
    async def test_the_number_of_schedules_is_bounded(self, store: Store) -> None:
        for i in range(LIMITS.schedules_max):
            await store.create_schedule(schedule(f"s{i}"))
        with pytest.raises(StoreFull):
            await store.create_schedule(schedule("more"))
        await store.delete_schedule("s0")
        await store.create_schedule(schedule("more"))

    @scenario
    async def test_due_schedules_come_earliest_first(self, store: Store) -> None:
        await store.create_schedule(schedule("late", next_at=at(90)))
        await store.create_schedule(schedule("soon", next_at=at(60)))
        await store.create_schedule(schedule("never", next_at=None))
        assert await store.next_schedule_at() == at(60)
        assert await store.due_schedules(at(59)) == []
        assert [each.id for each in await store.due_schedules(at(90))] == ["soon", "late"]
        assert [each.id for each in await store.due_schedules(at(90), 1)] == ["soon"]

    @scenario
    async def test_firing_makes_the_instance_and_moves_the_cursor(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        fired = await fire(store, known, 60)
        assert fired.schedule == await store.schedule(known.id)
        assert (fired.schedule.cursor, fired.schedule.next_at) == (at(60), at(120))
        assert (fired.schedule.fired, fired.schedule.last_tick) == (1, at(60))
        (made,) = fired.jobs
        assert await store.job(made.id) == made
        assert (made.schedule_id, made.tick) == (known.id, at(60))
        page = await store.jobs(JobFilter(schedule_id=known.id))
        assert page.jobs == (made,)

    @scenario
    async def test_a_tick_is_fired_once_whoever_fires_it(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        two_leaders = [firing(known, at(60), now=at(60)), firing(known, at(60), now=at(61))]
        outcomes = await asyncio.gather(*(store.fire([one], at(61)) for one in two_leaders))
        kinds = sorted(type(outcome).__name__ for (outcome,) in outcomes)
        assert kinds == ["Fired", "VersionConflict"]
        assert (await store.counts()).states[JobState.PENDING] == 1

    @scenario
    async def test_a_tick_that_exists_is_left_as_it_is(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        (by_hand,) = await store.fire([aside(known, [at(60)], at(30))], at(30))
        assert isinstance(by_hand, Fired)
        assert by_hand.schedule.cursor == NOON
        fired = await fire(store, by_hand.schedule, 60)
        assert (fired.jobs, fired.existing) == ((), 1)
        assert fired.schedule.cursor == at(60)

    @scenario
    async def test_a_replaced_leader_fires_nothing(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        await store.raise_epoch(5)
        assert await store.epoch() == 5
        (outcome,) = await store.fire([firing(known, at(60), now=at(60))], at(60), 4)
        assert isinstance(outcome, StaleLeader)
        with pytest.raises(StaleLeader):
            await store.raise_epoch(4)
        assert await store.schedule(known.id) == known
        await fire(store, known, 60, epoch=5)

    @scenario
    async def test_an_edit_voids_a_decision_made_before_it(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        await store.update_schedule(known.id, 1, known.definition, at(1), at(60))
        (outcome,) = await store.fire([firing(known, at(60), now=at(60))], at(60))
        assert isinstance(outcome, VersionConflict)
        (outcome,) = await store.fire([firing(schedule("gone"), at(60), now=at(60))], at(60))
        assert isinstance(outcome, NotFound)
        assert (await store.counts()).states[JobState.PENDING] == 0

    @scenario
    async def test_a_tick_voids_an_edit_that_counted_it(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        fired = (await fire(store, known, 60)).schedule
        with pytest.raises(VersionConflict):
            await store.update_schedule(
                known.id, 1, known.definition, at(61), at(120), at(61), 1, before=known.cursor
            )
        assert await store.schedule(known.id) == fired
        edited = await store.update_schedule(
            known.id, 1, known.definition, at(61), at(120), at(61), before=fired.cursor
        )
        assert (edited.version, edited.cursor, edited.skipped) == (2, at(61), 0)

    @scenario
    async def test_missed_ticks_are_counted(self, store: Store) -> None:
        known = await store.create_schedule(schedule())
        (fired,) = await store.fire([firing(known, at(60), now=at(60), missed=7)], at(60))
        assert isinstance(fired, Fired)
        assert fired.schedule.missed == 7

    @scenario
    async def test_allow_runs_them_side_by_side(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.ALLOW))
        await fire(store, known, 60, 120, 180)
        assert len(await take(store, limit=5, now=at(180))) == 3

    @scenario
    async def test_skip_counts_what_it_skips(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.SKIP))
        fired = await fire(store, known, 60)
        running = await start_one(store, now=at(60))
        fired = await fire(store, fired.schedule, 120)
        assert (fired.jobs, fired.skipped, fired.schedule.skipped) == ((), 1, 1)
        await finish(store, running, at(130))
        fired = await fire(store, fired.schedule, 180)
        assert len(fired.jobs) == 1

    @scenario
    async def test_queue_runs_them_one_after_another(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        fired = await fire(store, known, 60, 120, 180)
        assert [each.waiting for each in fired.jobs] == [False, True, True]
        assert (await store.counts()).waiting == 2
        order = []
        now = at(200)
        for _ in range(3):
            (held,) = await take(store, limit=5, now=now)
            order.append(held.id)
            await store.report(failed(held, Failure.PERMANENT), now)
        assert order == [each.id for each in fired.jobs]
        assert (await store.counts()).waiting == 0

    @scenario
    async def test_a_retry_keeps_its_place_in_the_line(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        await fire(store, known, 60, 120)
        held = await start_one(store, now=at(120))
        await store.report(failed(held), at(120))
        assert await take(store, limit=5, now=at(121)) == []
        (again,) = await take(store, limit=5, now=at(200))
        assert again.id == held.id

    @scenario
    async def test_the_line_is_bounded(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        ticks = [60.0 * i for i in range(1, 7)]
        fired = await fire(store, known, *ticks)
        assert len(fired.jobs) == 1 + LIMITS.line_max
        assert fired.skipped == 5 - LIMITS.line_max

    @scenario
    async def test_cancelling_moves_the_line(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        first, second, third = (await fire(store, known, 60, 120, 180)).jobs
        assert (await store.cancel(second.id, at(200))).state is JobState.CANCELLED
        assert (await store.counts()).waiting == 1
        await store.cancel(first.id, at(201))
        (held,) = await take(store, limit=5, now=at(202))
        assert held.id == third.id
        assert (await store.counts()).waiting == 0

    @scenario
    async def test_a_lost_worker_moves_the_line(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        first, second = (await fire(store, known, 60, 120)).jobs
        now = at(200)
        for _ in range(3):
            assert (await start_one(store, now=now)).id == first.id
            (lost,) = await store.expire(now + at(100) - NOON)
            now = max(lost.due_at, now) + at(20) - NOON
        assert lost.state is JobState.FAILED
        assert (await start_one(store, now=now)).id == second.id

    @scenario
    async def test_cancel_previous_waits_for_what_runs(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.CANCEL_PREVIOUS))
        fired = await fire(store, known, 60)
        running = await start_one(store, now=at(60))
        fired = await fire(store, fired.schedule, 120)
        assert fired.cancelled == (running.id,)
        assert await take(store, limit=5, now=at(120)) == []
        third = await fire(store, fired.schedule, 180)
        assert third.cancelled == (fired.jobs[0].id,)
        asked = await store.job(running.id)
        assert asked is not None
        assert asked.cancel_requested
        await store.report(failed(running, Failure.CANCELLED), at(181))
        (held,) = await take(store, limit=5, now=at(182))
        assert held.id == third.jobs[0].id

    @scenario
    async def test_cancel_previous_replaces_what_has_not_started(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.CANCEL_PREVIOUS))
        first, second = (await fire(store, known, 60, 120)).jobs
        (held,) = await take(store, limit=5, now=at(120))
        assert held.id == second.id
        old = await store.job(first.id)
        assert old is not None
        assert old.state is JobState.CANCELLED

    @scenario
    async def test_an_end_and_a_tick_at_once_leave_nobody_waiting(self, store: Store) -> None:
        """The race that strands an instance: it joins a line whose head has just gone."""
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        fired = await fire(store, known, 60)
        for i in range(2, 30):
            held = await start_one(store, now=at(60 * i))
            fired_now, _ = await asyncio.gather(
                fire(store, fired.schedule, 60 * i), finish(store, held, at(60 * i))
            )
            assert len(fired_now.jobs) == 1
            fired = fired_now
            assert (await store.counts()).waiting == 0

    @scenario
    async def test_many_schedules_in_one_call(self, store: Store) -> None:
        known = [await store.create_schedule(schedule(f"s{i:02}")) for i in range(40)]
        outcomes = await store.fire([firing(one, at(60), now=at(60)) for one in known], at(60))
        assert all(isinstance(outcome, Fired) for outcome in outcomes)
        assert (await store.counts()).ready == 40

    @scenario
    async def test_many_ticks_in_one_firing(self, store: Store) -> None:
        ticks = [at(i) for i in range(1, 51)]
        wanted = {
            Overlap.ALLOW: (50, 0, 0),
            Overlap.SKIP: (1, 49, 0),
            Overlap.QUEUE: (1 + LIMITS.line_max, 49 - LIMITS.line_max, 0),
            Overlap.CANCEL_PREVIOUS: (50, 0, 49),
        }
        for overlap, expected in wanted.items():
            known = await store.create_schedule(schedule(f"s-{overlap}", overlap))
            (fired,) = await store.fire([firing(known, *ticks, now=at(50))], at(50))
            assert isinstance(fired, Fired), fired
            assert (len(fired.jobs), fired.skipped, len(fired.cancelled)) == expected
            (again,) = await store.fire([aside(known, ticks, at(51))], at(51))
            assert isinstance(again, Fired), again
            assert again.existing == len(fired.jobs)

    @scenario
    async def test_firings_of_one_call_see_each_other(self, store: Store) -> None:
        for overlap in (Overlap.SKIP, Overlap.QUEUE):
            known = await store.create_schedule(schedule(f"s-{overlap}", overlap))
            outcomes = await store.fire(
                [aside(known, [at(1)], at(5)), aside(known, [at(2)], at(5))], at(5)
            )
            first, second = outcomes
            assert isinstance(first, Fired)
            assert isinstance(second, Fired)
            assert [each.waiting for each in first.jobs] == [False]
            if overlap is Overlap.SKIP:
                assert (second.jobs, second.skipped) == ((), 1)
            else:
                assert [each.waiting for each in second.jobs] == [True]

    @scenario
    async def test_instances_outlive_their_schedule(self, store: Store) -> None:
        known = await store.create_schedule(schedule(overlap=Overlap.QUEUE))
        first, second = (await fire(store, known, 60, 120)).jobs
        await store.delete_schedule(known.id)
        for expected in (first, second):
            held = await start_one(store, now=at(200))
            assert held.id == expected.id
            await finish(store, held, at(200))

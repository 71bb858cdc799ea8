"""Adding, editing, pausing, and running by hand, on the memory store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.errors import InvalidJob, NotFound, VersionConflict
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.firing import decide
from hyperscale.scheduler.schedules.schedule import Fired, Schedule, ScheduleDefinition
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from tests.unit.scheduler.store.cases.harness import NOON, at

EVERY_MINUTE = ScheduleDefinition(
    name="m", cron="* * * * *", job=JobSpec(name="job", kind="python")
)


def test_added_with_its_next_tick() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        assert made.next_at == at(60)
        assert await store.schedule("m") == made

    asyncio.run(run())


@pytest.mark.parametrize(
    "change",
    [
        {"cron": "61 * * * *"},
        {"zone": "Nowhere/X"},
        {"dst": "maybe"},
        {"name": ""},
        {"cron": "", "run_at": NOON, "dst": "maybe"},
        {"cron": "", "run_at": NOON, "zone": "Nowhere/X"},
        {"paused": True, "dst": "maybe"},
    ],
)
def test_what_cannot_run_is_refused_at_once(change: dict[str, Any]) -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        with pytest.raises(HyperscaleError):
            await schedules.add(store, "m", replace(EVERY_MINUTE, **change), NOON)
        assert await store.schedules() == []

    asyncio.run(run())


def test_an_unknown_dst_policy_is_told_with_what_was_meant() -> None:
    wrong = replace(EVERY_MINUTE, dst="Debain")
    with pytest.raises(InvalidJob) as refused:
        asyncio.run(schedules.add(Store(MemoryGround()), "m", wrong, NOON))
    assert "'Debain' is not a DST policy" in refused.value.message
    assert "'debian'" in refused.value.hint


def test_a_pause_is_counted_when_it_ends() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        await schedules.add(store, "m", EVERY_MINUTE, NOON)
        paused = await schedules.set_paused(store, "m", True, at(30))
        assert paused.next_at is None
        assert await schedules.set_paused(store, "m", True, at(31)) == paused
        resumed = await schedules.set_paused(store, "m", False, at(30 + 600))
        assert resumed.skipped == 10
        assert resumed.next_at == at(660)

    asyncio.run(run())


def test_an_edit_counts_from_now_on() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        hourly = replace(EVERY_MINUTE, cron="0 * * * *")
        changed = await schedules.change(store, "m", made.version, hourly, at(61))
        assert changed.next_at == at(3600)
        assert changed.skipped == 1, "the tick of the old definition that nobody had decided"
        with pytest.raises(VersionConflict):
            await schedules.change(store, "m", made.version, hourly, at(62))

    asyncio.run(run())


class Racing(Store):
    """Somebody acts between a reader's look and what it makes of it."""

    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def schedule(self, schedule_id: str) -> Schedule | None:
        known = await super().schedule(schedule_id)
        if self.meanwhile is not None:
            await self.meanwhile()
        return known


async def fire_due(store: Store, now: Instant) -> None:
    due = iter(await store.due_schedules(now))
    for outcome in await store.fire(decide(due, now).firings, now):
        assert isinstance(outcome, Fired), outcome


def test_a_tick_that_fires_during_an_edit_is_not_skipped_too() -> None:
    async def run() -> None:
        store = Racing(MemoryGround())
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        store.meanwhile = partial(fire_due, store, at(61))
        renamed = replace(EVERY_MINUTE, name="renamed")
        changed = await schedules.change(store, "m", made.version, renamed, at(61))
        assert (changed.version, changed.definition) == (2, renamed)
        assert (changed.fired, changed.skipped, changed.next_at) == (1, 0, at(120))

    asyncio.run(run())


def test_of_two_edits_at_once_one_is_refused_and_ticks_without_end_refuse_any() -> None:
    async def run() -> None:
        store = Racing(MemoryGround())
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        renamed = replace(EVERY_MINUTE, name="renamed")
        looks = 0

        async def edit() -> None:
            store.meanwhile = None
            await schedules.change(store, "m", made.version, renamed, at(10))

        store.meanwhile = edit
        with pytest.raises(VersionConflict):
            await schedules.change(store, "m", made.version, EVERY_MINUTE, at(10))
        edited = await store.schedule("m")
        assert edited is not None
        assert edited.definition == renamed

        async def tick() -> None:
            nonlocal looks
            looks += 1
            await fire_due(store, at(60 * looks))

        store.meanwhile = tick
        with pytest.raises(VersionConflict):
            await schedules.change(store, "m", edited.version, EVERY_MINUTE, at(10))
        assert looks == schedules.CONFLICTS_MAX

    asyncio.run(run())


@pytest.mark.parametrize("pause", [False, True])
def test_a_run_at_that_has_gone_by_is_still_to_come_after_an_edit(pause: bool) -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        once = replace(EVERY_MINUTE, cron="", run_at=at(60))
        known = await schedules.add(store, "m", once, NOON)
        if pause:
            await schedules.set_paused(store, "m", True, at(1))
            await schedules.set_paused(store, "m", False, at(86_400))
        else:
            await schedules.change(store, "m", known.version, replace(once, name="n"), at(61))
        await fire_due(store, at(86_401))
        fired = await store.schedule("m")
        assert fired is not None
        assert (fired.fired, fired.missed, fired.skipped) == (1, 0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("change", [{"run_at": at(600)}, {"end_at": at(50)}])
def test_a_run_at_that_an_edit_lets_go_is_skipped(change: dict[str, Any]) -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        once = replace(EVERY_MINUTE, cron="", run_at=at(60))
        known = await schedules.add(store, "m", once, NOON)
        changed = await schedules.change(store, "m", known.version, replace(once, **change), at(61))
        assert (changed.fired, changed.skipped) == (0, 1)
        assert changed.next_at == change.get("run_at")

    asyncio.run(run())


def test_others_have_their_turn_while_a_pause_is_counted() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        await schedules.add(store, "m", EVERY_MINUTE, NOON)
        await schedules.set_paused(store, "m", True, at(1))
        turned = asyncio.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        await schedules.set_paused(store, "m", False, at(86_400))
        assert turned.is_set()

    asyncio.run(run())


def test_by_hand_and_backfill_leave_the_order_of_ticks_alone() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        assert len((await schedules.trigger(store, "m", at(10))).jobs) == 1
        filled = await schedules.backfill(store, "m", at(-600), at(0), at(11))
        assert len(filled.jobs) == 10
        again = await schedules.backfill(store, "m", at(-600), at(0), at(12))
        assert (len(again.jobs), again.existing) == (0, 10)
        known = await store.schedule("m")
        assert known is not None
        assert (known.cursor, known.next_at) == (made.cursor, made.next_at)
        with pytest.raises(NotFound):
            await schedules.trigger(store, "none", at(13))

    asyncio.run(run())


def test_one_whose_zone_is_gone_is_brought_back_by_an_edit() -> None:
    async def run() -> None:
        store = Store(MemoryGround())
        lost = replace(EVERY_MINUTE, zone="Atlantis/Capital")
        await store.create_schedule(
            Schedule(
                id="m", definition=lost, created_at=NOON, updated_at=NOON, cursor=NOON, next_at=None
            )
        )
        back = await schedules.change(store, "m", 1, EVERY_MINUTE, at(61))
        assert back.next_at == at(120)
        assert back.skipped == 0

    asyncio.run(run())

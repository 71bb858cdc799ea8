"""Adding, editing, pausing, and running by hand, on the memory store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.coordinator import schedules
from hyperscale.scheduler.model.errors import InvalidJob, NotFound, VersionConflict
from hyperscale.scheduler.model.schedule import ScheduleDefinition
from hyperscale.scheduler.model.spec import JobSpec
from hyperscale.scheduler.stores.memory import MemoryStore
from tests.unit.scheduler.stores.contract.harness import NOON, at

EVERY_MINUTE = ScheduleDefinition(
    name="m", cron="* * * * *", job=JobSpec(name="job", kind="python")
)


def test_added_with_its_next_tick() -> None:
    async def run() -> None:
        store = MemoryStore()
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
        store = MemoryStore()
        with pytest.raises(HyperscaleError):
            await schedules.add(store, "m", replace(EVERY_MINUTE, **change), NOON)
        assert await store.schedules() == []

    asyncio.run(run())


def test_an_unknown_dst_policy_is_told_with_what_was_meant() -> None:
    wrong = replace(EVERY_MINUTE, dst="Debain")
    with pytest.raises(InvalidJob) as refused:
        asyncio.run(schedules.add(MemoryStore(), "m", wrong, NOON))
    assert "'Debain' is not a DST policy" in refused.value.message
    assert "'debian'" in refused.value.hint


def test_a_pause_is_counted_when_it_ends() -> None:
    async def run() -> None:
        store = MemoryStore()
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
        store = MemoryStore()
        made = await schedules.add(store, "m", EVERY_MINUTE, NOON)
        hourly = replace(EVERY_MINUTE, cron="0 * * * *")
        changed = await schedules.change(store, "m", made.version, hourly, at(61))
        assert changed.next_at == at(3600)
        assert changed.skipped == 1, "the tick of the old definition that nobody had decided"
        with pytest.raises(VersionConflict):
            await schedules.change(store, "m", made.version, hourly, at(62))

    asyncio.run(run())


def test_by_hand_and_backfill_leave_the_order_of_ticks_alone() -> None:
    async def run() -> None:
        store = MemoryStore()
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

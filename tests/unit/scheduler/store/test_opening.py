"""Addresses of stores; cursors of pages; waiting for change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.types import cursor_of, position_of
from hyperscale.scheduler.store.wakeups import Wakeups
from tests.unit.scheduler.store.cases.harness import NOON, job


def test_addresses(tmp_path: Path) -> None:
    async def opened(address: str, kind: type) -> None:
        store = await open_store(address)
        assert isinstance(store._ground, kind)
        await store.close()

    asyncio.run(opened("memory:", MemoryGround))
    asyncio.run(opened(f"sqlite:{tmp_path}/a.db", SqliteGround))
    asyncio.run(opened(f"sqlite://{tmp_path}/b.db", SqliteGround))
    assert {path.name for path in tmp_path.glob("*.db")} == {"a.db", "b.db"}


@pytest.mark.parametrize("address", ["", "memory", "sqlite:", "mysql://x", "redis:x", "jobs.db"])
def test_other_addresses_are_refused_with_a_hint(address: str) -> None:
    with pytest.raises(BadInput) as refusal:
        asyncio.run(open_store(address))
    assert "sqlite:FILE" in refusal.value.hint


def test_a_cursor_comes_back() -> None:
    assert position_of("") is None
    assert position_of(cursor_of(job("a.b.c"))) == (NOON, "a.b.c")
    for nonsense in ("x", "1", "x.y", "-1.a", "٣.a", "1" * 19 + ".a"):
        with pytest.raises(InvalidJob):
            position_of(nonsense)


def test_a_foreign_change_wakes_once_and_an_own_one_not_again() -> None:
    async def scenario() -> None:
        sign = 5

        async def remote() -> int:
            return sign

        wakeups = Wakeups(remote)
        mark = wakeups.mark
        assert await wakeups.changed(mark, 5), "the first look may have missed something"
        mark = wakeups.mark
        assert not await wakeups.changed(mark, 0.05)
        sign = 6
        assert await wakeups.changed(mark, 5)
        mark = wakeups.mark
        sign = 7
        wakeups.wake(7)
        assert await wakeups.changed(mark, 0)
        assert not await wakeups.changed(wakeups.mark, 0.05)

    asyncio.run(scenario())


def test_everybody_waiting_is_woken() -> None:
    async def scenario() -> None:
        wakeups = Wakeups()
        waiting = [asyncio.ensure_future(wakeups.changed(wakeups.mark, 30)) for _ in range(5)]
        await asyncio.sleep(0)
        wakeups.wake()
        assert await asyncio.gather(*waiting) == [True] * 5

    asyncio.run(scenario())

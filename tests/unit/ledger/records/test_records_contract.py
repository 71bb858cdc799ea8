"""What every durable of job records must do: alone, and among three."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records import LocalRecords, NotLeader, QuorumRecords, Records
from tests.unit.ledger.records.cluster import SETTINGS, Cluster, play
from tests.unit.sim.worlds import finish, world_of

Story = Callable[[Records, Callable[[], Coroutine[Any, Any, Records]]], Coroutine[Any, Any, None]]


def alone(story: Story) -> None:
    async def tell() -> None:
        async def restart() -> Records:
            nonlocal records
            await records.close()
            records = await opened()
            return records

        async def opened() -> LocalRecords:
            made = LocalRecords(world.host("a"), "records", "a", SETTINGS)
            await made.open()
            return made

        records = await opened()
        await story(records, restart)

    world = world_of("a")
    finish(world, tell())


def among_three(story: Story) -> None:
    async def tell(cluster: Cluster) -> None:
        async def restart() -> QuorumRecords:
            await cluster.nodes["a"].close()
            return await cluster.start("a")

        await cluster.start_all()
        await story(cluster.nodes["a"], restart)

    play(tell)


bodies = pytest.mark.parametrize("tell", [alone, among_three])


@bodies
def test_records_come_back_in_order_after_a_restart(tell: Callable[[Story], None]) -> None:
    async def story(records: Records, restart: Callable[[], Coroutine[Any, Any, Records]]) -> None:
        applied: list[int] = []
        records.on_applied.append(lambda record: applied.append(record.index))
        await records.lead(1)
        indexes = [await records.append(f"job {n % 2}", n, b"%d" % n, Fence(1)) for n in range(6)]
        assert indexes == sorted(set(indexes)) == applied
        again = await restart()
        await again.lead(2)
        assert again.jobs() == ["job 0", "job 1"]
        assert [record.payload for record in again.records("job 1")] == [b"1", b"3", b"5"]
        assert again.records("nothing") == ()
        assert await again.append("job 0", 9, b"", Fence(2)) > indexes[-1]

    tell(story)


@bodies
def test_only_a_leader_writes(tell: Callable[[Story], None]) -> None:
    async def story(records: Records, restart: Callable[[], Coroutine[Any, Any, Records]]) -> None:
        with pytest.raises(NotLeader):
            await records.append("job", 1, b"", Fence(1))
        await records.lead(1)
        records.follow(0)
        await records.append("job", 1, b"", Fence(1))
        records.follow(1)
        assert not records.status().ready
        with pytest.raises(NotLeader):
            await records.forget("job")
        with pytest.raises(NotLeader):
            await records.lead(1)

    tell(story)


@bodies
def test_what_is_forgotten_stays_forgotten(tell: Callable[[Story], None]) -> None:
    async def story(records: Records, restart: Callable[[], Coroutine[Any, Any, Records]]) -> None:
        forgotten: list[str] = []
        records.on_forgotten.append(forgotten.append)
        await records.lead(1)
        await records.append("ended", 1, b"", Fence(1), keep_s=5.0)
        await records.append("dropped", 1, b"", Fence(1))
        await records.append("open", 1, b"", Fence(1))
        await records.forget("dropped")
        await records.forget("never there")
        await asyncio.sleep(8)
        assert forgotten == ["dropped", "ended"]
        assert records.status().bytes < 200
        again = await restart()
        await again.lead(2)
        assert again.jobs() == ["open"]
        await again.append("ended", 1, b"anew", Fence(2))
        assert [record.payload for record in again.records("ended")] == [b"anew"]

    tell(story)

"""Reading by LSN, following the end, and compaction."""

from __future__ import annotations

import asyncio
import errno

import pytest

from hyperscale.ledger.wal import LogCompacted, LogDamaged, LogFailed, WriteAheadLog
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, SMALL, files_of, simulate


async def filled(host: SimHost, records: int) -> WriteAheadLog:
    log = await WriteAheadLog.open(host, DIRECTORY, SMALL)
    for number in range(1, records + 1):
        await log.append(b"%d" % number * 20)
    return log


def test_any_range_is_read_exactly() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 40)
        for again in range(2):
            for first in range(1, 42):
                for last in (first, first + 7, 100):
                    lsns = [record.lsn async for record in log.read(first, last)]
                    assert lsns == list(range(first, min(last, 40) + 1)), again
            await log.close()
            log = await WriteAheadLog.open(host, DIRECTORY, SMALL)

    simulate(story)


def test_a_read_goes_to_the_end_as_it_was_when_it_began() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 3)
        reading = log.read()
        assert (await anext(reading)).lsn == 1
        await log.append(b"later")
        assert [record.lsn async for record in reading] == [2, 3]
        await log.close()

    simulate(story)


def test_nothing_is_shown_before_it_is_durable() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 3)
        pending = log.append_nowait(b"pending")
        await host.clock.sleep(0.0002)
        assert b"pending" in files_of(world)["segment_00000001.wal"]
        assert [record.lsn async for record in log.read()] == [1, 2, 3]
        await pending
        assert [record.lsn async for record in log.read()] == [1, 2, 3, 4]
        await log.close()

    simulate(story)


def test_a_follower_sees_each_record_once_and_ends_with_the_log() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 3)
        seen: list[int] = []

        async def follow() -> None:
            seen.extend([record.lsn async for record in log.follow(2)])

        followers = [host.tasks.spawn(f"follower {n}", follow()) for n in range(3)]
        await asyncio.gather(*(log.append(b"x" * 90) for _ in range(30)))
        await log.close()
        for follower in followers:
            await follower
        assert sorted(seen) == sorted(list(range(2, 34)) * 3)

    simulate(story)


def test_a_follower_of_a_failed_log_is_told() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 2)
        following = log.follow()
        assert [(await anext(following)).lsn for _ in range(2)] == [1, 2]
        world.machines["a"].disk.sync_errors = 1.0
        pending = log.append_nowait(b"x")
        with pytest.raises(LogFailed):
            await anext(following)
        with pytest.raises(LogFailed):
            await pending

    simulate(story)


def test_compaction_removes_whole_segments_below_the_mark_and_never_the_newest() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 40)
        before = log.segment_count
        assert await log.compact(0) == 0
        removed = await log.compact(20)
        assert 0 < removed < before
        assert log.first_lsn <= 21
        assert [record.lsn async for record in log.read(21)] == list(range(21, 41))
        assert (await anext(log.read())).lsn == log.first_lsn
        with pytest.raises(LogCompacted, match="were compacted"):
            await anext(log.read(1))
        await log.compact(10**9)
        assert log.segment_count == 1
        assert await log.append(b"more") == 41
        await log.close()
        again = await WriteAheadLog.open(host, DIRECTORY, SMALL, after_lsn=40)
        assert again.last_lsn == 41
        await again.close()

    simulate(story)


@pytest.mark.parametrize("step", ["remove", "sync_directory"])
def test_a_removal_that_failed_is_tried_again_before_the_next(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it passed over, the next start would find a gap and refuse the log."""

    async def story(world: World, host: SimHost) -> None:
        log = await WriteAheadLog.open(host, DIRECTORY, SMALL)
        for number in range(40):
            await log.append(b"%d" % number * 20)
        before = log.segment_count

        async def broken(path: str) -> None:
            raise OSError(errno.EIO, "no")

        with monkeypatch.context() as patch:
            patch.setattr(host.disk, step, broken)
            with pytest.raises(OSError, match="no"):
                await log.compact(30)
        assert log.segment_count == before
        await log.compact(30)
        rest = [record.lsn async for record in log.read()]
        await log.close()
        again = await WriteAheadLog.open(host, DIRECTORY, SMALL, after_lsn=30)
        assert [record.lsn async for record in again.read()] == rest
        await again.close()

    simulate(story)


def test_a_reader_overtaken_by_compaction_is_told() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 40)
        reading = log.read()
        await anext(reading)
        await log.compact(40)
        with pytest.raises(LogCompacted):
            async for _ in reading:
                pass
        await log.close()

    simulate(story)


def test_rot_under_a_reader_is_told_and_nothing_false_is_shown() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await filled(host, 40)
        world.machines["a"].disk.file(f"{DIRECTORY}/segment_00000002.wal").data[200] ^= 1
        seen: list[bytes] = []

        async def read() -> None:
            async for record in log.read():
                seen.append(record.payload)  # noqa: PERF401 - kept when it raises

        with pytest.raises(LogDamaged):
            await read()
        assert seen == [b"%d" % number * 20 for number in range(1, len(seen) + 1)]
        await log.close()

    simulate(story)

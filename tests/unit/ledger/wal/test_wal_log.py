"""The log as callers see it: order, batches, waiting, giving up, failing, closing."""

from __future__ import annotations

import asyncio
import errno
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from hyperscale.ledger.wal import (
    LogClosed,
    LogFailed,
    LogFull,
    RecordTooLarge,
    WalSettings,
    WriteAheadLog,
)
from hyperscale.sim.disk import DiskImage
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, SMALL, simulate, start, write

STALLED = 1e6
"""A disk this many times slower does not come back within a test."""


def disk_of(world: World) -> DiskImage:
    return world.machines["a"].disk


async def opened(host: SimHost, settings: WalSettings | None = None) -> WriteAheadLog:
    return await WriteAheadLog.open(host, DIRECTORY, settings)


async def refused(work: Coroutine[Any, Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await work


def test_lsns_are_dense_and_begin_with_one() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        assert [await log.append(b"%d" % number) for number in range(3)] == [1, 2, 3]
        assert await log.append_many([b"a", b"b"]) == range(4, 6)
        assert await log.append_many([]) == range(0)
        assert (log.first_lsn, log.last_lsn) == (1, 5)
        await log.close()

    simulate(story)


def test_concurrent_appends_share_a_sync() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        lsns = await asyncio.gather(*(log.append(b"%d" % number) for number in range(500)))
        assert lsns == list(range(1, 501)), "in the order of the calls"
        assert log.stats.batches == 1
        assert log.stats.batch_records_mean == 500
        await log.close()

    simulate(story)


def test_a_batch_has_limits() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(batch_entries_max=10, batch_bytes_max=1_000))
        await asyncio.gather(*(log.append(b"") for _ in range(25)))
        assert log.stats.batch_records_max == 10
        before = log.stats.batches
        await asyncio.gather(*(log.append(b"x" * 600) for _ in range(3)))
        assert log.stats.batches == before + 3
        await log.append(b"x" * 5_000)
        await log.close()

    simulate(story)


def test_many_records_stay_together_over_batches_and_segments() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, SMALL)
        payloads = [b"%d" % number * 30 for number in range(50)]
        stranger = host.tasks.spawn("stranger", log.append(b"stranger"))
        lsns = await log.append_many(payloads)
        await stranger
        assert len(lsns) == 50
        assert log.segment_count > 2
        read = [record.payload async for record in log.read(lsns[0], lsns[-1])]
        assert read == payloads
        await log.close()

    simulate(story)


def test_an_oversized_record_is_refused_before_anything_is_written() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(payload_bytes_max=10))
        await refused(log.append(b"x" * 11), RecordTooLarge)
        await refused(log.append_many([b"x", b"x" * 11]), RecordTooLarge)
        assert await log.append(b"x" * 10) == 1
        await log.close()

    simulate(story)


def test_a_cancelled_caller_harms_nobody() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        tasks = [host.tasks.spawn(f"{n}", log.append(b"%d" % n)) for n in range(100)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        others = [await task for number, task in enumerate(tasks) if number % 3]
        assert others == sorted(others)
        written = [int(record.payload) async for record in log.read()]
        assert written == [number for number in range(100) if number % 3]
        await log.close()

    simulate(story)


def test_a_caller_cancelled_during_the_sync_harms_nobody() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        tasks = [host.tasks.spawn(f"{n}", log.append(b"%d" % n)) for n in range(10)]
        await host.clock.sleep(0.0002)
        assert log.last_lsn == 0
        tasks[0].cancel()
        tasks[9].cancel()
        assert [await task for task in tasks[1:9]] == list(range(2, 10))
        assert log.last_lsn == 10, "the writer had them already"
        await log.close()

    simulate(story)


def test_a_full_queue_makes_callers_wait_and_refuses_those_who_do_not() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(queue_entries_max=5, batch_entries_max=2))
        disk_of(world).slow_factor = 1_000.0
        first = host.tasks.spawn("first", log.append(b"first"))
        await host.clock.sleep(0.001)
        accepted = [log.append_nowait(b"%d" % number) for number in range(5)]
        with pytest.raises(LogFull):
            log.append_nowait(b"too many")
        waiting = [host.tasks.spawn(f"w{n}", log.append(b"w%d" % n)) for n in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        disk_of(world).slow_factor = 1.0
        assert await first == 1
        assert [await done for done in accepted] == [2, 3, 4, 5, 6]
        assert [await waiting[0], await waiting[2]] == [7, 8]
        await log.close()

    simulate(story)


def test_waiting_callers_who_give_up_leave_nothing_in_memory() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(queue_entries_max=5))
        disk_of(world).slow_factor = STALLED
        for _ in range(50):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await log.append(b"x")
        assert log._inbox.count == 0
        assert not log._inbox._outside

    simulate(story)


@pytest.mark.parametrize("fault", ["append", "sync", "full"])
def test_a_failed_disk_fails_everyone_and_ends_the_log(fault: str) -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(queue_entries_max=5, batch_entries_max=3))
        assert await log.append(b"good") == 1
        disk = disk_of(world)
        if fault == "append":
            disk.append_errors = 1.0
        elif fault == "sync":
            disk.sync_errors = 1.0
        else:
            disk.capacity = disk.used_bytes
        doomed = [host.tasks.spawn(f"{n}", log.append(b"%d" % n)) for n in range(20)]
        flushing = host.tasks.spawn("flush", log.flush())
        for task in [*doomed, flushing]:
            with pytest.raises(LogFailed) as failure:
                await task
        wanted = errno.ENOSPC if fault == "full" else errno.EIO
        assert isinstance(failure.value.cause, OSError)
        assert failure.value.cause.errno == wanted
        disk.heal()
        assert isinstance(log.failure, LogFailed)
        await refused(log.append(b"late"), LogFailed)
        await refused(log.append_many([b"late"]), LogFailed)
        await refused(log.flush(), LogFailed)
        with pytest.raises(LogFailed):
            log.append_nowait(b"late")
        await log.close()
        again = await opened(host)
        payloads = [record.payload async for record in again.read()]
        assert payloads[0] == b"good"
        assert b"late" not in payloads
        await again.close()

    simulate(story)


def test_many_records_fail_together_and_leave_no_error_unseen() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, SMALL)
        disk_of(world).append_errors = 1.0
        await refused(log.append_many([b"x" * 50] * 40), LogFailed)
        gc.collect()
        await asyncio.sleep(0)

    simulate(story)


def test_flush_returns_when_what_was_handed_over_is_durable() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        await log.flush()
        done = [log.append_nowait(b"%d" % number) for number in range(50)]
        await log.flush()
        assert all(future.done() for future in done)
        world.crash("a", "lost-unsynced")

    async def after(world: World, host: SimHost) -> int:
        return len([record async for record in (await opened(host)).read()])

    def both(world: World, host: SimHost) -> Coroutine[Any, Any, int]:
        async def told() -> int:
            await story(world, host)
            world.restart("a")
            await asyncio.sleep(0)
            return await after(world, world.host("a"))

        return told()

    assert simulate(both) == 50


def test_close_writes_everything_that_was_handed_over() -> None:
    async def work(log: WriteAheadLog) -> None:
        for number in range(1_000):
            log.append_nowait(b"%d" % number)

    files = write(work, WalSettings())
    assert start(files, WalSettings()).payloads == [b"%d" % number for number in range(1_000)]


def test_close_lets_in_those_who_wait_and_nobody_after() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host, WalSettings(queue_entries_max=2, batch_entries_max=2))
        waiting = [host.tasks.spawn(f"{n}", log.append(b"%d" % n)) for n in range(9)]
        await asyncio.sleep(0)
        closing = host.tasks.spawn("close", log.close())
        await asyncio.sleep(0)
        await refused(log.append(b"late"), LogClosed)
        assert [await task for task in waiting] == list(range(1, 10))
        await closing
        await log.close()
        assert log.failure is None

    simulate(story)


def test_a_close_that_fails_says_so_once() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        await log.append(b"x")
        disk_of(world).sync_errors = 1.0
        await refused(log.close(), LogFailed)
        await log.close()

    simulate(story)


def test_a_stopped_host_leaves_nobody_waiting() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        disk_of(world).slow_factor = STALLED
        done = log.append_nowait(b"x")
        await asyncio.sleep(0.01)
        stopping = asyncio.get_running_loop().create_task(host.tasks.stop())
        with pytest.raises(LogClosed):
            await done
        await refused(log.append(b"y"), LogClosed)
        stopping.cancel()

    simulate(story)


def test_segments_rotate_at_their_size() -> None:
    async def work(log: WriteAheadLog) -> None:
        for _ in range(20):
            await log.append(b"x" * 100)
        await log.append(b"y" * 1_000)

    files = write(work)
    large = [name for name, data in files.items() if len(data) > SMALL.segment_bytes_max + 32]
    assert len(large) == 1, "only the one that holds a record larger than a segment"
    assert len(start(files).records) == 21


def test_stats_count_what_was_written() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await opened(host)
        await asyncio.gather(*(log.append(b"x" * 100) for _ in range(10)))
        assert (log.stats.records, log.stats.batches, log.stats.bytes) == (10, 1, 1320)
        assert log.stats.commit_s_max > 0
        assert log.size_bytes == 64 + 1320
        await log.close()

    simulate(story)

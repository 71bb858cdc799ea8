"""What a power cut leaves, and what a broken disk answers."""

from __future__ import annotations

import asyncio
import errno

import pytest

from hyperscale.runtime.host import Disk
from hyperscale.sim.world import World
from tests.unit.sim.worlds import finish, world_of


def disk_of(world: World) -> Disk:
    return world.host("a").disk


async def write(world: World, path: str, data: bytes, sync: bool = True) -> None:
    file = await disk_of(world).open(path)
    await file.append(data)
    if sync:
        await file.sync()
        await disk_of(world).sync_directory("")
    await file.close()


async def power_cut(world: World, disk: str = "lost-unsynced") -> None:
    world.crash("a", disk)  # type: ignore[arg-type]
    world.restart("a")
    await asyncio.sleep(0)


def test_files_and_names() -> None:
    world = world_of("a")

    async def story() -> None:
        disk = disk_of(world)
        await disk.make_directory("d/e")
        await write(world, "d/e/x", b"hello", sync=False)
        assert await disk.list("d") == ["e"]
        assert await disk.list("nowhere") == []
        assert await disk.size("d/e/x") == 5
        assert await disk.read("d/e/x", 1, 3) == b"ell"
        await disk.rename("d/e/x", "y")
        assert await disk.list("") == ["d", "y"]
        await disk.remove("y")
        with pytest.raises(FileNotFoundError):
            await disk.read("y")
        with pytest.raises(ValueError, match="not a path inside"):
            await disk.read("../y")

    finish(world, story())


def test_a_file_appends_truncates_and_closes() -> None:
    world = world_of("a")

    async def story() -> None:
        file = await disk_of(world).open("x")
        await file.append_and_sync(b"abcdef")
        await file.truncate(2)
        await file.append(b"!")
        assert await disk_of(world).read("x") == b"ab!"
        await file.close()
        await file.close()
        with pytest.raises(OSError, match="closed"):
            await file.append(b"x")

    finish(world, story())


def test_operations_on_one_file_keep_their_order_and_outlive_their_caller() -> None:
    world = world_of("a")

    async def story() -> bytes:
        file = await disk_of(world).open("x")
        tasks = [asyncio.ensure_future(file.append(b"%d" % number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return await disk_of(world).read("x")

    assert finish(world, story()) == b"01234"


def test_a_kill_loses_nothing_and_a_power_cut_what_was_not_synced() -> None:
    world = world_of("a")

    async def story() -> None:
        await write(world, "x", b"synced")
        await write(world, "x", b"+cached", sync=False)
        await power_cut(world, "kept")
        assert await disk_of(world).read("x") == b"synced+cached"
        await power_cut(world)
        assert await disk_of(world).read("x") == b"synced"

    finish(world, story())


def test_names_that_were_not_synced_are_lost() -> None:
    world = world_of("a")

    async def story() -> None:
        await write(world, "old", b"old")
        file = await disk_of(world).open("new")
        await file.append_and_sync(b"new")
        await disk_of(world).rename("new", "old")
        assert world.machines["a"].disk.durable("old") == b"old"
        await power_cut(world)
        assert await disk_of(world).list("") == ["old"]
        assert await disk_of(world).read("old") == b"old"

    finish(world, story())


def test_an_unsynced_truncation_comes_back() -> None:
    world = world_of("a")

    async def story() -> bytes:
        await write(world, "x", b"0123456789")
        file = await disk_of(world).open("x")
        await file.truncate(4)
        await file.append(b"new")
        await power_cut(world)
        return await disk_of(world).read("x")

    assert finish(world, story()) == b"0123456789"


def test_a_torn_write_leaves_a_prefix_or_a_damaged_one() -> None:
    kinds = set()
    for seed in range(60):
        world = world_of("a", seed=seed)

        async def story(world: World = world) -> bytes:
            await write(world, "x", b"synced")
            await write(world, "x", b"+" * 1200, sync=False)
            await power_cut(world, "torn")
            return await disk_of(world).read("x")

        left = finish(world, story())
        assert left.startswith(b"synced")
        tail = left[6:]
        kinds.add("whole" if tail == b"+" * len(tail) else "damaged")
        kinds.add(f"{len(tail) // 400}")
    assert kinds >= {"whole", "damaged", "0", "1", "2"}


def test_after_a_failed_sync_the_file_is_unusable_and_its_bytes_are_gone() -> None:
    world = world_of("a")

    async def story() -> bytes:
        await write(world, "x", b"good")
        image = world.machines["a"].disk
        file = await disk_of(world).open("x")
        await file.append(b"lost")
        image.sync_errors = 1.0
        with pytest.raises(OSError, match=r"[Ii]nput/output") as caught:
            await file.sync()
        assert caught.value.errno == errno.EIO
        image.sync_errors = 0.0
        with pytest.raises(OSError, match="unusable since"):
            await file.append(b"more")
        again = await disk_of(world).open("x")
        await again.append_and_sync(b"more")  # the kernel calls the lost pages clean
        assert await disk_of(world).read("x") == b"goodlostmore"
        await power_cut(world)
        return await disk_of(world).read("x")

    assert finish(world, story()) == b"good\0\0\0\0more"


def test_a_full_disk_takes_nothing_and_keeps_what_it_has() -> None:
    world = world_of("a")

    async def story() -> None:
        await write(world, "x", b"12345678")
        world.machines["a"].disk.capacity = 10
        file = await disk_of(world).open("x")
        with pytest.raises(OSError, match="space") as caught:
            await file.append_and_sync(b"abc")
        assert caught.value.errno == errno.ENOSPC
        await file.append_and_sync(b"ab")
        assert await disk_of(world).read("x") == b"12345678ab"

    finish(world, story())
    assert world.coverage["disk-full"] == 1


def test_append_errors_and_slow_disks() -> None:
    world = world_of("a")

    async def story() -> None:
        image = world.machines["a"].disk
        file = await disk_of(world).open("x")
        image.append_errors = 1.0
        with pytest.raises(OSError, match=r"[Ii]nput/output"):
            await file.append(b"abc")
        image.heal()
        began = world.now
        await file.sync()
        usual = world.now - began
        image.slow_factor = 1000.0
        await file.sync()
        assert world.now - began > 100 * usual

    finish(world, story())


def test_rot_flips_one_bit() -> None:
    world = world_of("a")

    async def story() -> bytes:
        world.rot("a")
        await write(world, "x", bytes(100))
        world.rot("a")
        return await disk_of(world).read("x")

    left = finish(world, story())
    assert sum(byte.bit_count() for byte in left) == 1
    assert world.coverage["bit-rot"] == 1


def test_nothing_a_dead_generation_started_is_finished() -> None:
    world = world_of("a")

    async def story() -> int:
        file = await disk_of(world).open("x")
        host = world.host("a")
        host.tasks.spawn("writer", file.append(b"never"))
        await asyncio.sleep(0)
        world.crash("a")
        world.restart("a")
        await asyncio.sleep(1.0)
        return await disk_of(world).size("x")

    assert finish(world, story()) == 0

"""Files on their own threads: order, durability calls, errors as the system gives them."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hyperscale.runtime import disk as disk_module
from hyperscale.runtime.disk import RealDisk


def test_append_read_truncate(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path / "data")
        await disk.make_directory("wal")
        file = await disk.open("wal/0001")
        await file.append(b"hello ")
        await file.append_and_sync(b"world")
        assert await disk.read("wal/0001") == b"hello world"
        assert await disk.read("wal/0001", offset=6, limit=3) == b"wor"
        await file.truncate(5)
        await file.append(b"!")
        await file.sync()
        assert await disk.read("wal/0001") == b"hello!"
        assert await disk.size("wal/0001") == 6
        await file.close()
        await file.close()
        with pytest.raises(OSError, match="closed"):
            await file.append(b"more")
        await disk.close()

    asyncio.run(main())


def test_names(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path)
        for name in ("b", "a", "c"):
            await (await disk.open(name)).close()
        assert await disk.list("") == ["a", "b", "c"]
        await disk.rename("a", "d")
        await disk.remove("b")
        await disk.sync_directory("")
        assert await disk.list(".") == ["c", "d"]
        assert await disk.list("nowhere") == []
        with pytest.raises(FileNotFoundError):
            await disk.read("gone")
        await disk.close()

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "a/../../outside"])
def test_paths_stay_inside(tmp_path: Path, path: str) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="inside the data directory"):
            await RealDisk(tmp_path).read(path)

    asyncio.run(main())


def test_operations_of_one_file_keep_their_order(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path)
        file = await disk.open("log")
        await asyncio.gather(
            *(file.append(b"%04d" % number) for number in range(500)), file.close()
        )
        assert await disk.read("log") == b"".join(b"%04d" % number for number in range(500))
        await disk.close()

    asyncio.run(main())


def test_partial_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(disk_module.os, "write", lambda fd, data: write(fd, bytes(data[:3])))

    async def main() -> None:
        disk = RealDisk(tmp_path)
        file = await disk.open("log")
        await file.append(b"0123456789")
        assert await disk.read("log") == b"0123456789"
        await disk.close()

    asyncio.run(main())


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    full = False

    def small_disk(fd: int, data: Any) -> int:
        if full and len(data) <= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, bytes(data[:4]) if full else bytes(data))

    monkeypatch.setattr(disk_module.os, "write", small_disk)

    async def main() -> None:
        nonlocal full
        disk = RealDisk(tmp_path)
        file = await disk.open("log")
        await file.append(b"first")
        full = True
        with pytest.raises(OSError, match="No space") as caught:
            await file.append(b"12345678")
        assert caught.value.errno == errno.ENOSPC
        full = False
        await file.append(b" second")
        assert await disk.read("log") == b"first second"
        await disk.close()

    asyncio.run(main())


def test_a_failed_sync_makes_the_file_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async def main() -> None:
        disk = RealDisk(tmp_path)
        file = await disk.open("log")
        monkeypatch.setattr(disk_module, "sync_to_platter", broken)
        with pytest.raises(OSError, match="Input/output"):
            await file.append_and_sync(b"record")
        monkeypatch.undo()
        for work in (file.sync(), file.append(b"x"), file.truncate(0)):
            with pytest.raises(OSError, match="earlier failure") as caught:
                await work
            assert caught.value.errno == errno.EIO
        await disk.close()

    asyncio.run(main())


def test_closing_the_disk_ends_its_threads(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path)
        await disk.open("left-open")
        await disk.list("")
        await disk.close()

    asyncio.run(main())
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("disk ")]
    for thread in threads:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in threads)


def test_files_are_private(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path / "data")
        await disk.open("log")
        await disk.close()

    asyncio.run(main())
    assert (tmp_path / "data" / "log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700

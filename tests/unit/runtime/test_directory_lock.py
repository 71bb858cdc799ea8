"""Two processes never write to one data directory; looking is always allowed."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.runtime.directory_lock import DirectoryLock, check_free
from hyperscale.runtime.disk import RealDisk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")

HOLDER = """
import sys, pathlib
from hyperscale.runtime.directory_lock import DirectoryLock
DirectoryLock(pathlib.Path(sys.argv[1])).take()
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_who_writes_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    async def main() -> None:
        first, second = RealDisk(tmp_path / "data"), RealDisk(tmp_path / "data")
        file = await first.open("log")
        await file.append_and_sync(b"x")
        for change in (
            second.open("log"),
            second.make_directory("wal"),
            second.rename("log", "other"),
            second.remove("log"),
        ):
            with pytest.raises(BadInput, match=f"data is in use by process {os.getpid()}"):
                await change
        assert await second.read("log") == b"x"
        assert await second.list("") == ["log"]
        assert await second.size("log") == 1
        await first.close()
        await (await second.open("log")).append(b"y")
        await second.close()

    asyncio.run(main())


def test_looking_at_a_directory_leaves_no_lock(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk(tmp_path)
        assert await disk.list("") == []
        await disk.close()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_the_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BadInput, match=f"process {holder.pid}"):
            DirectoryLock(tmp_path).take()
        (tmp_path / "wal").mkdir()
        with pytest.raises(BadInput, match=f"{tmp_path} is in use by process {holder.pid}"):
            check_free(tmp_path / "wal")
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    check_free(tmp_path / "wal")
    lock = DirectoryLock(tmp_path)
    lock.take()
    lock.release()


def test_a_forked_child_neither_keeps_nor_ends_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.take()
    child = os.fork()
    if child == 0:
        os._exit(1 if lock.held else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(BadInput):
        DirectoryLock(tmp_path).take()
    lock.release()

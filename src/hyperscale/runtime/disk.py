"""Files of a real host: every open file has a thread of its own.

An fsync takes milliseconds and blocks whoever asks. A thread per file keeps the event loop free,
keeps the operations on one file in order without locks, and lets one file wait while another
does not. Interrupted system calls are repeated by Python itself (PEP 475).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import ParamSpec, TypeVar

from hyperscale.runtime.directory_lock import NAME as LOCK_NAME
from hyperscale.runtime.directory_lock import DirectoryLock
from hyperscale.runtime.open_files import is_out_of_files

if sys.platform == "darwin":
    import fcntl

P = ParamSpec("P")
R = TypeVar("R")

# Journals hold what users submitted: nobody else's business.
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
# Longer than strangers keep a connection who do not say who they are.
OUT_OF_FILES_WAIT_S = 10.0
OUT_OF_FILES_PAUSE_S = 0.05


def sync_to_platter(descriptor: int) -> None:
    """Return when the data is on stable storage, not in the drive's cache.

    On macOS `fsync` stops at the drive; F_FULLFSYNC does not, where the file system has it.
    Elsewhere `fdatasync` also writes the new size, which is all an appended record needs.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
            os.fsync(descriptor)
    else:
        getattr(os, "fdatasync", os.fsync)(descriptor)


def opened(path: Path, flags: int, mode: int = 0o777) -> int:
    """A descriptor. That there is none to be had says nothing of the disk: connections come and
    go, so it is tried again for a while."""
    until = time.monotonic() + OUT_OF_FILES_WAIT_S
    while True:
        try:
            return _regular(path, os.open(path, flags | getattr(os, "O_NONBLOCK", 0), mode))
        except OSError as error:
            if not is_out_of_files(error) or time.monotonic() > until:
                raise
        time.sleep(OUT_OF_FILES_PAUSE_S)


def _regular(path: Path, descriptor: int) -> int:
    """Of a file or a directory. Whoever reads from a pipe that nobody writes to waits for ever."""
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; the system may take less than it is offered."""
    rest = memoryview(data)
    while rest:
        taken = os.write(descriptor, rest)
        if taken == 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        rest = rest[taken:]


class RealFile:
    """An open file, its thread, and the error that made it unusable, if there was one."""

    def __init__(self, path: Path, closed: Callable[[RealFile], None]) -> None:
        self._path = path
        self._closed = closed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"disk {path.name}")
        self._descriptor = -1
        self._size = 0
        self._failed: OSError | None = None

    async def open(self) -> None:
        try:
            await self._on_thread(self._open)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise

    async def append(self, data: bytes) -> None:
        await self._on_thread(self._append, data)

    async def sync(self) -> None:
        await self._on_thread(self._sync)

    async def append_and_sync(self, data: bytes) -> None:
        await self._on_thread(self._append_and_sync, data)

    async def truncate(self, size: int) -> None:
        await self._on_thread(self._truncate, size)

    async def close(self) -> None:
        """What was asked for before is done before; a second close is nothing."""
        if self._descriptor < 0:
            return
        self._closed(self)
        closing = self._on_thread(self._close)
        self._thread.shutdown(wait=False)
        await closing

    def _on_thread(
        self, work: Callable[P, R], *arguments: P.args, **options: P.kwargs
    ) -> asyncio.Future[R]:
        try:
            return asyncio.wrap_future(self._thread.submit(work, *arguments, **options))
        except RuntimeError:
            raise OSError(errno.EBADF, "the file is closed", str(self._path)) from None

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = opened(self._path, flags, FILE_MODE)
        self._size = os.fstat(self._descriptor).st_size

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def _usable(self) -> int:
        if self._failed is not None:
            raise OSError(
                self._failed.errno,
                f"unusable since an earlier failure: {self._failed.strerror}",
                str(self._path),
            )
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed", str(self._path))
        return self._descriptor

    def _append(self, data: bytes) -> None:
        descriptor = self._usable()
        try:
            write_all(descriptor, data)
        except OSError as error:
            self._take_back(descriptor, error)
            raise
        self._size += len(data)

    def _take_back(self, descriptor: int, error: OSError) -> None:
        """Remove the beginning of a record that did not fit, so the next one is readable."""
        try:
            os.ftruncate(descriptor, self._size)
        except OSError:
            self._failed = error

    def _sync(self) -> None:
        descriptor = self._usable()
        try:
            sync_to_platter(descriptor)
        except OSError as error:
            # The kernel may have dropped the dirty pages: a second sync would lie.
            self._failed = error
            raise

    def _append_and_sync(self, data: bytes) -> None:
        self._append(data)
        self._sync()

    def _truncate(self, size: int) -> None:
        os.ftruncate(self._usable(), size)
        self._size = size


class RealDisk:
    """A directory; paths in it are relative, use '/' and cannot leave it. Whoever changes something
    in it holds it from then on; only looking needs no permission."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = DirectoryLock(directory)
        self._files: set[RealFile] = set()
        self._thread: ThreadPoolExecutor | None = None

    async def open(self, path: str) -> RealFile:
        self._hold()
        file = RealFile(self._at(path), self._files.discard)
        await file.open()
        self._files.add(file)
        return file

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        def work(at: Path) -> bytes:
            with open(opened(at, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)

        return await self._on_thread(work, self._at(path))

    async def size(self, path: str) -> int:
        return await self._on_thread(lambda at: at.stat().st_size, self._at(path))

    async def list(self, directory: str) -> list[str]:
        def work(at: Path) -> list[str]:
            try:
                return sorted(name for name in os.listdir(at) if name != LOCK_NAME)
            except FileNotFoundError:
                return []

        return await self._on_thread(work, self._at(directory))

    async def make_directory(self, path: str) -> None:
        self._hold()
        await self._on_thread(
            lambda at: at.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True), self._at(path)
        )

    async def rename(self, old: str, new: str) -> None:
        self._hold()
        await self._on_thread(os.replace, self._at(old), self._at(new))

    async def remove(self, path: str) -> None:
        self._hold()
        await self._on_thread(os.unlink, self._at(path))

    async def sync_directory(self, path: str) -> None:
        def work(at: Path) -> None:
            descriptor = opened(at, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

        await self._on_thread(work, self._at(path))

    async def close(self) -> None:
        """Close what is still open; nothing is synced that nobody asked to sync."""
        for file in list(self._files):
            with contextlib.suppress(OSError):
                await file.close()
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        self._lock.release()

    def _hold(self) -> None:
        if not self._lock.held:
            self._make()
            self._lock.take()

    def _make(self) -> None:
        self._directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)

    def _at(self, path: str) -> Path:
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts:
            raise ValueError(f"{path!r} is not a path inside the data directory")
        return self._directory / parts

    async def _on_thread(self, work: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        if self._thread is None:
            self._make()
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk names")
        return await asyncio.wrap_future(self._thread.submit(work, *arguments, **options))

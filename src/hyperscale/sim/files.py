"""`Disk` and `File` of the runtime on a simulated disk: every operation takes time and may fail.

Operations on one file happen one after another, as on the thread that owns a real file; an
operation whose caller was cancelled still happens. Nothing of a dead process ever finishes.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from hyperscale.sim.disk import DiskImage, FileImage
from hyperscale.sim.loop import SimLoop
from hyperscale.sim.process import Process

R = TypeVar("R")

# A data-centre SSD: a system call, a page-cache copy, a flush of the drive's cache.
CALL_S = 0.00005
APPEND_S_PER_BYTE = 5e-10
SYNC_S_MIN, SYNC_S_MAX = 0.0004, 0.002


class SimDisk:
    def __init__(
        self, loop: SimLoop, process: Process, image: DiskImage, coverage: Counter[str]
    ) -> None:
        self.loop = loop
        self.image = image
        self.coverage = coverage
        self._process = process
        self._names = FileImage()  # operations on names queue up like those on a file

    async def open(self, path: str) -> SimFile:
        return SimFile(self, path, await self._on_names(lambda: self.image.create(path)))

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        end = None if limit is None else offset + limit
        return await self._on_names(lambda: bytes(self.image.file(path).data[offset:end]))

    async def size(self, path: str) -> int:
        return await self._on_names(lambda: len(self.image.file(path).data))

    async def list(self, directory: str) -> list[str]:
        return await self._on_names(lambda: _names(self.image, directory))

    async def make_directory(self, path: str) -> None:
        await self._on_names(lambda: self.image.make_directory(path))

    async def rename(self, old: str, new: str) -> None:
        await self._on_names(lambda: self.image.rename(old, new))

    async def remove(self, path: str) -> None:
        await self._on_names(lambda: self.image.remove(path))

    async def sync_directory(self, path: str) -> None:
        def work() -> None:
            self.fail_sometimes(self.image.sync_errors, "sync-error", path)
            self.image.sync_directory(path)

        await self.submit(self._names, self.sync_seconds(), work)

    def sync_seconds(self) -> float:
        return self.image.random.uniform(SYNC_S_MIN, SYNC_S_MAX)

    def fail_sometimes(self, probability: float, kind: str, path: str) -> None:
        if probability and self.image.random.random() < probability:
            self.coverage[kind] += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def submit(self, queue: FileImage, seconds: float, work: Callable[[], R]) -> asyncio.Future[R]:
        """Do the work when the operations before it and its own time are over."""
        done: asyncio.Future[R] = self.loop.create_future()
        if self.image.slow_factor != 1.0:
            seconds *= self.image.slow_factor
            self.coverage["disk-slow"] += 1
        queue.busy_until = max(queue.busy_until, self.loop.now) + seconds
        self.loop.at(queue.busy_until, self.loop.post, self._process, _finish, done, work)
        return done

    def _on_names(self, work: Callable[[], R]) -> asyncio.Future[R]:
        return self.submit(self._names, CALL_S, work)


class SimFile:
    def __init__(self, disk: SimDisk, path: str, image: FileImage) -> None:
        self._disk = disk
        self._path = path
        self._image = image
        self._failed: OSError | None = None
        self._closed = False

    async def append(self, data: bytes) -> None:
        await self._start_append(data)

    async def sync(self) -> None:
        await self._disk.submit(self._image, self._disk.sync_seconds(), self._sync)

    async def append_and_sync(self, data: bytes) -> None:
        appended = self._start_append(data)

        def sync_if_appended() -> None:
            if appended.done() and not appended.cancelled() and appended.exception() is None:
                self._sync()

        synced = self._disk.submit(self._image, self._disk.sync_seconds(), sync_if_appended)
        await asyncio.shield(appended)
        await synced

    async def truncate(self, size: int) -> None:
        def work() -> None:
            self._usable()
            self._image.truncate(size)

        await self._disk.submit(self._image, CALL_S, work)

    async def close(self) -> None:
        def work() -> None:
            self._closed = True

        if not self._closed:
            await self._disk.submit(self._image, CALL_S, work)

    def _start_append(self, data: bytes) -> asyncio.Future[None]:
        seconds = CALL_S + len(data) * APPEND_S_PER_BYTE
        return self._disk.submit(self._image, seconds, lambda: self._append(data))

    def _append(self, data: bytes) -> None:
        self._usable()
        image = self._disk.image
        if image.capacity is not None and image.used_bytes + len(data) > image.capacity:
            self._disk.coverage["disk-full"] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._disk.fail_sometimes(image.append_errors, "append-error", self._path)
        self._image.append(data)
        image.written()

    def _sync(self) -> None:
        self._usable()
        try:
            self._disk.fail_sometimes(self._disk.image.sync_errors, "sync-error", self._path)
        except OSError as error:
            self._image.sync_failed()
            self._failed = error
            raise
        self._image.sync(len(self._image.data))

    def _usable(self) -> None:
        if self._failed is not None:
            raise OSError(
                self._failed.errno,
                f"unusable since an earlier failure: {self._failed.strerror}",
                self._path,
            )
        if self._closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)


def _finish(done: asyncio.Future[R], work: Callable[[], R]) -> None:
    try:
        result = work()
    except (OSError, ValueError) as error:
        if not done.done():
            done.set_exception(error)
    else:
        if not done.done():
            done.set_result(result)


def _names(image: DiskImage, directory: str) -> list[str]:
    try:
        return sorted(image.directory(directory).entries)
    except FileNotFoundError:
        return []

"""Log lines on their way to a file or a stream, without anybody waiting for it.

`put` leaves a line in a bounded queue and returns; a thread of its own writes. When the queue is
full the oldest line goes and is counted, and the count is written as a line of its own. So is a
failure of the disk, as soon as lines can be written again. Nothing is synced: the tail of a log for
people may be lost with the machine, what must not be lost is in the write-ahead log.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from hyperscale.runtime.disk import write_all

FILE_MODE = 0o640
BATCH_LINES = 1_000
STDERR = 2
NUMBER_DIGITS = 6

Note = Callable[[str, int, str], bytes]
"""Makes a line out of an event, a count and a detail."""


class Outlet(Protocol):
    """Where lines end. Used by the writer's thread alone; may block, may raise OSError."""

    def write(self, data: bytes) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class StreamOutlet:
    """A copy of a standard stream's descriptor: closing it leaves the stream open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)

    def write(self, data: bytes) -> None:
        write_all(self._descriptor, data)

    def sync(self) -> None:
        """There is nothing to sync on a stream."""

    def close(self) -> None:
        os.close(self._descriptor)


class FileOutlet:
    """A file that begins anew when it is large or its period is over.

    The finished one gets the time in its name and stays until there are too many or it is too old.
    Periods are aligned to the clock (86,400 s: midnight UTC), so a restart changes nothing.
    """

    def __init__(
        self,
        path: Path,
        rotate_bytes: int,
        rotate_s: float,
        keep_files: int,
        keep_s: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        stem, suffix = re.escape(path.stem), re.escape(path.suffix)
        self._finished = re.compile(rf"{stem}\.\d{{8}}T\d{{12}}-\d{{{NUMBER_DIGITS}}}{suffix}")
        self._rotate_bytes = rotate_bytes
        self._rotate_s = rotate_s
        self._keep_files = keep_files
        self._keep_s = keep_s
        self._wall = wall
        self._descriptor = -1
        self._size = 0
        self._period = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open()

    def write(self, data: bytes) -> None:
        if self._descriptor < 0:
            self._open()
        too_large = self._size > 0 and self._size + len(data) > self._rotate_bytes
        if too_large or self._period_of(self._wall()) > self._period:
            self._rotate()
        try:
            write_all(self._descriptor, data)
        except OSError:
            with suppress(OSError):  # half a line would spoil the next one
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def sync(self) -> None:
        if self._descriptor >= 0:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def rotated(self) -> list[Path]:
        """Finished files, oldest first."""
        return sorted(
            self._path.with_name(name)
            for name in os.listdir(self._path.parent)
            if self._finished.fullmatch(name)
        )

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self._path, flags, FILE_MODE)
        status = os.fstat(self._descriptor)
        self._size = status.st_size
        self._period = self._period_of(status.st_mtime if status.st_size else self._wall())

    def _period_of(self, wall: float) -> int:
        return int(wall // self._rotate_s)

    def _rotate(self) -> None:
        self.close()
        if self._size > 0:
            os.replace(self._path, self._finished_path())
        self._open()
        self._period = self._period_of(self._wall())
        self._remove_old()

    def _finished_path(self) -> Path:
        """Later in the order of names than every one before, also when the clock is set back."""
        wall = self._wall()
        label = time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall)) + f"{int(wall * 1e6) % 10**6:06}"
        number = 0
        finished = self.rotated()
        if finished:
            last, last_number = finished[-1].name[len(self._path.stem) + 1 :].split("-", 1)
            if label <= last:
                label, number = last, int(last_number[:NUMBER_DIGITS]) + 1
        name = f"{self._path.stem}.{label}-{number:0{NUMBER_DIGITS}}{self._path.suffix}"
        return self._path.with_name(name)

    def _remove_old(self) -> None:
        finished = self.rotated()
        oldest = self._wall() - self._keep_s
        surplus = max(0, len(finished) - self._keep_files)
        for index, path in enumerate(finished):
            if index < surplus or path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


class LogWriter:
    def __init__(self, outlet: Outlet, note: Note, queue_max: int, sync: bool = False) -> None:
        self._outlet = outlet
        self._note = note
        self._queue_max = queue_max
        self._sync = sync
        self._lines: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._taken = self._written = 0
        self._dropped = 0
        self._failed = 0
        self._failure = ""
        self.dropped_total = 0
        """Lines that found the queue full."""
        self.failed_total = 0
        """Lines the disk or the reader of the stream did not take."""
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Never waits for the disk: the condition's lock is held for a few instructions only."""
        with self._changed:
            if self._stopping:
                return
            if len(self._lines) >= self._queue_max:
                self._lines.popleft()
                self._dropped += 1
                self.dropped_total += 1
                self._written += 1
            self._lines.append(line)
            self._taken += 1
            if len(self._lines) == 1:
                self._changed.notify_all()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until what was put before is written; False when the time was too short. It blocks:
        not for an event loop that has other things to do."""
        with self._changed:
            goal = self._taken
            return self._changed.wait_for(lambda: self._written >= goal, timeout_s)

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Write what is queued, then end. A stream that nobody reads cannot hold up the exit."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._take_and_write():
            pass
        try:
            self._outlet.close()
        except OSError as error:
            self._complain(error)

    def _take_and_write(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._stopping)
            if not self._lines:
                return False
            lines = [self._lines.popleft() for _ in range(min(len(self._lines), BATCH_LINES))]
            dropped, self._dropped = self._dropped, 0
        self._write(lines, dropped)
        with self._changed:
            self._written += len(lines)
            self._changed.notify_all()
        return True

    def _write(self, lines: list[bytes], dropped: int) -> None:
        notes = []
        if dropped:
            notes.append(self._note("log lines dropped", dropped, "the queue was full"))
        if self._failed:
            notes.append(self._note("log lines lost", self._failed, self._failure))
        try:
            self._outlet.write(b"".join((*notes, *lines)))
            if self._sync:
                self._outlet.sync()
        except Exception as error:  # noqa: BLE001 - a writer that died would lose all that follows
            if not self._failed:
                self._complain(error)
            self._failed += len(lines)
            self.failed_total += len(lines)
            self._failure = str(error)
        else:
            self._failed = 0

    def _complain(self, error: Exception) -> None:
        """Once per failure and only where somebody may look; nobody can be helped if this fails."""
        try:
            os.write(STDERR, self._note("log cannot be written", 1, str(error)))
        except OSError:
            self._failure = str(error)

"""One process per data directory: two that append to one log would destroy it.

The lock is the kernel's (`flock` on a file in the directory), so it ends with the process that
holds it, however that ends. The file stays; it names the holder for people.
"""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

from hyperscale.errors import BadInput

if sys.platform != "win32":
    import fcntl

NAME = ".hyperscale.lock"
PID_BYTES_MAX = 20
_HINT = "stop that process first, or use another directory"


class DirectoryLock:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1

    @property
    def held(self) -> bool:
        return self._descriptor >= 0

    def take(self) -> None:
        """Hold the directory, which exists, until `release` or the end of this process. Raises
        BadInput, naming the holder, when another has it."""
        if self.held or sys.platform == "win32":
            return
        path = self._directory / NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except BlockingIOError:
            holder = _holder_named_in(descriptor)
            os.close(descriptor)
            raise BadInput(f"{self._directory} is in use by {holder}", _HINT) from None
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _HELD.add(self)

    def release(self) -> None:
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


_HELD: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


def _let_go() -> None:
    """A forked child shares its parent's lock and would keep it beyond the parent's death. Closing
    the child's copy leaves the parent's hold as it is."""
    for lock in list(_HELD):
        lock.release()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)


def check_free(directory: Path) -> None:
    """Raises BadInput when a process holds this directory or one that it lies in."""
    if sys.platform == "win32":
        return
    for place in (directory.resolve(), *directory.resolve().parents):
        try:
            descriptor = os.open(place / NAME, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder_named_in(descriptor)
            raise BadInput(f"{place} is in use by {holder}", _HINT) from None
        finally:
            os.close(descriptor)


def _holder_named_in(descriptor: int) -> str:
    text = os.pread(descriptor, PID_BYTES_MAX, 0).decode(errors="replace").strip()
    return f"process {text}" if text.isdigit() else "another process"

"""Processes of jobs end also when their worker is killed and cannot end them.

Each process of a job has a mark in its environment, which everything it starts inherits. The worker
keeps the marks of what runs as files in a directory whose lock it holds, so a mark is there before
its process is. The system lets go of the lock when the worker dies, however it dies. A small
process, the guard, waits for that and ends what is marked. Were the guard killed too, the next
worker with the same spool does it.

The guard runs this file alone: it imports nothing of the package.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

MARK: Final = "HYPERSCALE_PROCESS_MARK"
LOCK: Final = "lock"
GRACE_S: Final = 2.0
"""Between SIGTERM and SIGKILL."""
PASSES_MAX: Final = 10
"""What forks while it is being killed is found by the next look; what no signal ends stays."""


class Children:
    """The marks of one worker's processes; the guard is started with the first."""

    def __init__(self, directory: Path | None = None) -> None:
        """Without a directory nothing is kept, and nobody waits for this process to die."""
        self._above = directory
        self._directory: Path | None = None
        self._lock = -1
        self._guard: subprocess.Popen[bytes] | None = None

    def mark(self) -> str:
        """For one process, before it is started. Raises OSError."""
        mark = secrets.token_hex(16)
        if self._above is not None:
            if self._directory is None:
                self._directory = self._open(self._above, mark)
            (self._directory / mark).touch(mode=0o600)
        return mark

    def unmark(self, mark: str) -> None:
        if self._directory is not None:
            (self._directory / mark).unlink(missing_ok=True)

    def _open(self, above: Path, name: str) -> Path:
        unseen, directory = above / f".{name}", above / name
        unseen.mkdir(mode=0o700, parents=True)
        self._lock = os.open(unseen / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unseen.rename(directory)  # only now: what is seen without a holder is taken for an orphan's
        self._guard = subprocess.Popen(
            [sys.executable, "-P", __file__, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return directory

    def close(self) -> None:
        """When none of the processes runs any more."""
        if self._directory is None or self._guard is None:
            return
        shutil.rmtree(self._directory, ignore_errors=True)
        os.close(self._lock)
        self._guard.wait()
        self._directory = None


def end_orphans(above: Path) -> None:
    """What workers left that ended without their guards."""
    for directory in above.glob("[!.]*"):
        _end(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _end(directory: Path, operation: int) -> None:
    """The processes of a worker, once its lock can be had."""
    with suppress(OSError), (directory / LOCK).open("rb") as lock:
        fcntl.flock(lock, operation)
        marks = frozenset(os.listdir(directory)) - {LOCK}
        if marks:
            _end_marked(marks)
        shutil.rmtree(directory)


def _end_marked(marks: frozenset[str]) -> None:
    import psutil

    for number in range(PASSES_MAX):
        victims = _marked(marks)
        for victim in victims:
            with suppress(psutil.Error):
                victim.kill() if number else victim.terminate()
        if not victims:
            return
        psutil.wait_procs(victims, timeout=GRACE_S)


def _marked(marks: frozenset[str]) -> set[psutil.Process]:
    """With their descendants, which may have another environment."""
    import psutil

    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) in marks:
                found.update((process, *process.children(recursive=True)))
    return found


if __name__ == "__main__":
    _end(Path(sys.argv[1]), fcntl.LOCK_EX)

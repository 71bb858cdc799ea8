"""Private directories for what tests bring along and write, gone when the process is.

A process that is killed leaves its directory behind. Each holds a lock as long as it lives, so
the next one that unpacks can tell such directories from those in use, and removes them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from hyperscale.errors import BadInput

_PREFIX = "hyperscale-test-"
_LOCK = ".lock"
# A directory without a lock may be about to get one; after this long its maker must have died.
_UNLOCKED_S = 60.0

_mine: dict[Path, IO[bytes]] = {}  # directory -> its lock, held while the file is open


def unpack(files: Mapping[str, bytes]) -> Path:
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or _LOCK in parts:
            raise BadInput(f"the test brings a file called {name!r}, which cannot be unpacked")
    root = make_directory()
    for name, content in files.items():
        place = root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except (OSError, ValueError) as error:
            raise BadInput(f"the test brings a file called {name!r}: {error}") from None
    return root


def remove() -> None:
    """Remove the directories of this process."""
    for root, lock in _mine.items():
        _delete(root)
        lock.close()
    _mine.clear()


def make_directory() -> Path:
    import tempfile

    _sweep()
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        lock = (root / _LOCK).open("wb")
        if _locked(lock) and (root / _LOCK).exists():
            _mine[root] = lock
            return root
        lock.close()  # somebody who sweeps was quicker, and may be gone again


def _sweep() -> None:
    import tempfile

    for root in Path(tempfile.gettempdir()).resolve().glob(f"{_PREFIX}*"):
        if root in _mine:
            continue
        try:
            with (root / _LOCK).open("rb") as lock:
                if _locked(lock):
                    _delete(root)
        except FileNotFoundError:
            _remove_unlocked(root)
        except OSError:
            continue  # another user's


def _remove_unlocked(root: Path) -> None:
    try:
        abandoned = time.time() - root.stat().st_mtime > _UNLOCKED_S
    except OSError:
        return
    if abandoned:
        _delete(root)


def _delete(root: Path) -> None:
    import shutil  # with its compressors it would slow down every start

    shutil.rmtree(root, ignore_errors=True)


def _locked(file: IO[bytes]) -> bool:
    import fcntl  # not on Windows, where tests do not come from elsewhere

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

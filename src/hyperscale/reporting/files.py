"""Writing a result file so that it is there whole or not at all.

Results are written beside their place and renamed into it, so a full disk or a crash leaves the
old file as it was. What can be known before a run (no folder, no permission, no space) is found
out before the run, because afterwards the measurement would be lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from hyperscale.errors import BadInput, RunFailed

# What a disk must still take before a run: more than the result file of a short test.
PROBE_BYTES = 64 * 1024


def check_file(path: Path) -> None:
    """Prove that `path` can be written, making its folder; raises `BadInput` if it cannot."""
    try:
        if path.is_dir():
            raise BadInput(
                f"Cannot write results to {path}: it is a folder.",
                f"Name a file in it, for example {path / 'results.json'}.",
            )
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not is_special(path):
            place = _place(path)
            _write_beside(place, bytes(PROBE_BYTES)).unlink()
    except OSError as error:
        raise BadInput(*_explained(path, error)) from error


def write_file(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step; raises `RunFailed` if it cannot."""
    try:
        if is_special(path):
            with path.open("ab") as file:
                file.write(content)
            return
        place = _place(path)
        beside = _write_beside(place, content)
        try:
            beside.replace(place)
        except OSError:
            beside.unlink()
            raise
    except OSError as error:
        raise RunFailed(*_explained(path, error)) from error


def is_special(path: Path) -> bool:
    """A device or a pipe: to be written to, never to be replaced.

    Everything in /dev counts: /dev/stdout may be a regular file that others write to as well.
    """
    if path.is_relative_to("/dev"):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _place(path: Path) -> Path:
    """Where the file really goes: a link stays a link, a missing folder is made."""
    place = path.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _write_beside(path: Path, content: bytes) -> Path:
    beside = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    return beside


def _explained(path: Path, error: OSError) -> tuple[str, str]:
    match error:
        case PermissionError():
            hint = "Choose a place you may write to, or change its permissions."
        case NotADirectoryError() | FileExistsError():
            hint = "A part of the path is a file where a folder is needed."
        case _:
            hint = "Free some space or choose another place; an older file there is unchanged."
    return f"Cannot write results to {path}: {(error.strerror or str(error)).lower()}.", hint

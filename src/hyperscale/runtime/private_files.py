"""Files that hold secrets: made for their owner alone, and refused when others may read them."""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from hyperscale.errors import BadInput

# Whoever mounts secrets for one group (Kubernetes, systemd) has them readable by it.
_OTHERS = 0o027


def read_private(path: Path, what: str) -> str:
    """Its text. Raises BadInput when it cannot be read, or can be by others."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _OTHERS:
                raise BadInput(
                    f"{what} {str(path)!r} has mode {mode:o}: others may read or change it",
                    f"chmod 600 {shlex.quote(str(path))}",
                )
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadInput(f"{what} {str(path)!r} cannot be read: {reason}") from error


def private_directory(path: Path) -> Path:
    """Made with what is missing above it; closed to others also when it was there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    close_to_others(path, 0o700)
    return path


def close_to_others(path: Path, mode: int = 0o600) -> None:
    """Of a file that is not ours its owner decides."""
    with suppress(PermissionError, FileNotFoundError):
        if stat.S_IMODE(path.stat().st_mode) & ~mode:
            path.chmod(mode)

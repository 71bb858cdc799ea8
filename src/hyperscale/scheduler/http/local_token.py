"""The token of a scheduler that was given none: made at its first start, in a file that only its
user reads. Commands of the same user find it by themselves, so nobody has to know of it.

Everybody on a machine may listen on a port where no scheduler listens. So the token is sent only to
a process of the same user, or of root.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from hyperscale.errors import BadInput
from hyperscale.runtime.private_files import private_directory, read_private
from hyperscale.scheduler.addresses import is_loopback
from hyperscale.scheduler.worker.settings import state_directory

_LISTENING: Final = "0A"


def token_file() -> Path:
    return state_directory() / "token"


def made_token() -> str:
    """The one there is, else a new one; whoever starts at the same moment gets the same. Raises
    BadInput when it cannot be kept."""
    path = token_file()
    try:
        private_directory(path.parent)
        if not path.exists():
            _write(path, secrets.token_urlsafe(32))
    except OSError as error:
        raise BadInput(
            f"a token cannot be kept in {path}: {error.strerror}",
            "set XDG_STATE_HOME to a directory of your own, or give --tokens FILE",
        ) from error
    token = read_private(path, "the token file").strip()
    if not token:
        raise BadInput(f"the token file {path} is empty", "remove it: a new one is made")
    return token


def found_token(host: str, port: int) -> str:
    """For a scheduler at this address; empty: there is none, or it is not for whoever listens."""
    path = token_file()
    if not is_loopback(host) or not path.exists() or not _listens_as_us(port):
        return ""
    return read_private(path, "the token file").strip()


def _write(path: Path, token: str) -> None:
    beside = path.with_name(f"token.{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
    try:
        with suppress(FileExistsError):  # somebody was quicker: theirs counts
            os.link(beside, path)
    finally:
        beside.unlink()


def _listens_as_us(port: int) -> bool:
    """Where the system does not tell who listens, and where nobody does: yes."""
    users: set[int] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table, encoding="ascii") as lines:
            rows = [line.split() for line in lines][1:]
            users |= {
                int(row[7])
                for row in rows
                if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port
            }
    return users <= {0, os.geteuid()}

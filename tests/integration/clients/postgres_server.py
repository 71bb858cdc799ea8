"""A real PostgreSQL server on a Unix socket, where this machine has its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def found() -> bool:
    return _program("initdb") is not None and _program("pg_ctl") is not None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Gives the folder of its socket."""
    # As root it refuses to run; a package of it brings a user of its own.
    account = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="hyperscale-postgres-") as folder:
        if account:
            shutil.chown(folder, account)
        data = f"{folder}/data"
        _run(account, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        settings = f"-c listen_addresses='' -k {folder} -c fsync=off"
        log = f"{folder}/log"
        _run(account, "pg_ctl", "-D", data, "-w", "-t", "30", "-o", settings, "-l", log, "start")
        try:
            yield folder
        finally:
            _run(account, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _program(name: str) -> str | None:
    return shutil.which(name) or next((str(p.with_name(name)) for p in PROGRAMS), None)


def _run(account: str | None, name: str, *words: str) -> None:
    program = _program(name)
    assert program is not None
    subprocess.run(
        [program, *words],
        user=account,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )

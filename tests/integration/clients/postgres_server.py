"""A real PostgreSQL server, by the programs of this machine or else of the wheel `pgserver`."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

WHEEL = find_spec("pgserver")
PROGRAMS = [
    *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")),
    *(Path(WHEEL.origin).parent.glob("pginstall/bin/initdb") if WHEEL and WHEEL.origin else ()),
]
GUARDED = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


def found() -> bool:
    return _program("initdb") is not None and _program("pg_ctl") is not None


@contextmanager
def postgres_server(port: int = 0, *settings: str) -> Iterator[str]:
    """Gives the folder of its socket. At a port, the user `guarded` needs a password."""
    account = _account()
    with tempfile.TemporaryDirectory(prefix="hyperscale-postgres-") as folder:
        if account:
            shutil.chown(folder, account)
        data = f"{folder}/data"
        _run(account, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        hosts, log = "127.0.0.1" if port else "", f"{folder}/log"
        more = " ".join(f"-c {setting}" for setting in settings)
        options = f"-c listen_addresses='{hosts}' -p {port or 5432} -k {folder} -c fsync=off {more}"
        with open(f"{data}/pg_hba.conf", "r+") as rules:
            rest = rules.read()
            rules.seek(0)
            rules.write(GUARDED + rest)
        _run(account, "pg_ctl", "-D", data, "-w", "-t", "30", "-o", options, "-l", log, "start")
        try:
            yield folder
        finally:
            _run(account, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def restart(folder: str) -> None:
    """It is not told to stop, as in a crash; on the same data."""
    command = ("-D", f"{folder}/data", "-m", "immediate", "-w", "-l", f"{folder}/log", "restart")
    _run(_account(), "pg_ctl", *command)


def _account() -> str | None:
    """As root it refuses to run; a package of it brings a user of its own."""
    if os.geteuid() != 0:
        return None
    return "postgres" if any(user.pw_name == "postgres" for user in pwd.getpwall()) else "nobody"


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

"""A real MariaDB server in a folder of its own, by the programs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
USERS = """
create database shop;
create user 'me'@'127.0.0.1' identified by 'secret';
grant all on *.* to 'me'@'127.0.0.1';
flush privileges;
"""


def found() -> bool:
    return all(shutil.which(name, path=PATH) for name in ("mariadbd", "mariadb-install-db"))


@contextmanager
def mariadb_server(port: int, *settings: str) -> Iterator[str]:
    """Gives the address of the database `shop`."""
    with tempfile.TemporaryDirectory(prefix="hyperscale-mariadb-") as folder:
        data, ready = f"{folder}/data", f"{folder}/socket"
        Path(f"{folder}/users.sql").write_text(USERS)
        who = ["--user=root"] if os.geteuid() == 0 else []
        common = ["--no-defaults", f"--datadir={data}", *who]
        install = shutil.which("mariadb-install-db", path=PATH)
        server = shutil.which("mariadbd", path=PATH)
        assert install is not None
        assert server is not None
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        made = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run([install, *common, *made], check=True, timeout=60, **quiet)  # type: ignore[call-overload]
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(
                [
                    *(server, *common, f"--socket={ready}", f"--port={port}"),
                    *("--bind-address=127.0.0.1", f"--init-file={folder}/users.sql"),
                    *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"),
                    *settings,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            ends = time.monotonic() + 60
            while not os.path.exists(ready):
                assert process.poll() is None, Path(f"{folder}/log").read_text()
                assert time.monotonic() < ends, "the server does not begin"
                time.sleep(0.02)
            yield f"mysql://me:secret@127.0.0.1:{port}/shop"
        finally:
            process.kill()
            process.wait()

"""Where a `hyperscale dev` cluster of this user leaves word of itself.

A client on the same machine finds the cluster and its throw-away credentials there, so that
naming the host is enough. The file is readable by its owner only, and is believed only while the
process that wrote it lives.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from hyperscale.runtime.host import Address


class DevCluster(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    directory: str  # everything of it; removed at its end unless the user named it
    kept: bool = False
    managers: tuple[tuple[str, int], ...] = ()
    certs: str = ""
    name: str = "client"

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(Address(*manager) for manager in self.managers)

    @property
    def port(self) -> int:
        return self.managers[0][1]


def folder(environ: Mapping[str, str]) -> Path:
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime, "hyperscale")
    cache = environ.get("XDG_CACHE_HOME")
    return Path(cache) / "hyperscale" if cache else Path.home() / ".cache" / "hyperscale"


def path_of(port: int, environ: Mapping[str, str]) -> Path:
    return folder(environ) / f"dev-{port}.json"


def write(cluster: DevCluster, environ: Mapping[str, str]) -> Path:
    path = path_of(cluster.port, environ)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(cluster))
    os.replace(beside, path)
    return path


def remove(cluster: DevCluster, environ: Mapping[str, str]) -> None:
    """Take the word back, unless another cluster has taken the place."""
    path = path_of(cluster.port, environ)
    found = _read(path)
    if found is not None and found.pid == cluster.pid:
        path.unlink(missing_ok=True)


def living(environ: Mapping[str, str]) -> list[DevCluster]:
    return [cluster for cluster, alive in _all(environ) if alive]


def dead(environ: Mapping[str, str]) -> list[DevCluster]:
    """Those whose process ended without cleaning up."""
    return [cluster for cluster, alive in _all(environ) if not alive]


def _all(environ: Mapping[str, str]) -> Iterator[tuple[DevCluster, bool]]:
    for path in sorted(folder(environ).glob("dev-*.json")):
        cluster = _read(path)
        if cluster is not None and cluster.managers:
            yield cluster, _is_alive(cluster.pid)


def _read(path: Path) -> DevCluster | None:
    """None when it is not there, not ours, or open to others."""
    with suppress(OSError, msgspec.MsgspecError):
        found = path.stat()
        if found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077:
            return msgspec.json.decode(path.read_bytes(), type=DevCluster)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

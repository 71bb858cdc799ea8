"""The sandbox of a generator process on a worker, put up before any of the author's code runs.

Reading is left for Python, installed packages and what programs need of a system; writing for one
directory of its own. The worker's files are closed even where they lie beneath one of those. A
worker proves it at its start: `check` confines a process in the same way, which then tries to read
what it must not. A local run has no sandbox, for its code is the user's own.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from hyperscale.runtime import landlock, privileges, seccomp

# A fork bomb ends here, and a desktop with all its threads does not get there. Root has no limit.
PROCESSES_MAX = 8_192
FILE_BYTES_MAX = 1 << 30
FILES_TRIED_MAX = 1_000

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_ETC = (
    *("resolv.conf", "hosts", "host.conf", "hostname", "nsswitch.conf", "gai.conf"),
    *("services", "protocols", "networks", "passwd", "group", "localtime", "timezone"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "os-release", "mime.types", "alternatives"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted"),
)
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
_FACTS = (
    *("/proc/self", "/proc/stat", "/proc/meminfo", "/proc/cpuinfo", "/proc/loadavg"),
    *("/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys/net"),
    *("/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    home: str  # the one directory it may write to
    private: list[str] = []  # of the worker: not to be read, wherever they lie
    uid: int | None = None  # whom to become; None: who it is
    gid: int | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined process could do, tried."""

    read: list[str] = []  # private files that it could read
    traces: bool = False  # it could look into its parent
    changes: bool = False  # it could change modes of files that are its user's
    beneath: dict[str, str] = {}  # private paths -> what may be read and holds them
    unreadable: list[str] = []  # parts of Python that it should be able to read


def encoded(confinement: Confinement) -> str:
    return msgspec.json.encode(confinement).decode()


def confine(text: str) -> None:
    """This process, for good. Raises OSError: then nothing of the author's may run here."""
    how = msgspec.json.decode(text, type=Confinement)
    _limit()
    privileges.take_no_more()
    if landlock.version():
        _close_files(how)
    if how.uid is not None and how.gid is not None:
        privileges.become(how.uid, how.gid)
    privileges.drop_capabilities()
    privileges.close_memory()
    if seccomp.known():
        seccomp.hold()


def _limit() -> None:
    import resource

    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_NPROC, PROCESSES_MAX),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _close_files(how: Confinement) -> None:
    rules = landlock.Rules()
    private = [os.path.realpath(path) for path in how.private]
    for path in _readable(how.home):
        for place, rights in _without(private, path):
            rules.allow(place, rights)
    for path in _DEVICES:
        rules.allow(path, landlock.READ_FILE | landlock.WRITE_FILE)
    rules.allow_writing(how.home)
    rules.hold()


def _readable(home: str) -> Iterator[str]:
    """Directories and files, by their real paths; some may not exist."""
    trust = ssl.get_default_verify_paths()
    found = [
        *_python(home),
        *(path for path in (trust.cafile, trust.capath) if path),
        *_SYSTEM,
        *(f"/etc/{name}" for name in _ETC),
        *_RESOLVERS,
    ]
    yield from dict.fromkeys(map(os.path.realpath, found))
    yield from _FACTS


def _python(home: str) -> list[str]:
    """Where modules come from, and the interpreter."""
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    imported = [path for path in sys.path if os.path.isabs(path) and path != home]
    return [*prefixes, os.path.dirname(os.path.realpath(sys.executable)), *imported]


def _without(private: Iterable[str], path: str) -> Iterator[tuple[str, int]]:
    """What to allow so that `path` can be read but for what is private: all the rest beneath it,
    piece by piece, and the names of everything, without which nothing could be imported."""
    inside = [one for one in private if _is_beneath(one, path)]
    if not inside:
        yield path, landlock.READ
    elif path not in inside:
        yield path, landlock.READ_DIR
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_symlink():  # where it leads is allowed or not by itself
                    yield from _without(inside, entry.path)


def _is_beneath(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


# -- the proof -----------------------------------------------------------------------------------


def check() -> None:
    """The program of a worker's trial: confine, try, and print what was possible."""
    text = sys.argv[1]
    how = msgspec.json.decode(text, type=Confinement)
    parent = os.getppid()
    private = [os.path.realpath(path) for path in how.private]
    beneath = {
        one: path for path in _readable(how.home) for one in private if _is_beneath(one, path)
    }
    python = [path for path in dict.fromkeys(_python(how.home)) if os.path.exists(path)]
    confine(text)
    proof = Proof(
        read=[path for path in private if _can_read(path)],
        traces=_can_open(f"/proc/{parent}/environ"),
        changes=_can_change(how.home),
        beneath=beneath,
        unreadable=[path for path in python if not _can_read(path)],
    )
    sys.stdout.buffer.write(msgspec.json.encode(proof))


def _can_read(path: str) -> bool:
    """A file, or any of the files beneath a directory."""
    if not os.path.isdir(path):
        return _can_open(path)
    tried = 0
    for folder, _, names in os.walk(path):
        for name in names:
            tried += 1
            if _can_open(os.path.join(folder, name)):
                return True
            if tried == FILES_TRIED_MAX:
                return False
    return False


def _can_change(path: str) -> bool:
    try:
        os.chmod(path, 0o700)
    except OSError:
        return False
    return True


def _can_open(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True

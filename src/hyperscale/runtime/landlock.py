"""Landlock: a process of Linux (5.13 and later) gives up files it will never need, for good.

Spoken to by system calls, since neither Python nor the C library has functions for it. What is not
allowed by name of a directory or file is refused, to the process and to all it starts; also to
trace processes outside, and (since Linux 6.12) to send them signals. Names, sizes and dates of
files, sockets in the file system and the network stay as they were.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys
from functools import cache
from typing import Final

# The same on every architecture of Linux that Python has wheels for.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

# linux/landlock.h
EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15
_MAKE_DEVICE: Final = 1 << 6 | 1 << 11
READ: Final = EXECUTE | READ_FILE | READ_DIR
_OF_A_FILE: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# Version -> rights that it knows, all from bit 0 on: moves between directories came with 2,
# truncation with 3, commands to devices with 5.
_RIGHTS_BY_VERSION: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_SCOPES_SINCE: Final = 6
_SCOPES: Final = 0b11  # abstract sockets and signals


class Refusal(OSError):
    """The kernel would not take a rule, or not be bound by them."""


@cache
def version() -> int:
    """Of the kernel's landlock; 0: it has none, it is switched off, or a filter forbids to ask."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


class Rules:
    """What stays open. `hold` closes everything else, to this thread and all it starts; it must
    have given up new privileges before."""

    def __init__(self) -> None:
        known = version()
        if not known:
            raise Refusal("this kernel has no landlock")
        self._handled = (1 << _RIGHTS_BY_VERSION[min(known, max(_RIGHTS_BY_VERSION))]) - 1
        scopes = _SCOPES if known >= _SCOPES_SINCE else 0
        asked = struct.pack("QQQ", self._handled, 0, scopes)
        self._rules = _checked(_CREATE_RULESET, asked, len(asked), 0)
        self._pinned: list[int] = []

    def allow(self, path: str, rights: int) -> None:
        """Beneath a directory, or of a file. What does not exist need not be allowed."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                rights &= _OF_A_FILE
            rule = struct.pack("=Qi", rights & self._handled, place)
            _checked(_ADD_RULE, self._rules, _PATH_BENEATH, rule, 0)
            # A rule is about a node in memory; those of /proc are made anew when nobody has them.
            if path.startswith("/proc"):
                self._pinned.append(place)
            else:
                os.close(place)

    def allow_writing(self, path: str) -> None:
        """Everything but devices, which would open what lies behind them."""
        self.allow(path, self._handled & ~_MAKE_DEVICE)

    def hold(self) -> None:
        _checked(_RESTRICT_SELF, self._rules, 0)
        os.close(self._rules)


def _checked(number: int, *arguments: int | bytes | None) -> int:
    result = _syscall(number, *arguments)
    if result < 0:
        raise Refusal(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(libc.syscall(ctypes.c_long(number), *words))

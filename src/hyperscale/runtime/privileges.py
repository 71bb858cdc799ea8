"""What a process of Linux may give up: its user, its capabilities, being looked into, outliving.

All of it is for good, and most of it passes on to what the process starts. Elsewhere there is
nothing of the kind that an ordinary process may ask for, and only changing the user works.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from typing import Final

# linux/prctl.h
_PDEATHSIG: Final = 1
_DUMPABLE: Final = 4
_NO_NEW_PRIVS: Final = 38
_CAPABILITIES_V3: Final = 0x20080522  # linux/capability.h


def die_with(parent: int) -> None:
    """The kernel kills this process with its parent. A change of user undoes it: change first."""
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before the kernel had been asked
        os._exit(1)


def close_memory() -> None:
    """Memory, environment and descriptors of this process are for root alone to see, and it leaves
    no core dump. Programs that it starts are as open as ever."""
    _prctl(_DUMPABLE, 0)


def take_no_more() -> None:
    """Programs that this process starts gain nothing by their owner or their capabilities."""
    _prctl(_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    if sys.platform != "linux":
        return
    head, none = struct.pack("Ii", _CAPABILITIES_V3, 0), bytes(24)
    if ctypes.CDLL(None, use_errno=True).capset(head, none) < 0:
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def become(uid: int, gid: int) -> None:
    """For good, without a group of the user before."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")

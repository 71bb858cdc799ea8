"""A filter of system calls for test code: what landlock does not know of.

Landlock closes the contents of files. Their modes, owners and access lists are the user's to change
all the same, and so are priorities and limits of all processes of that user: `chmod 4755` on a
program of root's, or a limit of one second of CPU for the worker. The filter refuses these calls
with EPERM, to the process and to all it starts. Calls that name a process may name the caller,
as 0. What the filter does not know (another architecture, calls of 32 bits) it refuses as a whole.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Final, NamedTuple


class _Machine(NamedTuple):
    arch: int  # linux/audit.h
    seccomp: int
    refused: tuple[int, ...]
    own_only: dict[int, int]
    """Call -> which argument names a process."""


# Modes, owners, extended attributes (access lists are such), and io_uring, which can set them too.
_EVERYWHERE: Final = (425, 452, 463, 466, 469)
_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        (90, 91, 92, 93, 94, 260, 268, 188, 189, 190, 197, 198, 199, *_EVERYWHERE),
        {302: 0, 203: 0, 142: 0, 144: 0, 314: 0, 141: 1, 251: 1},
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        (52, 53, 54, 55, 5, 6, 7, 14, 15, 16, *_EVERYWHERE),
        {261: 0, 122: 0, 118: 0, 119: 0, 274: 0, 140: 1, 30: 1},
    ),
}
_X32_FROM: Final = 0x40000000  # calls of x86-64 with short pointers

# linux/bpf_common.h, linux/seccomp.h
_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_FROM: Final = 0x35
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | 1  # EPERM
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_SET_FILTER: Final = 1
_SPEC_ALLOW: Final = 4  # else older kernels slow the whole process down


def known() -> bool:
    """Whether there is a filter for this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def hold() -> bool:
    """For good; new privileges must have been given up before. False where the kernel has no
    filters. Raises OSError."""
    machine = _MACHINES[platform.machine()]
    program = _program(machine)
    code = ctypes.create_string_buffer(b"".join(program))
    about = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_ulong(_SPEC_ALLOW)
    if libc.syscall(ctypes.c_long(machine.seccomp), ctypes.c_ulong(_SET_FILTER), flags, about) < 0:
        if ctypes.get_errno() in (errno.ENOSYS, errno.EINVAL):
            return False
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")
    return True


def _program(machine: _Machine) -> list[bytes]:
    """Jumps count instructions from the next one on; the last but one allows, the last refuses."""
    body: list[tuple[int, int, str, str]] = []  # code, value, where to if so, where to if not
    body.append((_LOAD, _ARCH_AT, "", ""))
    body.append((_JUMP_EQUAL, machine.arch, "", "refuse"))
    body.append((_LOAD, _NUMBER_AT, "", ""))
    body.append((_JUMP_FROM, _X32_FROM, "refuse", ""))
    body += [(_JUMP_EQUAL, number, "refuse", "") for number in machine.refused]
    for number, argument in machine.own_only.items():
        body.append((_JUMP_EQUAL, number, "", "skip"))
        body.append((_LOAD, _ARGUMENTS_AT + 8 * argument, "", ""))
        body.append((_JUMP_EQUAL, 0, "allow", "refuse"))
    body.append((_RETURN, _ALLOW, "", ""))
    body.append((_RETURN, _REFUSE, "", ""))
    last = len(body) - 1

    def steps(at: int, to: str) -> int:
        return {"": 0, "skip": 2, "allow": last - at - 2, "refuse": last - at - 1}[to]

    return [
        struct.pack("HBBI", code, steps(at, so), steps(at, not_so), value)
        for at, (code, value, so, not_so) in enumerate(body)
    ]

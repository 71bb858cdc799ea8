"""How much memory a generator process may take.

What lives is looked at with every heartbeat. A step that takes very much at once never gets to the
next heartbeat: the kernel refuses it what goes beyond the limit, and Python raises MemoryError.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Above the limit, to tell what happened; the author's code cannot go beyond it.
ROOM_MB = 64

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6 if hasattr(os, "sysconf") else 0.0


def limit(memory_mb: int) -> None:
    """Refuse this process more than that, on top of what the bare interpreter has set aside."""
    if sys.platform != "linux":  # macOS does not enforce it
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = int((_pages(5) * _PAGE_MB + memory_mb) * 1e6)
    room = most + int(ROOM_MB * 1e6)
    if hard != resource.RLIM_INFINITY:
        most, room = min(most, hard), min(room, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, room))


def make_room() -> None:
    """Lift the limit a little, so that what happened can still be told."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def resident_mb() -> float:
    """Memory this process holds now; 0 where it cannot be told cheaply."""
    return _pages(1) * _PAGE_MB


def _pages(column: int) -> int:
    """From /proc/self/statm: column 1 is resident, 5 is data and stack."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[column])
    except (OSError, IndexError, ValueError):
        return 0

"""How much this process uses of what it may use: its own doing, not that of its neighbours.

A node that shares a busy machine is not busy itself: what others take shows in how late its loop
runs, and only there. Of a control group's memory all of its processes use the same limit.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from hyperscale.runtime import cgroup
from hyperscale.runtime.host import Usage


class ProcessUsage:
    def __init__(self, root: Path = cgroup.ROOT, membership: Path = cgroup.MEMBERSHIP) -> None:
        self._root = root
        self._membership = membership
        self._read_at = time.monotonic()
        self._cpu_s = time.process_time()

    def read(self) -> Usage:
        """CPU since the last reading."""
        return Usage(self._cpu(), self._memory())

    def _cpu(self) -> float | None:
        now, cpu_s = time.monotonic(), time.process_time()
        passed_s, used_s = now - self._read_at, cpu_s - self._cpu_s
        self._read_at, self._cpu_s = now, cpu_s
        if passed_s <= 0:
            return None
        return used_s / (passed_s * min(os.cpu_count() or 1, cgroup.cpu_quota(self._root)))

    def _memory(self) -> float:
        """Of the group's limit, or of what the machine still has beside what is ours."""
        share = cgroup.memory_share(self._root, self._membership)
        if share is not None:
            return share
        import psutil

        ours = int(psutil.Process().memory_info().rss)
        return ours / (ours + int(psutil.virtual_memory().available))

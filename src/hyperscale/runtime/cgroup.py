"""What the control group of this process lets it use, where it is in one (version 2 or 1).

A container sees the machine's memory and CPUs, and is killed or held at its own limits. Page cache
counts against a group but is given back on demand, so it is no use of memory here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")

_UNLIMITED_BYTES = 1 << 60  # version 1 says so with a number near 2**63
_GIVEN_BACK = ("active_file", "inactive_file", "slab_reclaimable")


def cpu_quota(root: Path = ROOT) -> float:
    """CPU quota of this cgroup in cores, infinity without one (version 2, then version 1)."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((root / "cpu/cpu.cfs_quota_us").read_text())
        period_us = int((root / "cpu/cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def memory_share(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Of the tightest limit on this group and those it is in; None without any."""
    shares = [
        share
        for version in (_Version2(root), _Version1(root / "memory"))
        for group in _groups(version.root, _path(membership, version.controller))
        if (share := version.share(group)) is not None
    ]
    return max(shares, default=None)


class _Version2:
    controller = ""
    limit, used, prefix = "memory.max", "memory.current", ""

    def __init__(self, root: Path) -> None:
        self.root = root

    def share(self, group: Path) -> float | None:
        try:
            limit = (group / self.limit).read_text().strip()
            if limit == "max" or int(limit) >= _UNLIMITED_BYTES or int(limit) <= 0:
                return None
            used = int((group / self.used).read_text()) - self._given_back(group)
            return max(0.0, used / int(limit))
        except (OSError, ValueError):
            return None

    def _given_back(self, group: Path) -> int:
        lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        known = {fields[0]: int(fields[1]) for fields in lines if len(fields) == 2}
        return sum(known.get(self.prefix + name, 0) for name in _GIVEN_BACK)


class _Version1(_Version2):
    controller = "memory"
    limit, used, prefix = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"


def _path(membership: Path, controller: str) -> str:
    """Of this process in the hierarchy of a controller; "" is that of version 2."""
    try:
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    except (OSError, ValueError):
        pass
    return "/"


def _groups(root: Path, path: str) -> Iterator[Path]:
    """The group and all around it. In a container only the group's own files may be there, at the
    root."""
    inside = PurePosixPath(path.lstrip("/"))
    yield from (root / one for one in (inside, *inside.parents))

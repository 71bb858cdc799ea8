"""What this machine lets us use: cores, open files.

Cores respect CPU affinity and the cgroup's CPU quota, because a container with half a core and
sixty-four visible CPUs must not start sixty-four generators.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from pathlib import Path

from hyperscale.errors import BadInput
from hyperscale.runtime.cgroup import cpu_quota
from hyperscale.runtime.open_files import raise_open_files

# Descriptors a generator needs besides its connections: control socket, event loop, stdio, files.
SPARE_FILES = 64


def usable_cores() -> int:
    """Physical cores, within affinity and cgroup quota; at least 1."""
    logical = os.cpu_count() or 1
    physical = _physical_cores(Path("/sys/devices/system/cpu")) or logical
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    quota = cpu_quota()
    return max(1, math.floor(min(physical, allowed, quota)))


def _physical_cores(cpus: Path) -> int:
    """Logical ones that share a core name each other; 0: unknown."""
    cores = set()
    for siblings in cpus.glob("cpu[0-9]*/topology/thread_siblings_list"):
        with contextlib.suppress(OSError):
            cores.add(siblings.read_text())
    if cores or sys.platform == "linux":
        return len(cores)
    import psutil

    return psutil.cpu_count(logical=False) or 0


def peak_memory_mb() -> float:
    """The most memory this process ever held."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def require_open_files(workflow: str, vus: int) -> None:
    """Refuse at once what would fail connection by connection: one VU needs one open file."""
    limit = raise_open_files()
    if vus + SPARE_FILES > limit:
        raise BadInput(
            f"{workflow} wants {vus:,} VUs on one core, but a process may open only {limit:,} "
            f"files here and each VU holds a connection",
            f"run `ulimit -n {vus + SPARE_FILES}` first (or raise the hard limit in "
            f"/etc/security/limits.conf), use more workers, or set "
            f'http = HTTPOptions(connections="shared", max_connections=...)',
        )


def port_warning(workflow: str, vus: int) -> str:
    """One local address has only so many ports towards one address of the target."""
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return ""
    ports = high - low + 1
    if vus <= ports:
        return ""
    return (
        f"{workflow} wants {vus:,} connections, but this machine has {ports:,} local ports "
        f"towards one target address; widen net.ipv4.ip_local_port_range or use more machines"
    )

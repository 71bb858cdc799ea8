"""What a reader wants to know of the machine that made the load."""

from __future__ import annotations

import contextlib
import os
import platform
import socket

from hyperscale._version import __version__
from hyperscale.metrics.results import Environment


def this_machine(workers: int, command: str) -> Environment:
    return Environment(
        hyperscale=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=os.cpu_count() or 0,
        workers=workers,
        host=socket.gethostname(),
        command=command,
    )


def _cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as facts:
        for line in facts:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

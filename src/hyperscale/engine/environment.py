"""The machine that makes the load, as a reader wants to know it, and its variables."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
from collections.abc import Iterator, Mapping

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


@contextlib.contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """With these in the environment, and without a trace of them afterwards: the program that
    starts a run has an environment of its own."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as facts:
        for line in facts:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

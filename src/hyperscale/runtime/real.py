"""The real body of a host: the machine's clock, network, disk and dice, on asyncio (uvloop)."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hyperscale.runtime.disk import RealDisk
from hyperscale.runtime.host import Usage
from hyperscale.runtime.network import RealNetwork
from hyperscale.runtime.tasks import RealTasks, Report, log_failure
from hyperscale.runtime.usage import ProcessUsage

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on uvloop where there is one, on plain asyncio elsewhere."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


# Linux's monotonic clock stands still while a machine is suspended; a leader waking up would go on
# believing in a lease that ended long ago. The boot-time clock counts the sleep.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class RealClock:
    def now(self) -> float:
        return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RealHost:
    """One node's world. `stop` leaves no task, socket, thread or open file behind."""

    def __init__(
        self,
        name: str,
        data_directory: Path | str,
        seed: int | None = None,
        report: Report = log_failure,
        usage: ProcessUsage | None = None,
    ) -> None:
        self._name = name
        self._clock = RealClock()
        self._tasks = RealTasks(report)
        self._network = RealNetwork(self._tasks)
        self._disk = RealDisk(Path(data_directory))
        self._random = random.Random(seed)
        self._usage = usage or ProcessUsage()

    @property
    def name(self) -> str:
        return self._name

    @property
    def clock(self) -> RealClock:
        return self._clock

    @property
    def network(self) -> RealNetwork:
        return self._network

    @property
    def disk(self) -> RealDisk:
        return self._disk

    @property
    def tasks(self) -> RealTasks:
        return self._tasks

    @property
    def random(self) -> random.Random:
        return self._random

    def usage(self) -> Usage:
        return self._usage.read()

    async def stop(self) -> None:
        """Tasks first: they may still want to say goodbye over the network or close a file."""
        await self._tasks.stop()
        await self._network.close()
        await self._disk.close()

    async def __aenter__(self) -> RealHost:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

"""The host of a test: the real one, or one whose clocks the test moves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from hyperscale.runtime.real import RealClock
from hyperscale.runtime.tasks import RealTasks
from hyperscale.scheduler.instants import instants_of

wall_clock = instants_of(RealClock())


class MovedClock:
    def __init__(self, now: Callable[[], float], wall: Callable[[], float]) -> None:
        self.now = now
        self.wall = wall


class HostOf:
    """What the scheduler asks of a host, with clocks of choice."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock: Any = MovedClock(now, wall)
        self.tasks = RealTasks()
        self.random = random.Random()


def host_of(
    now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
) -> Any:
    return HostOf(now, wall)

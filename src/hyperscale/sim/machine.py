"""A simulated machine: what outlives the process on it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from hyperscale.sim.disk import DiskImage
from hyperscale.sim.links import Latency
from hyperscale.sim.process import Process

if TYPE_CHECKING:
    from hyperscale.sim.host import SimHost

Main = Callable[["SimHost"], Coroutine[Any, Any, Any]]


class Machine:
    def __init__(self, name: str, ip: str, disk: DiskImage, main: Main) -> None:
        self.name = name
        self.ip = ip
        self.disk = disk
        self.main = main
        self.process: Process | None = None
        """None while it is down."""
        self.host: SimHost | None = None
        self.generation = 0
        self.powered = True
        """A killed process leaves a kernel that refuses connections; a dead machine is silent."""
        self.retired = False
        """Down for good: only an explicit `restart` starts it again."""
        self.clock_rate = 1.0
        self.wall_offset_s = 0.0
        self.slow: Latency | None = None
        """Extra delay of everything in and out."""
        self.certificate: bytes | None = None

    @property
    def up(self) -> bool:
        return self.process is not None

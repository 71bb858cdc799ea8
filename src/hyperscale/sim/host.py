"""The simulated body of `runtime.Host`: one generation of a node on a machine.

A restart makes a new host on the same machine; what a dead generation still holds can neither
speak nor write.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from hyperscale.runtime.host import Address, Stream, Usage
from hyperscale.runtime.tasks import RealTask, RealTasks, Report
from hyperscale.sim.events import Nap
from hyperscale.sim.files import SimDisk
from hyperscale.sim.machine import Machine
from hyperscale.sim.network import SimDatagrams
from hyperscale.sim.process import Process
from hyperscale.sim.streams import PACKET_BYTES, Connection, SimListener, SimStream

if TYPE_CHECKING:
    from hyperscale.sim.world import World

RESOLVE_S = 0.001
CONNECT_RETRY_S = 1.0  # a kernel sends the first packet again after this long, then doubles


class SimClock:
    def __init__(self, world: World, machine: Machine, process: Process) -> None:
        self._world = world
        self._loop = world.loop
        self._machine = machine
        self.now = process.now

    def wall(self) -> float:
        return self._world.wall() + self._machine.wall_offset_s

    def sleep(self, seconds: float) -> Awaitable[None]:
        return Nap(self._loop, seconds) if seconds > 0 else asyncio.sleep(0)


class SimTasks(RealTasks):
    """The task runner of the real body; its tasks live and die with the process."""

    def __init__(self, process: Process, report: Report) -> None:
        super().__init__(report)
        self._process = process

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> RealTask:
        return self._process.context.copy().run(super().spawn, name, work)


class SimNetwork:
    def __init__(self, world: World, machine: Machine, process: Process, tasks: SimTasks) -> None:
        self._world = world
        self._fabric = world.network
        self._machine = machine
        self._process = process
        self._tasks = tasks

    async def bind(
        self, address: Address, on_datagram: Callable[[bytes, Address], None]
    ) -> SimDatagrams:
        return self._fabric.bind(self._machine, self._process, address, on_datagram)

    async def listen(
        self,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> SimListener:
        return SimListener(
            self._fabric, self._machine, self._process, address, on_stream, self._accepted
        )

    async def connect(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout_s: float = 5.0,
    ) -> SimStream:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._connect(address, round_trips=1 if tls is None else 2)
        except TimeoutError:
            raise TimeoutError(f"{address} did not answer within {timeout_s:g} s") from None

    async def resolve(self, name: str, port: int) -> list[Address]:
        await asyncio.sleep(RESOLVE_S)
        found = self._world.addresses(name)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, f"{name} is not known")
        return [Address(ip, port) for ip in found]

    def close(self) -> None:
        """Close every port and listener; streams are reset."""
        self._fabric.abort_streams(self._machine, self._process)
        self._fabric.close_process(self._machine, self._process, silent=False)

    def _accepted(self, stream: SimStream, listener: SimListener) -> None:
        async def serve() -> None:
            try:
                await listener.on_stream(stream)
            finally:
                stream.close()

        try:
            self._tasks.spawn(f"serve {stream.peer}", serve())
        except RuntimeError:
            stream.abort()  # accepted while this host was stopping

    async def _connect(self, address: Address, round_trips: int) -> SimStream:
        fabric, machine = self._fabric, self._machine
        target = self._target(address)
        wait = CONNECT_RETRY_S
        while True:
            if target is not None and target.powered and self._both_ways(target):
                there = fabric.delay(machine, target, PACKET_BYTES)
                back = fabric.delay(target, machine, PACKET_BYTES)
                await asyncio.sleep((there + back) * round_trips)
                if target.powered and self._both_ways(target):
                    break
            await asyncio.sleep(wait)
            wait *= 2
        listener = fabric.listener(Address(target.ip, address.port))
        if listener is None or listener.process.dead:
            raise ConnectionRefusedError(f"{address} refused the connection")
        own = fabric.ephemeral(machine)
        link = Connection(
            fabric,
            (machine, self._process, own),
            (target, listener.process, listener.address),
        )
        fabric.loop.post(listener.process, listener.accepted, link.called, listener)
        return link.caller

    def _target(self, address: Address) -> Machine | None:
        found = self._world.addresses(address.host)
        return self._fabric.by_ip.get(found[0]) if found else None

    def _both_ways(self, target: Machine) -> bool:
        here, there = self._machine.name, target.name
        fabric = self._fabric
        return fabric.passes(here, there, here) and fabric.passes(there, here, here)


class SimHost:
    """Accepted wherever a `runtime.Host` is asked for."""

    def __init__(
        self, world: World, machine: Machine, process: Process, random: Random, report: Report
    ) -> None:
        self.name = machine.name
        self.ip = machine.ip
        """The one address of this host."""
        self.clock = SimClock(world, machine, process)
        self.tasks = SimTasks(process, report)
        self.network = SimNetwork(world, machine, process, self.tasks)
        self.disk = SimDisk(world.loop, process, machine.disk, world.coverage)
        self.random = random
        self.process = process
        self.generation = machine.generation

    def usage(self) -> Usage:
        """A simulated process costs nothing."""
        return Usage()

    async def stop(self) -> None:
        """As the real host: tasks first, they may still want to say goodbye."""
        await self.tasks.stop()
        self.network.close()


@cache
def is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

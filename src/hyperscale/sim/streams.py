"""Simulated TCP: ordered bytes that wait behind a cut and break when it lasts.

A connection needs both directions: data one way, acknowledgements the other. While either is cut,
bytes wait; after `stream_breaks_after_s` both ends break, as keepalive and user timeout make a
real kernel do. A killed process resets its streams at once; a machine without power says nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hyperscale.runtime.host import PUMP_BYTES, Address, Stream
from hyperscale.sim.machine import Machine
from hyperscale.sim.process import Process

if TYPE_CHECKING:
    from hyperscale.sim.network import Fabric

STREAM_BREAKS_AFTER_S = 20.0
# What sender's buffer, network and receiver's buffer take before `drain` waits.
WINDOW_BYTES = 1024 * 1024
PACKET_BYTES = 1_500


class SimStream(Stream):
    """One end. Its methods are called by node code, the underscored ones by the network."""

    def __init__(self, link: Connection, machine: Machine, process: Process, own: Address) -> None:
        self._link = link
        self.machine = machine
        self.process = process
        self.own = own
        self.other: SimStream
        self.gone = False
        """The process that held this end is dead."""
        self.unread = 0
        """Bytes the other end wrote that were not read here yet, wherever they are."""
        self.last_arrival = 0.0
        self.waiting: list[bytes | None] = []
        """Written here and stopped by a cut; None is the end of the stream."""
        self._chunks: deque[bytes] = deque()
        self._ended = False
        self._closing = False
        self._error = ""
        self._reader: asyncio.Future[None] | None = None
        self.drainers: list[asyncio.Future[None]] = []

    @property
    def peer(self) -> Address:
        return self.other.own

    @property
    def closed(self) -> bool:
        return self._closing or self._ended

    def peer_certificate(self) -> bytes | None:
        return self.other.machine.certificate

    async def read(self, limit: int) -> bytes:
        while not self._chunks:
            self._raise_if_broken()
            if self.closed:
                return b""
            await self._news()
        return self._next(limit)

    async def pump(self, take: Callable[[bytes], None]) -> None:
        """As of every stream, without a coroutine for each chunk."""
        while True:
            while not self._chunks:
                self._raise_if_broken()
                if self.closed:
                    return
                await self._news()
            data = self._next(PUMP_BYTES)
            take(data)
            if len(data) == PUMP_BYTES:
                await asyncio.sleep(0)

    def _news(self) -> asyncio.Future[None]:
        """Done when bytes, the end or a break have come."""
        if self._reader is not None and not self._reader.done():
            raise RuntimeError("two readers of one stream")
        self._reader = self._link.loop.create_future()
        return self._reader

    def _next(self, limit: int) -> bytes:
        chunk = self._chunks.popleft()
        if len(chunk) > limit:
            self._chunks.appendleft(chunk[limit:])
            chunk = chunk[:limit]
        self.unread -= len(chunk)
        if self.unread <= WINDOW_BYTES // 2 and self.other.drainers:
            self.other.wake_drainers()
        return chunk

    def write(self, data: bytes) -> None:
        if data and not self.closed and not self.process.dead:
            self.other.unread += len(data)
            self._link.transmit(self, bytes(data))

    async def drain(self) -> None:
        if self.other.unread > WINDOW_BYTES and not self._ended:
            waiter: asyncio.Future[None] = self._link.loop.create_future()
            self.drainers.append(waiter)
            try:
                await waiter
            finally:
                self.drainers.remove(waiter)
        self._raise_if_broken()

    def close(self) -> None:
        if not self.closed and not self.process.dead:
            self._closing = True
            self._link.transmit(self, None)
            self._wake_reader()

    def abort(self) -> None:
        """Close without sending what waits."""
        if not self._ended:
            self._ended = True
            self._wake_reader()
            self._link.abandoned_by(self.machine, silent=False)

    def receive(self, chunk: bytes | None) -> None:
        """Inside the process: bytes, or the end, have arrived."""
        if self._ended or (self._closing and chunk is not None):
            return
        if chunk is None:
            self.close()
            self._ended = True
            self.wake_drainers()
        else:
            self._chunks.append(chunk)
        self._wake_reader()

    def break_off(self, why: str) -> None:
        """Inside the process: the stream is broken."""
        if not self._ended:
            self._ended = True
            self._error = why
            self._wake_reader()
            self.wake_drainers()

    def wake_drainers(self) -> None:
        for waiter in self.drainers:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _raise_if_broken(self) -> None:
        if self._error:
            raise ConnectionResetError(f"the stream to {self.peer} broke: {self._error}")


class Connection:
    """Two ends and the network between them."""

    def __init__(
        self,
        fabric: Fabric,
        caller: tuple[Machine, Process, Address],
        called: tuple[Machine, Process, Address],
    ) -> None:
        self._fabric = fabric
        self.loop = fabric.loop
        self.caller = SimStream(self, *caller)
        self.called = SimStream(self, *called)
        self.caller.other, self.called.other = self.called, self.caller
        self._cut_number = 0
        self._is_cut = False
        fabric.connections[self] = None

    @property
    def _opened_by(self) -> str:
        return self.caller.machine.name

    def _passes(self, end: SimStream) -> bool:
        """What that end writes would arrive."""
        return self._fabric.passes(end.machine.name, end.other.machine.name, self._opened_by)

    def touches(self, machine: Machine) -> bool:
        return self.caller.machine is machine or self.called.machine is machine

    def abort(self, process: Process) -> None:
        """A process that goes on closes what it held."""
        for end in (self.caller, self.called):
            if end.process is process:
                end.abort()

    def transmit(self, end: SimStream, chunk: bytes | None) -> None:
        fabric, loop, target = self._fabric, self.loop, end.other
        here, there = end.machine, target.machine
        cut = fabric.stream_cut(here.name, there.name, self._opened_by)
        if here is not there and (cut is not None or end.waiting):
            if cut is not None:
                fabric.coverage[cut.kind] += 1
            end.waiting.append(chunk)
            return
        size = 0 if chunk is None else len(chunk)
        seconds = fabric.delay(here, there, size + PACKET_BYTES)
        seconds += fabric.retransmissions(here, there)
        # What was written later never overtakes.
        target.last_arrival = max(target.last_arrival, loop.now + seconds)
        said = "end" if chunk is None else f"{size} B"
        fabric.trace.note(loop.now, here.name, f"⇒ {there.name}: stream {said}")
        loop.at(target.last_arrival, self._arrive, target, chunk)

    def _arrive(self, end: SimStream, chunk: bytes | None) -> None:
        if end.gone:
            if end.machine.powered:
                self._reset(end.other, "the other side does not know it")
            return
        if end.closed and chunk is not None:
            self._reset(end.other, "the other side has closed it")
            return
        if chunk is None and end.closed and end.other.closed:
            self._forget()
        self._fabric.loop.enter(end.process, end.receive, chunk)

    def conditions_changed(self) -> None:
        """A cut came or went: waiting bytes move on, or a clock starts."""
        fabric = self._fabric
        is_cut = not (self._passes(self.caller) and self._passes(self.called))
        if is_cut and not self._is_cut:
            self._cut_number += 1
            fabric.loop.at(
                fabric.loop.now + fabric.stream_breaks_after_s, self._give_up, self._cut_number
            )
        self._is_cut = is_cut
        for end in (self.caller, self.called):
            if end.gone:
                end.waiting = []
                if end.machine.powered and not is_cut:
                    self._reset(end.other, "the other side does not know it")
            elif end.waiting and self._passes(end):
                waiting, end.waiting = end.waiting, []
                for chunk in waiting:
                    self.transmit(end, chunk)

    def abandoned_by(self, machine: Machine, silent: bool) -> None:
        for end in (self.caller, self.called):
            if end.machine is not machine or (not end.process.dead and not end.closed):
                continue
            end.gone = True
            if silent:
                self._fabric.loop.at(
                    self._fabric.loop.now + self._fabric.stream_breaks_after_s,
                    self._reset,
                    end.other,
                    "the other side has been silent for too long",
                )
            elif self._passes(end):
                delay = self._fabric.delay(machine, end.other.machine, PACKET_BYTES)
                self._fabric.loop.at(
                    max(end.other.last_arrival, self._fabric.loop.now + delay),
                    self._reset,
                    end.other,
                    "reset by the other side",
                )
            else:
                self.conditions_changed()

    def _give_up(self, cut_number: int) -> None:
        if self._is_cut and self._cut_number == cut_number:
            for end in (self.caller, self.called):
                self._reset(end, "nothing got through for too long")

    def _reset(self, end: SimStream, why: str) -> None:
        if not end.gone and not end.closed:
            self._fabric.coverage["stream-broken"] += 1
            self._fabric.trace.note(
                self._fabric.loop.now,
                end.machine.name,
                f"stream to {end.other.machine.name}: {why}",
            )
        if not end.gone:
            self._fabric.loop.post(end.process, end.break_off, why)
        self._forget()

    def _forget(self) -> None:
        self._fabric.connections.pop(self, None)


class SimListener:
    def __init__(
        self,
        fabric: Fabric,
        machine: Machine,
        process: Process,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        accepted: Callable[[SimStream, SimListener], None],
    ) -> None:
        self._fabric = fabric
        self.machine = machine
        self.process = process
        self.on_stream = on_stream
        self.accepted = accepted
        self.turned_away: Counter[str] = Counter()
        self._address = fabric.add_listener(machine, address, self)

    @property
    def address(self) -> Address:
        return self._address

    def close(self) -> None:
        self._fabric.remove_listener(self)

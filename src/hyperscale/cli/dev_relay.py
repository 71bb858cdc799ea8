"""A process between the datacenters of a dev cluster: what passes takes as long as over a WAN.

Every node tells others an address of this process, which passes on what comes there. A datagram
comes from its sender's own port; who opened a stream, the system knows. Datagrams are passed on
from the address of their sender, so that an answer comes back the same way. Cut, a stream stays
open and holds what it was given, as one does on a network that has lost its way; datagrams are
gone. Whoever is no node of the cluster stands beside the one that it asks.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hyperscale.cli import streams
from hyperscale.cli.dev_links import Links
from hyperscale.cli.serving import hold_lifeline
from hyperscale.errors import BadInput

HOST = "127.0.0.1"
CHUNK_BYTES = 64 * 1024
# What is under way in one direction of one stream: more than a WAN of 250 ms carries at 1 Gbit/s.
HELD_BYTES_MAX = 32 << 20
LOOK_S = 0.1
SEARCHES = 5  # in a table that changes while it is read, so that what is there may be missed


@dataclass(frozen=True, slots=True)
class Place:
    """A node: where it listens, and what others are told."""

    name: str
    dc: str
    pid: int
    port: int
    outer_port: int


def serve(file: Path, text: str, names: list[str], places: list[Place]) -> int:
    hold_lifeline()
    with suppress(KeyboardInterrupt):
        asyncio.run(Relay(file, Links(text, names), names, places).run())
    return 0


class Relay:
    def __init__(self, file: Path, links: Links, names: list[str], places: list[Place]) -> None:
        self.links = links
        self._file = file
        self._names = names
        self._places = places
        self._changed = asyncio.Event()
        self._streams: set[asyncio.Task[None]] = set()
        self._ports: dict[int, _Port] = {}  # by the port at which the node itself listens

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for place in self._places:
            _, self._ports[place.port] = await loop.create_datagram_endpoint(
                lambda place=place: _Port(self, place),  # type: ignore[misc]
                local_addr=(HOST, place.outer_port),
            )
            await asyncio.start_server(self._accepting(place), HOST, place.outer_port)
        streams.note(f"links: {self.links}")
        said = self._file.read_text()
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(OSError):
                text = self._file.read_text()
                if text != said:
                    said = text
                    self._read(text)

    def _read(self, text: str) -> None:
        try:
            self.links = Links(text, self._names)
        except BadInput as error:
            streams.note(f"links stay as they were: {error.message}")
            return
        self._changed.set()
        self._changed = asyncio.Event()
        streams.note(f"links: {self.links}")

    # -- datagrams -----------------------------------------------------------------------------

    def datagram(self, target: Place, data: bytes, port: int) -> None:
        sender = self._ports.get(port)
        if sender is None:  # not of this cluster
            return
        delay_s = self.links.delay_s(sender.place.dc, target.dc, "udp")
        if delay_s is not None:
            asyncio.get_running_loop().call_later(delay_s, sender.send, data, target.port)

    # -- streams -------------------------------------------------------------------------------

    def _accepting(self, place: Place) -> Callable[..., Any]:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                await self._pass(reader, writer, place)
            writer.close()

        return accepted

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Place
    ) -> None:
        source = self._opener(writer.get_extra_info("peername")[1], target)
        # A connection begins with one round trip.
        await self._travelled(source, target.dc, asyncio.get_running_loop().time())
        await self._travelled(target.dc, source, asyncio.get_running_loop().time())
        inner_reader, inner_writer = await asyncio.open_connection(HOST, target.port)
        ways = [
            asyncio.create_task(self._flow(reader, inner_writer, source, target.dc)),
            asyncio.create_task(self._flow(inner_reader, writer, target.dc, source)),
        ]
        self._streams.update(ways)
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self._streams.difference_update(ways)
            inner_writer.close()

    def _opener(self, port: int, target: Place) -> str:
        """The datacenter of the node that opened a stream."""
        dc_of = {place.pid: place.dc for place in self._places}
        pid = _process_with(port, target.outer_port, list(dc_of))
        return target.dc if pid is None else dc_of[pid]

    async def _flow(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, target: str
    ) -> None:
        """Until its end has come through."""
        clock = asyncio.get_running_loop().time
        under_way: deque[tuple[float, bytes]] = deque()
        moved = asyncio.Event()
        held = 0

        async def read() -> None:
            nonlocal held
            data = b"-"
            while data:
                try:
                    data = await reader.read(CHUNK_BYTES)
                except OSError:
                    data = b""
                under_way.append((clock(), data))
                held += len(data)
                moved.set()
                while held > HELD_BYTES_MAX:
                    moved.clear()
                    await moved.wait()

        reading = asyncio.create_task(read())
        try:
            while True:
                while not under_way:
                    moved.clear()
                    await moved.wait()
                sent_at, data = under_way[0]
                await self._travelled(source, target, sent_at)
                if not data:
                    return
                under_way.popleft()
                held -= len(data)
                moved.set()
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            reading.cancel()

    async def _travelled(self, source: str, target: str, sent_at: float) -> None:
        """When what was sent then arrives; not as long as the way is cut."""
        clock = asyncio.get_running_loop().time
        while True:
            changed = self._changed
            delay_s = self.links.delay_s(source, target, "tcp")
            if delay_s is None:
                await changed.wait()
            elif (left_s := sent_at + delay_s - clock()) > 0:
                await asyncio.sleep(left_s)
            else:
                return


def _process_with(port: int, to: int, pids: list[int]) -> int | None:
    """Whose connection it is, between these ports. Raises OSError: it is gone."""
    if sys.platform != "linux":
        return next((pid for pid in pids if (port, to) in _ports_of(pid)), None)
    socket = _socket_at(port, to)  # a hundredth of what the general way costs
    for pid in pids:
        with suppress(OSError):
            for file in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):  # closed meanwhile
                    if os.readlink(file.path) == socket:
                        return pid
    return None


def _socket_at(port: int, to: int) -> str:
    ends = [f"0100007F:{number:04X}" for number in (port, to)]
    for _ in range(SEARCHES):
        for line in Path("/proc/net/tcp").read_text().splitlines():
            if ends[0] in line and (words := line.split())[1:3] == ends:
                return f"socket:[{words[9]}]"
    raise OSError("the connection is closed")


def _ports_of(pid: int) -> set[tuple[int, int]]:
    with suppress(psutil.Error):
        known = psutil.Process(pid).net_connections("tcp")
        return {(one.laddr.port, one.raddr.port) for one in known if one.raddr}
    return set()


class _Port(asyncio.DatagramProtocol):
    """What others take for the port of a node."""

    def __init__(self, relay: Relay, place: Place) -> None:
        self.place = place
        self._relay = relay
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, source: Any) -> None:
        self._relay.datagram(self.place, data, source[1])

    def send(self, data: bytes, port: int) -> None:
        if self._transport is not None:
            self._transport.sendto(data, (HOST, port))

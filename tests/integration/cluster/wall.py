"""A wall between nodes that can be closed: it passes streams and datagrams on, or nothing at all.

A node behind it listens on 127.0.0.1 and tells others an address of the wall. Closed, the wall
keeps connections open and swallows what they carry, as a network that has lost its way does. It may
also be closed between groups of nodes that speak plainly: who has opened a stream says its name
first, and a datagram comes from its node's own port. Closed for streams alone, it lets datagrams
pass.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

CHUNK_BYTES = 64 * 1024


class Behind(Protocol):
    """A node that stands behind the wall."""

    name: str
    port: int


class _Inward(asyncio.DatagramProtocol):
    """Datagrams to the node; it answers to the address its peer tells in them."""

    def __init__(self, wall: Wall, port: int) -> None:
        self._wall = wall
        self._port = port
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, source: Any) -> None:
        passes = self._wall.only_streams or self._wall.passes(source[1], self._port)
        if passes and self._transport is not None:
            self._transport.sendto(data, ("127.0.0.1", self._port))


class Wall:
    def __init__(self) -> None:
        self._net = f"127.{random.randrange(1, 250)}.{random.randrange(250)}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server | asyncio.DatagramTransport] = []
        self._streams: set[asyncio.Task[None]] = set()
        self._shut = False
        self.only_streams = False
        self._groups: Sequence[Sequence[Behind]] = ()
        self._changed = asyncio.Event()

    def __enter__(self) -> Wall:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def host(self, number: int) -> str:
        return f"{self._net}.{number}"

    def stand_before(self, number: int, port: int) -> None:
        self._run(self._stand(self.host(number), port))

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._set, True, ())

    def divide(self, *groups: Sequence[Behind], only_streams: bool = False) -> None:
        """Nodes of a group hear each other and nobody of another group."""
        self._loop.call_soon_threadsafe(self._set, False, groups, only_streams)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._set, False, ())

    def _set(
        self, shut: bool, groups: Sequence[Sequence[Behind]], only_streams: bool = False
    ) -> None:
        self._shut, self._groups, self.only_streams = shut, groups, only_streams
        self._changed.set()
        self._changed = asyncio.Event()

    def passes(self, speaker: int | None, hearer: int) -> bool:
        """From one node to another, both known by the port they listen on."""
        if self._shut:
            return False
        sides = [self._side(speaker), self._side(hearer)]
        return None in sides or sides[0] == sides[1]

    def _side(self, port: int | None) -> int | None:
        sides = enumerate(self._groups)
        return next((n for n, nodes in sides if any(node.port == port for node in nodes)), None)

    async def _may_pass(self, greeting: bytes, hearer: int) -> None:
        while not self.passes(self._speaker(greeting), hearer):
            await self._changed.wait()

    def _speaker(self, greeting: bytes) -> int | None:
        nodes = [node for nodes in self._groups for node in nodes]
        found = (node.port for node in nodes if msgspec.msgpack.encode(node.name) in greeting)
        return next(found, None)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _stand(self, host: str, port: int) -> None:
        async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass(reader, writer, port)

        self._servers.append(await asyncio.start_server(passed, host, port))
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Inward(self, port), local_addr=(host, port)
        )
        self._servers.append(transport)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        with suppress(OSError):
            greeting = await reader.read(CHUNK_BYTES)
            await self._may_pass(greeting, port)
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            inner_writer.write(greeting)
            ways = [
                self._loop.create_task(self._flow(reader, inner_writer, greeting, port)),
                self._loop.create_task(self._flow(inner_reader, writer, greeting, port)),
            ]
            self._streams.update(ways)
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            self._streams.difference_update(ways)
            inner_writer.close()
        writer.close()

    async def _flow(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        greeting: bytes,
        port: int,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._may_pass(greeting, port)
                writer.write(data)
                await writer.drain()

    async def _close(self) -> None:
        self._set(False, ())
        for server in self._servers:
            server.close()
        for task in list(self._streams):
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

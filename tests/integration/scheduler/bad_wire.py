"""A TCP proxy on loopback that can be cut (it takes what comes and says nothing) or made lossy (a
share of the pieces that pass breaks its connection)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class BadWire:
    def __init__(self, target: str, seed: int) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._dice = random.Random(seed)
        self._whole = asyncio.Event()
        self._whole.set()
        self.loss = 0.0
        self.broken = 0

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        there, back = await asyncio.open_connection(*self._target)
        ways = [self._pass(reader, back), self._pass(there, writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for end in (writer, back):
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._whole.wait()
                if self._dice.random() < self.loss:
                    self.broken += 1
                    return
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def bad_wire(target: str, seed: int = 1) -> AsyncIterator[tuple[BadWire, str]]:
    """With the HOST:PORT where it listens."""
    wire = BadWire(target, seed)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield wire, f"{host}:{port}"
    finally:
        server.close()

"""Lines to a server that only listens: over TCP, or as datagrams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress

# Below the smallest MTU that is usual, less the headers of IPv6 and UDP: no fragments.
DATAGRAM_BYTES = 1_232


class TcpLines:
    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> None:
        self._streams = await asyncio.open_connection(*self._address)

    async def send(self, data: bytes) -> None:
        assert self._streams is not None
        reader, writer = self._streams
        if reader.at_eof():
            raise ConnectionResetError("the server closed the connection")
        writer.write(data)
        await writer.drain()

    async def close(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()
            with suppress(OSError):
                await streams[1].wait_closed()


class Datagrams:
    """Nobody answers them: what is lost on the way is not noticed, unless the host refuses."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        self._socket.connect(address)

    async def send(self, lines: Iterable[str]) -> None:
        """As many lines to a datagram as fit."""
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        filled: list[bytes] = []
        size = 0
        for line in map(str.encode, lines):
            if filled and size + len(line) > DATAGRAM_BYTES:
                await loop.sock_sendall(self._socket, b"\n".join(filled))
                filled, size = [], 0
            filled.append(line)
            size += len(line) + 1
        if filled:
            await loop.sock_sendall(self._socket, b"\n".join(filled))

    async def close(self) -> None:
        used, self._socket = self._socket, None
        if used is not None:
            used.close()

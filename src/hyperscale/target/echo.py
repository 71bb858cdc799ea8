"""What is sent comes back: TCP and UDP at the same port number."""

from __future__ import annotations

import asyncio
from typing import cast


class Echo:
    """Counts lines over TCP and datagrams over UDP."""

    def __init__(self) -> None:
        self.lines = 0
        self.datagrams = 0
        self.port = 0
        self.connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None
        self._datagrams: asyncio.DatagramTransport | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Stream(self), host, port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            self._datagrams, _ = await loop.create_datagram_endpoint(
                lambda: _Datagrams(self), (host, self.port)
            )
        except OSError:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
        if self._server is not None:
            self._server.close()
            for transport in list(self.connections):
                transport.abort()
            await self._server.wait_closed()


class _Stream(asyncio.Protocol):
    def __init__(self, echo: Echo) -> None:
        self._echo = echo

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._echo.connections.add(self._transport)

    def data_received(self, data: bytes) -> None:
        self._echo.lines += data.count(b"\n")
        self._transport.write(data)

    # A client that sends and does not receive is not read any further.
    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._echo.connections.discard(self._transport)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, echo: Echo) -> None:
        self._echo = echo

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self._echo.datagrams += 1
        self._transport.sendto(data, address)

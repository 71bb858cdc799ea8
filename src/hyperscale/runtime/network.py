"""UDP ports, TCP listeners and connections of a real host."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from collections.abc import Awaitable, Callable
from typing import cast

from hyperscale.runtime.host import Address, Stream
from hyperscale.runtime.listening import (
    TLS_GOODBYE_TIMEOUT_S,
    RealListener,
    listening_sockets,
)
from hyperscale.runtime.streams import RealStream, address_of
from hyperscale.runtime.tasks import RealTasks


class RealDatagrams(asyncio.DatagramProtocol):
    def __init__(self, on_datagram: Callable[[bytes, Address], None]) -> None:
        self._on_datagram = on_datagram
        self._transport: asyncio.DatagramTransport | None = None
        self._address = Address("", 0)
        self.send_errors = 0

    @property
    def address(self) -> Address:
        return self._address

    def send(self, to: Address, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._transport.sendto(data, to)
        except (OSError, ValueError):
            self.send_errors += 1  # a datagram may be lost, for whatever reason

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._address = address_of(transport.get_extra_info("sockname"))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._on_datagram(data, Address(addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        self.send_errors += 1  # an ICMP answer to an earlier send, such as "port closed"


class RealNetwork:
    def __init__(self, tasks: RealTasks) -> None:
        self._tasks = tasks
        self._ports: weakref.WeakSet[RealDatagrams] = weakref.WeakSet()
        self._listeners: list[RealListener] = []
        self._streams: weakref.WeakSet[RealStream] = weakref.WeakSet()

    async def bind(
        self, address: Address, on_datagram: Callable[[bytes, Address], None]
    ) -> RealDatagrams:
        loop = asyncio.get_running_loop()
        _, port = await loop.create_datagram_endpoint(
            lambda: RealDatagrams(on_datagram), local_addr=address
        )
        self._ports.add(port)
        return port

    async def listen(
        self,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> RealListener:
        async def serve(stream: RealStream) -> None:
            self._streams.add(stream)
            try:
                await on_stream(stream)
            finally:
                stream.close()

        listener = RealListener(self._tasks, await listening_sockets(address), serve, tls)
        self._listeners.append(listener)
        return listener

    async def connect(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout_s: float = 5.0,
    ) -> RealStream:
        try:
            async with asyncio.timeout(timeout_s):
                _, stream = await asyncio.get_running_loop().create_connection(
                    RealStream,
                    address.host,
                    address.port,
                    ssl=tls,
                    server_hostname=(server_name or address.host) if tls else None,
                    ssl_shutdown_timeout=TLS_GOODBYE_TIMEOUT_S if tls else None,
                )
        except TimeoutError:
            raise TimeoutError(f"{address} did not answer within {timeout_s:g} s") from None
        except ConnectionError as error:
            if str(error):
                raise
            why = f"{address} closed the connection before TLS was ready"
            raise type(error)(why) from error
        except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one
            raise ConnectionError(f"{address} cannot be reached: {error}") from error
        self._streams.add(stream)
        return stream

    async def resolve(self, name: str, port: int) -> list[Address]:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(address_of(entry[4]) for entry in found))

    async def close(self) -> None:
        """Close every port, listener and stream; unsent bytes are dropped."""
        for listener in self._listeners:
            listener.close()
        for port in list(self._ports):
            port.close()
        for stream in list(self._streams):
            stream.abort()
        self._listeners.clear()
        self._ports.clear()
        self._streams.clear()
        await asyncio.sleep(0)  # transports report their end on the next turn of the loop

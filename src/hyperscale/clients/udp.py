"""UDP: datagrams there and back.

A virtual user has one socket for each address, with a port of its own, so that it gets only what is
meant for it.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from time import perf_counter
from typing import Any, ClassVar

from hyperscale.clients.contract import Call
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import UDPResponse
from hyperscale.workload.results import Outcome

DATAGRAM_BYTES_MAX = 65_507  # what IPv4 leaves for the data of one
WAITING_MAX = 1_000  # datagrams that came and nobody received; more are dropped, as the kernel does


class UDPPool(AddressPool):
    kind = "udp"
    schemes: ClassVar = {"udp": False}

    def client(self) -> UDPClient:
        return UDPClient(self)


class UDPClient(AddressClient[UDPPool, "DatagramSocket", UDPResponse]):
    response = UDPResponse

    async def request(
        self, address: str | URL, data: Any, *, timeout: Any = None, name: str | None = None
    ) -> UDPResponse:
        """Send a datagram and receive the one that comes back."""
        sent = datagram_of(data)

        async def talk(sock: DatagramSocket, call: Call, answer: UDPResponse) -> None:
            async with sock.turn:
                call.begin()
                await sock.send(call, sent)
                answer.content = await sock.receive(call)

        return await self._on("REQUEST", address, talk, timeout, name, sent)

    async def send(
        self, address: str | URL, data: Any, *, timeout: Any = None, name: str | None = None
    ) -> UDPResponse:
        """Send a datagram; whether it arrives nobody knows."""
        sent = datagram_of(data)

        async def talk(sock: DatagramSocket, call: Call, answer: UDPResponse) -> None:
            call.begin()
            await sock.send(call, sent)

        return await self._on("SEND", address, talk, timeout, name, sent)

    async def receive(
        self, address: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> UDPResponse:
        """Receive the next datagram from that address."""

        async def talk(sock: DatagramSocket, call: Call, answer: UDPResponse) -> None:
            call.begin()
            answer.content = await sock.receive(call)

        return await self._on("RECEIVE", address, talk, timeout, name)

    async def _open(self, endpoint: Endpoint, call: Call) -> DatagramSocket:
        network, where = self._pool.network, endpoint.authority
        addresses = await network.addresses(endpoint, where)
        family = socket.AF_INET6 if ":" in addresses[0] else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.setblocking(False)
            network.local_addresses.bind(sock)
            sock.connect((addresses[0], endpoint.peer[1]))
        except OSError as error:
            raise failures.of_connecting(error, where) from error
        return DatagramSocket(self._pool, where, sock)


class DatagramSocket:
    """`turn` keeps requests that are made at the same time from taking each other's answers."""

    __slots__ = ("_error", "_loop", "_readiness", "_socket", "_waiter", "_waiting", "turn", "where")

    def __init__(self, pool: UDPPool, where: str, sock: socket.socket) -> None:
        self.where = where
        self.turn = asyncio.Lock()
        self._socket = sock
        self._loop = pool.network.loop
        self._readiness = pool.network.readiness
        self._waiting: deque[tuple[bytes, float]] = deque(maxlen=WAITING_MAX)
        self._error: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._readiness.watch(sock.fileno(), self._readable)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(DATAGRAM_BYTES_MAX)
            self._waiting.append((data, perf_counter()))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:  # of an earlier datagram: nobody listens there
            self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def send(self, call: Call, data: bytes) -> None:
        while True:
            try:
                self._socket.send(data)
                break
            except BlockingIOError:
                await self._readiness.writable(self._socket.fileno())
            except OSError as error:
                raise self._failed(error) from error
        call.wrote(len(data))

    async def receive(self, call: Call) -> bytes:
        while not self._waiting:
            if self._error is not None:
                raise self._failed(self._error)
            self._waiter = self._loop.create_future()
            await self._waiter
        data, at = self._waiting.popleft()
        call.got(len(data), at, at)
        return data

    def _failed(self, error: OSError) -> Failure:
        if isinstance(error, ConnectionRefusedError):
            return Failure(Outcome.REFUSED, f"nobody listens at {self.where} (UDP)")
        return failures.of_connecting(error, self.where)

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def shut(self) -> None:
        if self.is_open:
            self._readiness.forget(self._socket.fileno())
            self._socket.close()


def datagram_of(data: Any) -> bytes:
    sent = payload_of(data)
    if len(sent) > DATAGRAM_BYTES_MAX:
        raise BadInput(f"{len(sent)} bytes are no datagram: one takes {DATAGRAM_BYTES_MAX} at most")
    return sent

"""A host with another network: how a protocol written for a network of its own shares the node's.

Clock, disk, tasks and dice stay the host's. What the protocol binds is a channel of the shared UDP
port; what it listens on and connects to are exchanges over the node's authenticated connections.
Who has proven its name there is addressed by it, with port 0.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

from hyperscale.cluster.identity import NodeId
from hyperscale.nodes.member.exchanges import ExchangeService
from hyperscale.nodes.member.shared_port import Channel, NamedPort, SharedPort
from hyperscale.runtime.host import Address, Datagrams, Host, Listener, Network, Stream


def named(address: Address) -> NodeId | None:
    """Who is behind an address, where that was proven."""
    return address.host if address.port == 0 else None


class ChannelHost:
    def __init__(self, host: Host, network: Network) -> None:
        self.name = host.name
        self.clock = host.clock
        self.network = network
        self.disk = host.disk
        self.tasks = host.tasks
        self.random = host.random
        self.usage = host.usage


class MembershipNetwork:
    def __init__(self, host: Host, port: SharedPort, exchanges: ExchangeService) -> None:
        self._host = host
        self._port = port
        self._exchanges = exchanges

    async def bind(
        self, address: Address, on_datagram: Callable[[bytes, Address], None]
    ) -> Datagrams:
        return self._port.attach(Channel.MEMBERSHIP, on_datagram)

    async def listen(
        self,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> Listener:
        return self._exchanges.listen(on_stream)

    async def connect(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout_s: float = 5.0,
    ) -> Stream:
        return self._exchanges.connect(address, timeout_s)

    async def resolve(self, name: str, port: int) -> list[Address]:
        return await self._host.network.resolve(name, port)


class ElectionNetwork:
    """Datagrams only; a voter's address is its id, which `find` turns into a place."""

    def __init__(self, port: SharedPort, find: Callable[[str], Address | None]) -> None:
        self._port = port
        self._find = find

    async def bind(
        self, address: Address, on_datagram: Callable[[bytes, Address], None]
    ) -> Datagrams:
        self._port.attach(Channel.ELECTION, on_datagram)
        return NamedPort(self._port, Channel.ELECTION, self._find)

    async def listen(
        self,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> Listener:
        raise NotImplementedError("an election needs no streams")

    async def connect(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout_s: float = 5.0,
    ) -> Stream:
        raise NotImplementedError("an election needs no streams")

    async def resolve(self, name: str, port: int) -> list[Address]:
        return [Address(name, port)]

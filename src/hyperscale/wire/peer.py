"""Another node, by address: connected when first needed, and again when needed after a break.

A peer does not retry: whether a lost request may be repeated is known to its caller only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hyperscale.runtime.host import Address, Task
from hyperscale.wire import handshake
from hyperscale.wire.connection import Connection
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Malformed, NobodyListens
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.identity import Identity
from hyperscale.wire.updates import Updates

R = TypeVar("R")


class Peer:
    def __init__(
        self,
        endpoint: Endpoint,
        address: Address,
        *,
        expect_role: str | None = None,
        expect_node: str | None = None,
        expect_datacenter: str | None = None,
        server_name: str | None = None,
    ) -> None:
        """`expect_node`, `expect_datacenter`: who is meant; an address that has become another
        node's, or was written down for the wrong datacenter, is not it."""
        self.address = address
        self._endpoint = endpoint
        self._expect_role = expect_role
        self._expect_node = expect_node
        self._expect_datacenter = expect_datacenter
        self._server_name = server_name
        self._connection: Connection | None = None
        self._reading: Task | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    @property
    def identity(self) -> Identity | None:
        """Who was at the other end last; None before the first connection."""
        return None if self._connection is None else self._connection.peer

    async def connection(self) -> Connection:
        """The live connection, made if there is none. Raises the types of `errors`."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        async with self._connecting:
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect()
            return self._connection

    def request(
        self, message: object, expect: type[R], timeout_s: float | None = None
    ) -> Coroutine[Any, Any, R]:
        """As `Connection.request`; the time to connect counts."""
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection.request(message, expect, timeout_s)
        return self._connect_and_request(message, expect, timeout_s)

    async def _connect_and_request(
        self, message: object, expect: type[R], timeout_s: float | None
    ) -> R:
        if timeout_s is None:
            timeout_s = self._endpoint.limits.request_timeout_s
        clock = self._endpoint.host.clock
        started = clock.now()
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self.connection()
        except TimeoutError:
            raise DeadlineExceeded(f"{self.address} could not be connected in time") from None
        left_s = max(timeout_s - (clock.now() - started), 0.001)
        return await connection.request(message, expect, left_s)

    async def send(self, message: object) -> None:
        await (await self.connection()).send(message)

    def tell(self, message: object) -> bool:
        """Send one way at once, or not at all: False without a connection that has room."""
        return self._connection is not None and self._connection.tell(message)

    async def subscribe(self, message: object, expect: type[R], window: int = 64) -> Updates[R]:
        return (await self.connection()).subscribe(message, expect, window)

    async def ping(self, timeout_s: float | None = None) -> float:
        return await (await self.connection()).ping(timeout_s)

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _check(self, found: Identity) -> None:
        """Raises Disconnected."""
        if self._expect_node not in (None, found.node_id):
            raise Disconnected(f"{found.node_id} is at {self.address}, not {self._expect_node}")
        if self._expect_datacenter not in (None, found.datacenter):
            raise Disconnected(
                f"{found.node_id} at {self.address} is of datacenter {found.datacenter}, "
                f"not of {self._expect_datacenter}"
            )

    async def _connect(self) -> Connection:
        if self._closed:
            raise Disconnected(f"the peer at {self.address} was closed")
        endpoint = self._endpoint
        try:
            stream = await endpoint.host.network.connect(
                self.address,
                endpoint.client_tls(self.address),
                self._server_name,
                endpoint.limits.connect_timeout_s,
            )
        except TimeoutError as error:
            raise DeadlineExceeded(str(error)) from None
        except ConnectionRefusedError as error:
            raise NobodyListens(str(error)) from None
        except OSError as error:
            raise Disconnected(str(error)) from None
        decoder = FrameDecoder(handshake.GREETING_BYTES_MAX)
        try:
            session = await handshake.call(
                stream,
                decoder,
                endpoint.introduction,
                self._expect_role,
                endpoint.limits.handshake_timeout_s,
            )
            endpoint.withdrawn.check(session.peer.node_id, session.serial)
            if self._closed:
                raise Disconnected(f"the peer at {self.address} was closed")
            self._check(session.peer)
        except BaseException as error:
            stream.close()
            if isinstance(error, Malformed):
                raise Disconnected(f"{self.address} does not speak the protocol: {error}") from None
            raise
        connection = Connection(endpoint, stream, session, decoder)
        name = f"read {session.peer.role} {session.peer.node_id}"
        self._reading = endpoint.host.tasks.spawn(name, connection.run())
        return connection

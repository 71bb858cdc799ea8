"""What all connections of a workflow share in reaching a host, and a socket to one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Protocol, TypeVar

from hyperscale.clients.io import opening
from hyperscale.clients.io.readiness import Readiness
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.hosts import HostMap
from hyperscale.clients.net.local_addresses import LocalAddresses
from hyperscale.clients.net.names import Resolver
from hyperscale.clients.net.tls import TLSContexts
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Connect


class Opened(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Opened)


class Network:
    def __init__(self, options: HTTPOptions) -> None:
        self.unix_socket = options.unix_socket
        self.server_name = options.server_name
        self.resolver = Resolver(options.ip, options.dns_ttl)
        self.local_addresses = LocalAddresses(options.local_addresses)
        self.hosts = HostMap(options.hosts)
        self._options = options
        self._tls: dict[tuple[str, ...], TLSContexts] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    # No cached_property: it would make every other attribute slower to read.
    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    @property
    def readiness(self) -> Readiness:
        return Readiness.of(self.loop)

    def tls(self, *protocols: str) -> TLSContexts:
        """For connections on which these are offered to the server (ALPN)."""
        made = self._tls.get(protocols)
        if made is None:
            made = self._tls[protocols] = TLSContexts(self._options, protocols)
            made.check()
        return made

    async def addresses(self, endpoint: Endpoint, name: str) -> Sequence[str]:
        """Those of its peer that can be reached from here. Raises Failure."""
        if self.unix_socket:
            return ()
        found = await self.resolver.addresses(endpoint.peer[0])
        return self.local_addresses.usable(found, name)

    async def reach(self, endpoint: Endpoint, addresses: Sequence[str]) -> socket.socket:
        """A connected socket. Raises OSError or Failure."""
        if self.unix_socket:
            return await opening.connect_unix(self.readiness, self.unix_socket)
        if len(addresses) == 1:
            return await self._connect(endpoint, addresses[0])
        return await self.race(endpoint, addresses, partial(self._connect, endpoint))

    async def open(self, endpoint: Endpoint, tls: TLSContexts) -> tuple[socket.socket, Connect]:
        """A socket that is ready to talk, and how long each phase took. Raises Failure."""
        began = perf_counter()
        where = endpoint.authority
        try:
            addresses = await self.addresses(endpoint, where)
            resolved = perf_counter()
            sock = await self.reach(endpoint, addresses)
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, self.unix_socket or where) from error
        connected = secured = perf_counter()
        if endpoint.secure:
            context = tls.context(endpoint.host)
            try:
                sock = await opening.secure(self.readiness, sock, context, endpoint.server_name)
            except OSError as error:
                raise failures.of_securing(error, where) from error
            secured = perf_counter()
        return sock, Connect(resolved - began, connected - resolved, secured - connected)

    async def _connect(self, endpoint: Endpoint, address: str) -> socket.socket:
        port = endpoint.peer[1]
        return await opening.connect(self.readiness, address, port, self.local_addresses.bind)

    async def race(
        self, endpoint: Endpoint, addresses: Sequence[str], connect: Callable[[str], Awaitable[T]]
    ) -> T:
        """What `connect` makes of the first address that answers. Raises OSError when none does,
        and whatever else it raises."""
        attempts = endpoint.attempts(addresses)
        running: dict[asyncio.Future[T], str] = {}
        reason: BaseException | None = None
        try:
            while not attempts.exhausted:
                now = perf_counter()
                address = attempts.start(now)
                if address is not None:
                    running[asyncio.ensure_future(connect(address))] = address
                due = attempts.next_at(now)
                done, _ = await asyncio.wait(
                    running,
                    timeout=None if due is None else due - now,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    address = running.pop(task)
                    reason = task.exception()
                    if reason is None:
                        attempts.connected(address)
                        return task.result()
                    if not isinstance(reason, OSError):
                        raise reason
                    attempts.failed(address, perf_counter())
        finally:
            for task in running:
                if not task.cancel() and not task.exception():
                    task.result().close()
        assert reason is not None
        raise reason

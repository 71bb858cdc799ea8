"""Opening a connection: name lookup, socket, a proxy's tunnel, TLS; each timed apart."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http import failures
from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.failures import Failure
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.tunnel import Handshake
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http.pool import HTTPPool


async def open_connection(pool: HTTPPool, route: Route, idle: list[Connection]) -> Connection:
    """Raises Failure for everything the network can do."""
    connection = Connection(pool, route, idle)
    started = perf_counter()
    addresses: Sequence[str] = ()
    target: str | None = None
    try:
        if not pool.unix_socket:
            addresses = await pool.resolver.addresses(route.peer[0])
            addresses = pool.local_addresses.usable(addresses, route.peer_name)
            if route.looks_up_target:
                target = (await pool.resolver.addresses(route.place[0]))[0]
        resolved = perf_counter()
        handshake = route.handshake(pool.heads, target)
        to_proxy = route.proxy is not None and route.proxy.scheme == "https"
        held = to_proxy or route.secure or handshake is not None
        plain: Callable[[], asyncio.Protocol] = Greeting if held else lambda: connection
        transport, protocol = await _reach(pool, route, addresses, plain)
        connected = perf_counter()
    except (OSError, Failure) as error:
        raise failures.of_connecting(error, pool.unix_socket or route.peer_name) from error
    try:
        if to_proxy:
            transport, protocol = await _secure_proxy(pool, route, transport)
        if handshake is not None:
            assert isinstance(protocol, Greeting)
            await protocol.run(handshake, transport)
        if route.secure:
            context = pool.tls.context(route.host)
            transport = await _start_tls(pool, transport, connection, context, route.server_name)
        elif held:
            transport.set_protocol(connection)
    except (OSError, RuntimeError, Failure) as error:  # uvloop: RuntimeError when closed
        transport.abort()
        raise _of_tls(error, route.authority) from error
    except BaseException:
        transport.abort()
        raise
    secured = perf_counter()
    tls_s = secured - connected if route.secure or to_proxy else 0.0
    connection.attach(transport, Connect(resolved - started, connected - resolved, tls_s))
    return connection


async def _reach(
    pool: HTTPPool, route: Route, addresses: Sequence[str], plain: Callable[[], asyncio.Protocol]
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    if pool.unix_socket:
        return await pool.loop.create_unix_connection(plain, pool.unix_socket)
    if len(addresses) == 1 and not pool.local_addresses:  # nothing to choose: the loop is quicker
        return await pool.loop.create_connection(plain, addresses[0], route.peer[1])
    return await pool.loop.create_connection(plain, sock=await _race(pool, route, addresses))


async def _race(pool: HTTPPool, route: Route, addresses: Sequence[str]) -> socket.socket:
    """A socket to the first address that answers."""
    attempts = route.attempts(addresses)
    running: dict[asyncio.Task[socket.socket], str] = {}
    reason: BaseException | None = None
    try:
        while not attempts.exhausted:
            now = perf_counter()
            address = attempts.start(now)
            if address is not None:
                running[asyncio.ensure_future(_connect(pool, route, address))] = address
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


async def _connect(pool: HTTPPool, route: Route, address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pool.local_addresses.bind(made)
        await pool.loop.sock_connect(made, (address, route.peer[1]))
    except BaseException:
        made.close()
        raise
    return made


class Greeting(asyncio.Protocol):
    """Holds a socket until TLS starts on it; talks to a proxy before that."""

    def __init__(self) -> None:
        self.lost = False
        self.transport: asyncio.Transport | None = None
        self.handshake: Handshake | None = None
        self.ended: asyncio.Future[None] | None = None

    async def run(self, handshake: Handshake, transport: asyncio.Transport) -> None:
        self.handshake, self.transport = handshake, transport
        self.ended = asyncio.get_running_loop().create_future()
        transport.write(handshake.start())
        if self.lost:
            handshake.end()
        else:
            await self.ended
        self.handshake = None
        failure = handshake.failure()
        if failure is not None:
            raise failure

    def data_received(self, data: bytes) -> None:
        if self.handshake is not None and self.transport is not None:
            answer = self.handshake.feed(data)
            if answer:
                self.transport.write(answer)
            self._look()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        if self.handshake is not None:
            self.handshake.end()
            self._look()

    def _look(self) -> None:
        ended = self.ended
        if self.handshake is not None and self.handshake.done and ended and not ended.done():
            ended.set_result(None)


async def _secure_proxy(
    pool: HTTPPool, route: Route, transport: asyncio.Transport
) -> tuple[asyncio.Transport, Greeting]:
    assert route.proxy is not None
    protocol, host = Greeting(), route.proxy.host
    context = pool.tls.proxy_context(host)
    try:
        return await _start_tls(pool, transport, protocol, context, host), protocol
    except (OSError, RuntimeError) as error:
        raise _of_tls(error, route.proxy.name) from error


async def _start_tls(
    pool: HTTPPool,
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    context: ssl.SSLContext,
    server_name: str,
) -> asyncio.Transport:
    secured = await pool.loop.start_tls(transport, protocol, context, server_hostname=server_name)
    if secured is None:
        raise ConnectionResetError
    return secured


def _of_tls(error: Exception, where: str) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, ssl.SSLError):
        return failures.of_handshake(error, where)
    if isinstance(error, ConnectionError | RuntimeError):
        return Failure(Outcome.TLS, f"{where} closed the connection during the TLS handshake")
    return failures.of_connecting(error, where)

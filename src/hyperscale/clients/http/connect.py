"""Opening a connection: name lookup, socket, a proxy's tunnel, TLS; each timed apart."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http import failures
from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.failures import Failure
from hyperscale.clients.http.reader import ResponseReader
from hyperscale.clients.http.route import Route
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http.pool import HTTPPool


async def open_connection(pool: HTTPPool, route: Route, idle: list[Connection]) -> Connection:
    """Raises Failure for everything the network can do."""
    connection = Connection(pool, route, idle)
    started = perf_counter()
    connected = 0.0
    addresses: tuple[str, ...] = ()
    try:
        if not pool.unix_socket:
            addresses = await pool.resolver.addresses(route.peer[0])
        resolved = perf_counter()
        plain: Callable[[], asyncio.Protocol] = Greeting if route.secure else lambda: connection
        transport, protocol = await _reach(pool, route, addresses, plain)
        connected = perf_counter()
    except (OSError, Failure) as error:
        raise failures.of_connecting(error, _peer(pool, route)) from error
    if isinstance(protocol, Greeting):
        try:
            if route.proxy:
                await _tunnel(pool, transport, protocol, route)
            transport = await _start_tls(pool, route, transport, connection)
        except (OSError, RuntimeError, Failure) as error:  # uvloop: RuntimeError when closed
            transport.abort()
            raise _of_tls(error, route) from error
        except BaseException:
            transport.abort()
            raise
    secured = perf_counter()
    tls_s = secured - connected if route.secure else 0.0
    connection.attach(transport, Connect(resolved - started, connected - resolved, tls_s))
    return connection


async def _reach(
    pool: HTTPPool, route: Route, addresses: tuple[str, ...], plain: Callable[[], asyncio.Protocol]
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    if pool.unix_socket:
        return await pool.loop.create_unix_connection(plain, pool.unix_socket)
    turn = route.in_turn(addresses)
    port = route.peer[1]
    for address in turn[:-1]:
        try:
            # Half of what is left for each address, so that a silent one does not use it all up.
            async with asyncio.timeout(pool.connect_timeout / 2):
                return await pool.loop.create_connection(plain, address, port)
        except OSError:
            route.rest(address)
    return await pool.loop.create_connection(plain, turn[-1], port)


def _peer(pool: HTTPPool, route: Route) -> str:
    if pool.unix_socket:
        return pool.unix_socket
    if route.proxy:
        return f"proxy {route.proxy.host}:{route.proxy.port}"
    return route.where


class Greeting(asyncio.Protocol):
    """Holds a socket until TLS starts on it; reads a proxy's answer before that."""

    def __init__(self) -> None:
        self.lost = False
        self.reader: ResponseReader | None = None
        self.answered: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        if self.reader is not None:
            self.reader.feed(data)
            if self.reader.done:
                self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._wake()

    def _wake(self) -> None:
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)


async def _tunnel(
    pool: HTTPPool, transport: asyncio.Transport, greeting: Greeting, route: Route
) -> None:
    assert route.proxy is not None
    greeting.reader = reader = ResponseReader(pool.heads, bodiless=True)
    greeting.answered = pool.loop.create_future()
    auth = f"Proxy-Authorization: {route.proxy.auth}\r\n" if route.proxy.auth else ""
    asked = f"CONNECT {route.where} HTTP/1.1\r\nHost: {route.where}\r\n{auth}\r\n"
    transport.write(asked.encode())
    if not greeting.lost:
        await greeting.answered
    proxy = f"proxy {route.proxy.host}:{route.proxy.port}"
    if reader.head is None:
        problem = reader.error or "closed the connection"
        raise Failure(Outcome.PROTOCOL, f"{proxy} {problem} when asked for {route.where}")
    if not 200 <= reader.head.status < 300:
        answer = f"{reader.head.status} {reader.head.reason}".strip()
        raise Failure(Outcome.REFUSED, f"{proxy} refused the tunnel to {route.where}: {answer}")
    greeting.reader = None


async def _start_tls(
    pool: HTTPPool, route: Route, transport: asyncio.Transport, connection: Connection
) -> asyncio.Transport:
    secured = await pool.loop.start_tls(
        transport, connection, pool.tls, server_hostname=route.server_name
    )
    if secured is None:
        raise ConnectionResetError
    return secured


def _of_tls(error: Exception, route: Route) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, ssl.SSLError):
        return failures.of_tls(error, route.where)
    if isinstance(error, ConnectionError | RuntimeError):
        return Failure(Outcome.TLS, f"{route.where} closed the connection during the TLS handshake")
    return failures.of_connecting(error, route.where)

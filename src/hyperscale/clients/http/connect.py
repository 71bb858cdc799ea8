"""Opening a connection: name lookup, socket, a proxy's tunnel, TLS; each timed apart."""

from __future__ import annotations

import asyncio
import socket
import ssl
from time import perf_counter
from typing import TYPE_CHECKING

from hyperscale.clients.http import failures
from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.failures import Failure
from hyperscale.clients.http.reader import ResponseReader
from hyperscale.clients.http.route import Route
from hyperscale.clients.io import opening
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http.pool import HTTPPool


async def open_connection(pool: HTTPPool, route: Route, idle: list[Connection]) -> Connection:
    """Raises Failure for everything the network can do."""
    started = perf_counter()
    addresses: tuple[str, ...] = ()
    try:
        if not pool.unix_socket:
            addresses = await pool.resolver.addresses(route.peer[0])
        resolved = perf_counter()
        sock = await _reach(pool, route, addresses)
    except (OSError, Failure) as error:
        raise failures.of_connecting(error, _peer(pool, route)) from error
    connected = secured = perf_counter()
    if route.secure:
        try:
            if route.proxy:
                await _tunnel(pool, sock, route)
            sock = await opening.secure(pool.readiness, sock, pool.tls, route.server_name)
        except (OSError, Failure) as error:
            sock.close()
            raise _of_tls(error, route) from error
        except BaseException:
            sock.close()
            raise
        secured = perf_counter()
    phases = Connect(resolved - started, connected - resolved, secured - connected)
    return Connection(pool, route, idle, sock, phases)


async def _reach(pool: HTTPPool, route: Route, addresses: tuple[str, ...]) -> socket.socket:
    if pool.unix_socket:
        return await opening.connect_unix(pool.readiness, pool.unix_socket)
    turn = route.in_turn(addresses)
    port = route.peer[1]
    for address in turn[:-1]:
        try:
            # Half of what is left for each address, so that a silent one does not use it all up.
            async with asyncio.timeout(pool.connect_timeout / 2):
                return await opening.connect(pool.readiness, address, port)
        except OSError:
            route.rest(address)
    return await opening.connect(pool.readiness, turn[-1], port)


def _peer(pool: HTTPPool, route: Route) -> str:
    if pool.unix_socket:
        return pool.unix_socket
    if route.proxy:
        return f"proxy {route.proxy.host}:{route.proxy.port}"
    return route.where


async def _tunnel(pool: HTTPPool, sock: socket.socket, route: Route) -> None:
    assert route.proxy is not None
    reader = ResponseReader(pool.heads, bodiless=True)
    auth = f"Proxy-Authorization: {route.proxy.auth}\r\n" if route.proxy.auth else ""
    asked = f"CONNECT {route.where} HTTP/1.1\r\nHost: {route.where}\r\n{auth}\r\n"
    sock.send(asked.encode())
    while not reader.done:
        await pool.readiness.readable(sock.fileno())
        data = sock.recv(4096)
        if not data:
            break
        reader.feed(data)
    proxy = f"proxy {route.proxy.host}:{route.proxy.port}"
    if reader.head is None:
        problem = reader.error or "closed the connection"
        raise Failure(Outcome.PROTOCOL, f"{proxy} {problem} when asked for {route.where}")
    if not 200 <= reader.head.status < 300:
        answer = f"{reader.head.status} {reader.head.reason}".strip()
        raise Failure(Outcome.REFUSED, f"{proxy} refused the tunnel to {route.where}: {answer}")


def _of_tls(error: Exception, route: Route) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return failures.of_tls(error, route.where)
    if isinstance(error, ConnectionError | ssl.SSLEOFError):
        return Failure(Outcome.TLS, f"{route.where} closed the connection during the TLS handshake")
    return failures.of_connecting(error, route.where)

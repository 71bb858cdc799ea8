"""Opening a connection: name lookup, socket, a proxy's tunnel, TLS; each timed apart."""

from __future__ import annotations

import socket
import ssl
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.clients.http.route import Route
from hyperscale.clients.http.tunnel import Handshake
from hyperscale.clients.io import opening
from hyperscale.clients.io.relay import relay
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Connect

if TYPE_CHECKING:
    from hyperscale.clients.http.origin_pool import OriginPool


async def open_socket(pool: OriginPool[Any], route: Route) -> tuple[socket.socket, Connect]:
    """One that is ready for the first request, and how long each phase took. Raises Failure for
    everything the network can do."""
    started = perf_counter()
    network = pool.network
    target: str | None = None
    try:
        addresses = await network.addresses(route, route.peer_name)
        if addresses and route.looks_up_target:
            target = (await network.resolver.addresses(route.place[0]))[0]
        resolved = perf_counter()
        sock = await network.reach(route, addresses)
    except (OSError, Failure) as error:
        raise failures.of_connecting(error, network.unix_socket or route.peer_name) from error
    connected = secured = perf_counter()
    to_proxy = route.proxy is not None and route.proxy.scheme == "https"
    if to_proxy or route.secure or route.proxy:
        sock = await _greet(pool, route, sock, target)
    if to_proxy or route.secure:
        secured = perf_counter()
    return sock, Connect(resolved - started, connected - resolved, secured - connected)


async def _greet(
    pool: OriginPool[Any], route: Route, sock: socket.socket, target: str | None
) -> socket.socket:
    """All that is said before the first request: to a proxy, and for TLS."""
    try:
        if route.proxy is not None and route.proxy.scheme == "https":
            sock = await _secure_proxy(pool, route, sock)
        handshake = route.handshake(pool.heads, target)
        if handshake is not None:
            await _shake_hands(pool, sock, handshake)
        if route.secure:
            if isinstance(sock, ssl.SSLSocket):
                sock = relay(pool.readiness, sock)
            context = pool.tls.context(route.host)
            session = pool.tls.session(route.authority)
            sock = await opening.secure(pool.readiness, sock, context, route.server_name, session)
    except (OSError, Failure) as error:
        sock.close()
        raise failures.of_securing(error, route.authority) from error
    except BaseException:
        sock.close()
        raise
    return sock


async def _secure_proxy(pool: OriginPool[Any], route: Route, sock: socket.socket) -> ssl.SSLSocket:
    assert route.proxy is not None
    context = pool.tls.proxy_context(route.proxy.host)
    try:
        return await opening.secure(pool.readiness, sock, context, route.proxy.host)
    except OSError as error:
        raise failures.of_securing(error, route.proxy.name) from error


async def _shake_hands(pool: OriginPool[Any], sock: socket.socket, handshake: Handshake) -> None:
    await opening.send(pool.readiness, sock, handshake.start())
    while not handshake.done:
        data = await opening.receive(pool.readiness, sock)
        if not data:
            handshake.end()
            break
        answer = handshake.feed(data)
        if answer:
            await opening.send(pool.readiness, sock, answer)
    failure = handshake.failure()
    if failure is not None:
        raise failure

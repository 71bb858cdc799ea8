"""Opening a socket: connecting and the TLS handshake, waiting through the readiness core."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

from hyperscale.clients.io.readiness import Readiness

# Between attempts to reach a unix socket: a thousand users at the longest cost a percent of a core.
_PAUSE_S, _PAUSE_S_MAX = 0.001, 0.1
_UNDER_WAY = {errno.EINPROGRESS, errno.EINTR, errno.EALREADY}
Prepare = Callable[[socket.socket], None]


async def connect(readiness: Readiness, address: str, port: int, prepare: Prepare) -> socket.socket:
    """A connected TCP socket; `prepare` may bind it first. Raises OSError."""
    family, where = _socket_address(address, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        prepare(sock)
        await _established(readiness, sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


async def connect_unix(readiness: Readiness, path: str) -> socket.socket:
    """As `connect`; a server that has as many waiting as it allows is asked again and again: the
    kernel does not tell when there is room."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    pause_s = _PAUSE_S
    try:
        sock.setblocking(False)
        while True:
            try:
                await _established(readiness, sock, path)
                return sock
            except BlockingIOError:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)
    except BaseException:
        sock.close()
        raise


async def _established(readiness: Readiness, sock: socket.socket, where: object) -> None:
    connect_ex: Callable[[Any], int] = sock.connect_ex
    code = connect_ex(where)
    if code in _UNDER_WAY:
        # A peer on this machine has answered by now: nobody need wait, with all that takes.
        code = connect_ex(where)
    if code in _UNDER_WAY:
        await readiness.writable(sock.fileno())
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code and code != errno.EISCONN:
        raise OSError(code, os.strerror(code))


def _socket_address(address: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    if ":" not in address:
        return socket.AF_INET, (address, port)
    if "%" not in address:
        return socket.AF_INET6, (address, port)
    found = socket.getaddrinfo(  # only to turn the zone into its number: nothing is asked for
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
    )
    return socket.AF_INET6, found[0][4]


async def secure(
    readiness: Readiness,
    sock: socket.socket,
    context: ssl.SSLContext,
    server_name: str,
    session: ssl.SSLSession | None = None,
) -> ssl.SSLSocket:
    """The socket with TLS on it. Raises OSError (ssl.SSLError is one); it is closed then."""
    try:
        secured = context.wrap_socket(
            sock, server_hostname=server_name, do_handshake_on_connect=False, session=session
        )
    except ValueError as error:
        sock.close()
        raise ssl.SSLError(f"{server_name} is no name that TLS can ask for: {error}") from error
    except BaseException:
        sock.close()
        raise
    fd = secured.fileno()
    try:
        while True:
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                await readiness.readable(fd)
            except ssl.SSLWantWriteError:
                await readiness.writable(fd)
    except BaseException:
        secured.close()
        raise


async def receive(readiness: Readiness, sock: socket.socket) -> bytes:
    """The next bytes of a socket that no channel reads yet; none: the peer has closed."""
    while True:
        try:
            return sock.recv(16 * 1024)
        except (BlockingIOError, ssl.SSLWantReadError):
            await readiness.readable(sock.fileno())
        except ssl.SSLEOFError:
            return b""


async def send(readiness: Readiness, sock: socket.socket, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            await readiness.writable(sock.fileno())

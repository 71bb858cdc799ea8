"""Replies that take their time or break the rules, as real servers on a bad day do."""

from __future__ import annotations

import asyncio
import socket
import struct
import time

from hyperscale.target.message import Outlet, Request, reply

# The end of the endless header, for a client that would read until its memory is gone.
ENDLESS_BYTES = 256 * 1024 * 1024
LINGER_NOT = struct.pack("ii", 1, 0)


class Later:
    """Answers after a while; the time it really took is counted under `measured_as`."""

    __slots__ = ("_delay_s", "_measured_as", "_payload")

    def __init__(self, delay_s: float, payload: bytes, measured_as: str) -> None:
        self._delay_s = delay_s
        self._payload = payload
        self._measured_as = measured_as

    def perform(self, connection: Outlet, request: Request) -> None:
        started = time.perf_counter()

        def answer() -> None:
            if not connection.transport.is_closing():
                connection.site.delayed(self._measured_as, time.perf_counter() - started)
                connection.send(self._payload, request)
                connection.done()

        asyncio.get_running_loop().call_later(self._delay_s, answer)


class LastWords:
    """Writes exactly these bytes, HTTP or not, and closes."""

    __slots__ = ("_payload",)

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def perform(self, connection: Outlet, request: Request) -> None:
        connection.write_raw(self._payload, request)
        connection.hang_up()


class Reset:
    """Half a response, then a TCP reset instead of a close."""

    def perform(self, connection: Outlet, request: Request) -> None:
        whole = reply(b"x" * 1000)
        connection.transport.write(whole[:-500])
        sock = connection.transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        # One turn of the loop later the half response has left: a reset discards what has not.
        asyncio.get_running_loop().call_soon(connection.transport.abort)


class EndlessHeader:
    """Header lines for as long as the client takes them."""

    LINES = b"".join(b"X-Endless-%04d: %s\r\n" % (n, b"a" * 100) for n in range(500))

    def perform(self, connection: Outlet, request: Request) -> None:
        connection.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
        left = ENDLESS_BYTES

        def pump() -> None:
            nonlocal left
            while connection.writable and not connection.transport.is_closing():
                if left <= 0:
                    connection.transport.abort()
                    return
                connection.transport.write(self.LINES)
                left -= len(self.LINES)

        connection.on_writable = pump
        pump()

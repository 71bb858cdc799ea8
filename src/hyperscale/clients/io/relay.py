"""TLS inside of TLS: a target behind a proxy that speaks TLS itself.

OpenSSL wants a socket of its own for each layer, so the bytes of the inner one pass through a
socket pair, at the other end of which two tasks carry them to and from the outer one.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from hyperscale.clients.io.opening import receive, send
from hyperscale.clients.io.readiness import Readiness

_running: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


def relay(readiness: Readiness, outer: socket.socket) -> socket.socket:
    """A plain socket whose bytes go out and come in through `outer`, until either is closed."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    task = asyncio.ensure_future(_carry_both(readiness, theirs, outer))
    _running.add(task)
    task.add_done_callback(_running.discard)
    return ours


async def _carry_both(readiness: Readiness, near: socket.socket, far: socket.socket) -> None:
    ways = [
        asyncio.ensure_future(_carry(readiness, near, far)),
        asyncio.ensure_future(_carry(readiness, far, near)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
        near.close()
        far.close()


async def _carry(readiness: Readiness, source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):  # one of them broke: the other is closed with it
        while data := await receive(readiness, source):
            await send(readiness, sink, data)

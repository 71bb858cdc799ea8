"""A WebSocket server that keeps to nothing it is not told to."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from hyperscale.websocket_frames import TEXT, FrameReader, accept_of, frame

from .scripted import Peer


def upgraded(request: bytes, *headers: str) -> bytes:
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", request)
    assert key is not None
    lines = "".join(f"{header}\r\n" for header in headers).encode()
    accept = b"Sec-WebSocket-Accept: " + accept_of(key[1])
    both = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    return b"HTTP/1.1 101 Switching Protocols\r\n" + both + accept + b"\r\n" + lines + b"\r\n"


async def upgrade(peer: Peer, *headers: str) -> bytes:
    """The other half of the handshake; gives the request."""
    request = await peer.request()
    await peer.send(upgraded(request, *headers))
    return request


class Upgraded(asyncio.Protocol):
    """For the tests of all clients: answers as `server.behaviour` says."""

    def __init__(self, server: Any, answer: bytes) -> None:
        self._server = server
        self._answer = frame(TEXT, answer, masked=False)
        self._reader: FrameReader | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._server.peers.append(transport)

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self._reader = FrameReader(True, 1000)
            self._transport.write(upgraded(data))
            return
        for kind, _ in self._reader.feed(data):
            if kind != TEXT:
                continue
            self._server.seen += 1
            if self._server.behaviour == "echo":
                self._transport.write(self._answer)
            elif self._server.behaviour == "closes":
                self._transport.close()

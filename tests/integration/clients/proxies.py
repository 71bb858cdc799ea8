"""Proxies for tests: SOCKS5 and CONNECT, in the clear or within TLS, noting what they were asked.

Written from the RFCs, not with the client's own code.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

from .scripted import Handler, Peer


async def relay(peer: Peer, host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
        sink.close()

    await asyncio.gather(copy(peer.reader, writer), copy(reader, peer.writer))


def connect_proxy(asked: list[str], to: str = "127.0.0.1") -> Handler:
    """Every name leads to one address."""

    async def handler(peer: Peer) -> None:
        request = await peer.request()
        asked.append(request.decode())
        port = int(request.split(b" ")[1].rpartition(b":")[2])
        await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay(peer, to, port)

    return handler


def socks_proxy(
    asked: list[tuple[str, int]], login: tuple[str, str] | None = None, reply: int = 0
) -> Handler:
    """Every name leads to this machine; `login` is asked for when given."""

    async def handler(peer: Peer) -> None:
        version, count = await peer.reader.readexactly(2)
        methods = await peer.reader.readexactly(count)
        assert version == 5
        method = 2 if login else 0
        if method not in methods:
            await peer.send(b"\x05\xff")
            return
        await peer.send(bytes((5, method)))
        if login and not await _logged_in(peer, login):
            return
        version, command, reserved, kind = await peer.reader.readexactly(4)
        assert (version, command, reserved) == (5, 1, 0)
        if kind == 3:
            length = (await peer.reader.readexactly(1))[0]
            host = (await peer.reader.readexactly(length)).decode()
            to = "127.0.0.1"
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = to = socket.inet_ntop(family, await peer.reader.readexactly(size))
        (port,) = struct.unpack("!H", await peer.reader.readexactly(2))
        asked.append((host, port))
        for byte in bytes((5, reply, 0, 1, 10, 0, 0, 1, 0, 80)):
            await peer.send(bytes((byte,)))
        if not reply:
            await relay(peer, to, port)

    return handler


async def _logged_in(peer: Peer, login: tuple[str, str]) -> bool:
    texts = []
    assert (await peer.reader.readexactly(1)) == b"\x01"
    for _ in range(2):
        length = (await peer.reader.readexactly(1))[0]
        texts.append((await peer.reader.readexactly(length)).decode())
    right = tuple(texts) == login
    await peer.send(b"\x01\x00" if right else b"\x01\x01")
    return right

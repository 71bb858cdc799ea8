"""Real servers on loopback that answer as a test says, in whole packets or in odd ones."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from hyperscale.clients import Client, ClientPool
from hyperscale.workload.http_options import HTTPOptions

Handler = Callable[["Peer"], Awaitable[None]]
Answer = Callable[[bytes], bytes | None] | bytes


class Peer:
    """One connection seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next request with its body, or nothing when the client is gone."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            return head + await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Until the client has closed its side."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass

    def reset(self) -> None:
        self.writer.transport.abort()


class Server:
    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []


def response(body: bytes = b"hello", status: str = "200 OK", *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {status}\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def serve(
    answer: Answer | None = None,
    handler: Handler | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    unix: str | None = None,
) -> AsyncIterator[Server]:
    """`answer` gives the bytes for each request (None: close); a `handler` does it all itself."""
    seen = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def answering(peer: Peer) -> None:
        while request := await peer.request():
            seen.requests.append(request)
            data = answer(request) if callable(answer) else answer
            if data is None:
                return
            await peer.send(data)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await (handler or answering)(Peer(reader, writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    if unix:
        server = await asyncio.start_unix_server(connected, unix)
        seen.url = "http://unix.test"
    else:
        server = await asyncio.start_server(connected, host, port, ssl=tls)
        seen.port = server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        seen.url = f"{'https' if tls else 'http'}://{name}:{seen.port}"
    try:
        yield seen
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def client(**options: object) -> AsyncIterator[Client]:
    async with pool(**options) as made:
        yield made.client()


@asynccontextmanager
async def pool(**options: object) -> AsyncIterator[ClientPool]:
    made = ClientPool(HTTPOptions(**{"timeout": 10.0, **options}))  # type: ignore[arg-type]
    try:
        yield made
    finally:
        await made.close()


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await asyncio.sleep(0.002)

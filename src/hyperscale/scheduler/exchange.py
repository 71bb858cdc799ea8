"""One HTTP/1.1 request and its answer, on asyncio streams: all that the `http` executor and the
etcd gateway need. One connection per request; the answer's body is bounded.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_url

BODY_BYTES_MAX: Final = 1 << 20
_READ_BYTES: Final = 64 * 1024

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]


class ExchangeFailed(Exception):
    """No whole answer came: connection refused, reset, or not HTTP."""


class Answer(NamedTuple):
    status: int
    body: bytes
    """Its first BODY_BYTES_MAX bytes."""


class _Reading:
    """Callbacks of the parser."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size = 0
        self.complete = False

    def on_body(self, body: bytes) -> None:
        self.size += len(body)
        if self.size <= BODY_BYTES_MAX:
            self.chunks.append(body)

    def on_message_complete(self) -> None:
        self.complete = True


@asynccontextmanager
async def _connected(
    method: str, url: str, headers: Mapping[str, str], body: bytes, lookup: Lookup | None
) -> AsyncIterator[asyncio.StreamReader]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        good = parts.scheme in ("http", "https") and (parts.hostname or "").encode("idna")
    except ValueError:  # a port that is no number, a host that cannot be a name
        good = False
    if not good:
        raise BadInput(f"{plain_url(url)!r} is not an http address")
    context = ssl.create_default_context() if parts.scheme == "https" else None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = {"Host": host, "Connection": "close", **headers}
    if body or method in ("POST", "PUT", "PATCH"):
        lines["Content-Length"] = str(len(body))
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    if any(c in f"{method}{path}{k}{v}" for k, v in lines.items() for c in "\r\n"):
        raise BadInput(f"a line break inside the request to {plain_url(url)!r}")
    name = parts.hostname or ""
    try:
        addresses = [name] if lookup is None else await lookup(name, port)
        reader, writer = await _first_of(addresses, port, context, name)
    except OSError as error:
        raise ExchangeFailed(f"{host}: {error}") from error
    try:
        writer.write(head.encode() + b"\r\n" + body)
        yield reader
    except (OSError, httptools.HttpParserError) as error:
        raise ExchangeFailed(f"{host}: {error}") from error
    finally:
        # Not closed in good manners: TLS would wait half a minute for a peer that hangs to do so
        # too, whatever time the caller has.
        writer.transport.abort()


async def _first_of(
    addresses: Sequence[str], port: int, context: ssl.SSLContext | None, name: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first that takes one."""
    secured: dict[str, Any] = {} if context is None else {"ssl": context, "server_hostname": name}
    for address in addresses[:-1]:
        with suppress(OSError):
            return await asyncio.open_connection(address, port, **secured)
    return await asyncio.open_connection(addresses[-1], port, **secured)


async def exchange(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    lookup: Lookup | None = None,
) -> Answer:
    """Without a timeout of its own: the caller knows how long it may take. `lookup` gives the
    addresses to connect to instead of the name."""
    async with _connected(method, url, headers or {}, body, lookup) as stream:
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        while not reading.complete:
            data = await stream.read(_READ_BYTES)
            if not data:
                break
            parser.feed_data(data)
        status = parser.get_status_code()
        if not status:
            raise ExchangeFailed(f"{plain_url(url)}: the connection closed before an answer")
        return Answer(status, b"".join(reading.chunks))

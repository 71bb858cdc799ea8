"""A small HTTP/1.1 client for what the program itself asks of other services: etcd, a worker's
health page, the request of a scheduled job. What a load test sends goes through `clients.http`.

An answer's body is bounded. Nothing here has a timeout of its own: the caller knows how long it may
take, and ends a connection by dropping it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import httptools

BODY_BYTES_MAX: Final = 1 << 20
_READ_BYTES: Final = 64 * 1024


class HttpFailed(Exception):
    """No answer came: connection refused, reset, or not HTTP."""


class Answer(NamedTuple):
    status: int
    body: bytes
    whole: bool
    """False: cut at `bytes_max`, or a body without a length, which ends with the connection."""


def request_of(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Raises ValueError for a line break where none may be."""
    if any(c in f"{method}{path}{k}{v}" for k, v in headers.items() for c in "\r\n"):
        raise ValueError("a line break inside the head of a request")
    lines = dict(headers)
    if body or method in ("POST", "PUT", "PATCH"):
        lines["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


class _Reading:
    """Callbacks of the parser."""

    def __init__(self, bodiless: bool = False) -> None:
        self._chunks: list[bytes] = []
        self.size = 0
        self.complete = False
        self.ends_with_connection = False
        self._bodiless = bodiless
        self._has_length = False

    def on_header(self, name: bytes, _: bytes) -> None:
        self._has_length |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self.complete = self._bodiless
        self.ends_with_connection = not self._has_length

    def on_body(self, body: bytes) -> None:
        self.size += len(body)
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self.complete = True

    def taken(self) -> bytes:
        chunks, self._chunks, self.size = self._chunks, [], 0
        return b"".join(chunks)


class Connection:
    """Takes one request at a time; after a whole answer another one. Raises HttpFailed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, addresses: Sequence[str], port: int, tls: ssl.SSLContext | None = None, name: str = ""
    ) -> Connection:
        """To the first address that takes one; `name` is whom the certificate has to name."""
        secured: dict[str, Any] = {} if tls is None else {"ssl": tls, "server_hostname": name}
        for address in addresses[:-1]:
            with suppress(OSError):
                return cls(*await asyncio.open_connection(address, port, **secured))
        try:
            return cls(*await asyncio.open_connection(addresses[-1], port, **secured))
        except OSError as error:
            raise HttpFailed(str(error)) from error

    def send(self, request: bytes) -> None:
        self._writer.write(request)

    async def answer(self, bodiless: bool = False, bytes_max: int = BODY_BYTES_MAX) -> Answer:
        """`bodiless`: to HEAD, whose answers tell the length of a body that does not come."""
        reading = _Reading(bodiless)
        parser = httptools.HttpResponseParser(reading)
        while not reading.complete and reading.size <= bytes_max and await self._feed(parser):
            pass
        status = parser.get_status_code()
        if not status:
            raise HttpFailed("the connection closed before an answer")
        cut = not reading.complete and reading.size <= bytes_max
        if cut and not reading.ends_with_connection:
            raise HttpFailed("the connection closed within an answer")
        whole = reading.complete and reading.size <= bytes_max
        return Answer(status, reading.taken()[:bytes_max], whole)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, until it ends or somebody stops asking."""
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        while not reading.complete:
            if not await self._feed(parser):
                raise HttpFailed("the connection closed within an answer")
            yield reading.taken()

    async def _feed(self, parser: httptools.HttpResponseParser) -> bool:
        """False: nothing comes any more."""
        try:
            data = await self._reader.read(_READ_BYTES)
            if data:
                parser.feed_data(data)
        except (OSError, httptools.HttpParserError) as error:
            raise HttpFailed(str(error)) from error
        return bool(data)

    def drop(self) -> None:
        """Without a goodbye: under TLS a peer that hangs would be waited for half a minute."""
        self._writer.transport.abort()

"""Requests to a backend that is spoken to by HTTP: one kept connection, in a thread.

The standard library's client is enough for one request a second, and brings certificates of the
system with it.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import ssl
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from hyperscale.reporting.contract import Refused

TIMEOUT_S = 10.0
# What the same request may be answered with a moment later: too many of them, or a server in
# trouble.
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
TOLD_BYTES = 300


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]


class HttpError(ConnectionError):
    """An answer that is worth another attempt."""


class HttpPoster:
    """To one host. `base` is http://HOST:PORT or https://HOST, perhaps with a path."""

    def __init__(self, base: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(base)
        self.host = parts.netloc
        self._secure = parts.scheme == "https"
        self._path = parts.path.rstrip("/")
        self._headers = {"User-Agent": "hyperscale", **(headers or {})}
        self._connection: http.client.HTTPConnection | None = None

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        compress: bool = False,
        accept: Collection[int] = (),
    ) -> Answer:
        """Raises Refused or HttpError for an answer that is no success and not in `accept`."""
        more = dict(headers or {})
        if compress:
            body = gzip.compress(body, 1)
            more["Content-Encoding"] = "gzip"
        answer = await asyncio.to_thread(
            self._exchange, method, self._path + path, body, {**self._headers, **more}
        )
        if 200 <= answer.status < 300 or answer.status in accept:
            return answer
        told = answer.body[:TOLD_BYTES].decode("utf-8", "replace").strip()
        words = f"HTTP {answer.status}{': ' if told else ''}{told}"
        if answer.status in AGAIN:
            raise HttpError(words)
        raise Refused(words)

    def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """A kept connection may have been closed meanwhile: then once more on a new one."""
        kept = self._connection is not None
        try:
            return self._once(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._drop()
            if not kept:
                raise
            return self._once(method, path, body, headers)
        except BaseException:
            self._drop()
            raise

    def _once(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            self._connection = (
                http.client.HTTPSConnection(
                    self.host, timeout=TIMEOUT_S, context=ssl.create_default_context()
                )
                if self._secure
                else http.client.HTTPConnection(self.host, timeout=TIMEOUT_S)
            )
        connection = self._connection
        connection.request(method, path or "/", body or None, dict(headers))
        response = connection.getresponse()
        answer = Answer(response.status, response.read(), dict(response.getheaders()))
        if response.will_close:
            self._drop()
        return answer

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.close()

    async def close(self) -> None:
        self._drop()


def origin(host: str, port: int, secure: bool) -> str:
    """IPv6 addresses stand in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{name}{f':{port}' if port else ''}"

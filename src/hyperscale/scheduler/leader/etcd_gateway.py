"""Speaking to etcd: the JSON gateway of its v3 API, over HTTP/1.1 on connections that stay open, so
that a renewal costs one round trip and no TLS handshake. The endpoint that answered last is asked
first; one that does not answer in time is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from ssl import SSLContext
import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec

from hyperscale.scheduler.leader.election import ElectionUnavailable


@dataclass(frozen=True, kw_only=True)
class EtcdAccess:
    """The files are PEM."""

    user: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""
    """Empty: the certificate authorities of the system."""
    cert: str = ""
    key: str = ""

    def tls(self) -> SSLContext:
        """Raises BadInput for files that cannot be used."""
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            raise BadInput(
                f"the TLS files for etcd cannot be used: {error}",
                "etcd-ca, etcd-cert and etcd-key are PEM files",
            ) from error
        return context


ANONYMOUS: Final = EtcdAccess()


IDLE_MAX: Final = 2
ANSWER_BYTES_MAX: Final = 1 << 20
AUTHENTICATION_S: Final = 5.0
"""etcd makes hashing a password costly on purpose: a tenth of a second, more on a busy machine."""
_READ_BYTES: Final = 64 * 1024
_UNAUTHENTICATED: Final = (b"invalid auth token", b"user name is empty", b"auth: revision")
"""etcd forgets tokens when it restarts, and voids them when users or roles change."""


class _Broken(Exception):
    """No whole answer on this connection."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, host: str, path: str, token: str, body: bytes) -> None:
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}"]
        if token:
            lines.append(f"Authorization: {token}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        while not reading.complete:
            await self._feed(parser)
            if reading.size > ANSWER_BYTES_MAX:
                raise _Broken("an answer of more than a megabyte")
        return parser.get_status_code(), reading.taken()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, until somebody closes."""
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        while not reading.complete:
            await self._feed(parser)
            yield reading.taken()

    async def _feed(self, parser: httptools.HttpResponseParser) -> None:
        try:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise _Broken("the connection closed before an answer")
            parser.feed_data(data)
        except (OSError, httptools.HttpParserError) as error:
            raise _Broken(str(error)) from error

    def drop(self) -> None:
        """Without a goodbye: under TLS a member that hangs would be waited for half a minute."""
        self._writer.transport.abort()


class _Reading:
    """Callbacks of the parser."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self.size = 0
        self.complete = False

    def on_body(self, body: bytes) -> None:
        self.size += len(body)
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self.complete = True

    def taken(self) -> bytes:
        chunks, self._chunks, self.size = self._chunks, [], 0
        return b"".join(chunks)


class Gateway:
    def __init__(self, endpoints: Sequence[str], access: EtcdAccess, timeout_s: float) -> None:
        """Endpoints as `http://host:port` or `https://host:port`; each has `timeout_s`."""
        secure = any(endpoint.startswith("https:") for endpoint in endpoints)
        self._tls = access.tls() if secure else None
        self._access = access
        self._timeout_s = timeout_s
        self._endpoints = list(endpoints)
        self._idle: dict[str, list[_Connection]] = {}
        self._token = ""

    async def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Raises ElectionUnavailable when no endpoint gives an answer."""
        body = msgspec.json.encode(request)
        trouble: Exception = _Broken("no endpoint")
        for _ in range(len(self._endpoints)):
            try:
                return await self._asked(self._endpoints[0], path, body)
            except (_Broken, TimeoutError, OSError) as error:
                trouble = error
                self._turn()
        raise _silent(trouble) from trouble

    async def stream(self, path: str, request: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Messages of one endpoint, on a connection of their own."""
        endpoint = self._endpoints[0]
        try:
            await self._authenticate(endpoint)
            async with asyncio.timeout(self._timeout_s):
                connection = await self._opened(endpoint)
        except (_Broken, TimeoutError, OSError) as error:
            self._turn()
            raise _silent(error) from error
        try:
            body = msgspec.json.encode(request)
            connection.send(_host(endpoint), path, self._token, body)
            rest = b""
            async for chunk in connection.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield msgspec.json.decode(line)
            # A proxy's word, or etcd's own refusal: whoever came back at once would hammer it.
            raise _Broken(f"the stream ended: {rest[:200].decode(errors='replace')}")
        except (_Broken, msgspec.DecodeError) as error:
            self._turn()
            raise _silent(error) from error
        finally:
            connection.drop()

    async def close(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.drop()

    async def _asked(self, endpoint: str, path: str, body: bytes) -> dict[str, Any]:
        await self._authenticate(endpoint)
        status, answer = await self._exchange(endpoint, path, body, self._timeout_s)
        if status != 200 and self._token and any(sign in answer for sign in _UNAUTHENTICATED):
            self._token = ""
            await self._authenticate(endpoint)
            status, answer = await self._exchange(endpoint, path, body, self._timeout_s)
        return _read(status, answer)

    async def _authenticate(self, endpoint: str) -> None:
        if self._token or not self._access.user:
            return
        who = {"name": self._access.user, "password": self._access.password}
        path, body = "/v3/auth/authenticate", msgspec.json.encode(who)
        status, answer = await self._exchange(endpoint, path, body, AUTHENTICATION_S)
        self._token = str(_read(status, answer).get("token", ""))

    async def _exchange(
        self, endpoint: str, path: str, body: bytes, timeout_s: float
    ) -> tuple[int, bytes]:
        async with asyncio.timeout(timeout_s):
            kept = self._idle.get(endpoint)
            if kept:
                # It may have been closed at the other end meanwhile: then once more, on a new one.
                with suppress(_Broken):
                    return await self._over(kept.pop(), endpoint, path, body)
            return await self._over(await self._opened(endpoint), endpoint, path, body)

    async def _over(
        self, connection: _Connection, endpoint: str, path: str, body: bytes
    ) -> tuple[int, bytes]:
        try:
            connection.send(_host(endpoint), path, self._token, body)
            answer = await connection.answer()
        except BaseException:
            connection.drop()
            raise
        idle = self._idle.setdefault(endpoint, [])
        if len(idle) < IDLE_MAX:
            idle.append(connection)
        else:
            connection.drop()
        return answer

    async def _opened(self, endpoint: str) -> _Connection:
        parts = urlsplit(endpoint)
        context = self._tls if parts.scheme == "https" else None
        return _Connection(*await asyncio.open_connection(parts.hostname, parts.port, ssl=context))

    def _turn(self) -> None:
        self._endpoints.append(self._endpoints.pop(0))


def _host(endpoint: str) -> str:
    return urlsplit(endpoint).netloc


def _read(status: int, answer: bytes) -> dict[str, Any]:
    if status == 200:
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise _Broken(f"not etcd's words: {answer[:200].decode(errors='replace')}") from error
    if b"lease not found" in answer:
        return {}
    raise _Broken(f"status {status}: {answer[:200].decode(errors='replace')}")


def _silent(error: Exception) -> ElectionUnavailable:
    return ElectionUnavailable(f"etcd: {str(error) or 'no answer in time'}")

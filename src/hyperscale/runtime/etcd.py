"""Speaking to etcd: the JSON gateway of its v3 API, over HTTP/1.1 on connections that stay open, so
that a renewal costs one round trip and no TLS handshake. The endpoint that answered last is asked
first; one that does not answer in time is passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from hyperscale.errors import BadInput
from hyperscale.runtime.http import BODY_BYTES_MAX, Answer, Connection, HttpFailed, request_of

if TYPE_CHECKING:
    from ssl import SSLContext


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

SCHEMES: Final = {"etcd": "http", "etcds": "https"}


def endpoints_of(address: str, hint: str) -> list[str]:
    """`[etcd://]HOST:PORT,HOST:PORT`, or `etcds://` before it for TLS. Raises BadInput."""
    scheme, _, hosts = address.rpartition("://")
    scheme = scheme or "etcd"
    if scheme not in SCHEMES:
        raise BadInput(f"{address.rpartition('@')[2]!r} is not the address of an etcd", hint)
    return [_endpoint(SCHEMES[scheme], each, hint) for each in hosts.split(",") if each]


def _endpoint(scheme: str, host: str, hint: str) -> str:
    endpoint = f"{scheme}://{host}"
    try:
        parts = urlsplit(endpoint)
        if parts.hostname and parts.port and "@" not in host:
            return endpoint
    except ValueError:
        pass  # a port that is no number: as any other bad address
    raise BadInput(f"{host.rpartition('@')[2]!r} is not an etcd member's HOST:PORT", hint)


IDLE_MAX: Final = 2
AUTHENTICATION_S: Final = 5.0
"""etcd makes hashing a password costly on purpose: a tenth of a second, more on a busy machine."""
_UNAUTHENTICATED: Final = (b"invalid auth token", b"user name is empty", b"auth: revision")
"""etcd forgets tokens when it restarts, and voids them when users or roles change."""


class Gateway:
    def __init__(
        self,
        endpoints: Sequence[str],
        access: EtcdAccess,
        timeout_s: float,
        silent: type[Exception],
        answer_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        """Endpoints as `http://host:port` or `https://host:port`; each has `timeout_s`. `silent` is
        raised when no endpoint gives an answer."""
        secure = any(endpoint.startswith("https:") for endpoint in endpoints)
        self._tls = access.tls() if secure else None
        self._access = access
        self._timeout_s = timeout_s
        self._silent = silent
        self._answer_bytes_max = answer_bytes_max
        self._endpoints = list(endpoints)
        self._idle: dict[str, list[Connection]] = {}
        self._token = ""

    async def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Raises `silent`: what was asked may have been done, or not."""
        body = msgspec.json.encode(request)
        trouble: Exception = HttpFailed("no endpoint")
        for _ in range(len(self._endpoints)):
            try:
                return await self._asked(self._endpoints[0], path, body)
            except (HttpFailed, TimeoutError, OSError) as error:
                trouble = error
                self._turn()
        raise self._trouble(trouble) from trouble

    async def stream(self, path: str, request: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Messages of one endpoint, on a connection of their own."""
        endpoint = self._endpoints[0]
        try:
            await self._authenticate(endpoint)
            async with asyncio.timeout(self._timeout_s):
                connection = await self._opened(endpoint)
        except (HttpFailed, TimeoutError, OSError) as error:
            self._turn()
            raise self._trouble(error) from error
        try:
            body = msgspec.json.encode(request)
            connection.send(request_of("POST", path, self._headers(endpoint), body))
            rest = b""
            async for chunk in connection.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield msgspec.json.decode(line)
            # A proxy's word, or etcd's own refusal: whoever came back at once would hammer it.
            raise HttpFailed(f"the stream ended: {rest[:200].decode(errors='replace')}")
        except (HttpFailed, msgspec.DecodeError) as error:
            self._turn()
            raise self._trouble(error) from error
        finally:
            connection.drop()

    async def close(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.drop()

    async def _asked(self, endpoint: str, path: str, body: bytes) -> dict[str, Any]:
        await self._authenticate(endpoint)
        answer = await self._exchange(endpoint, path, body, self._timeout_s)
        if (
            answer.status != 200
            and self._token
            and any(sign in answer.body for sign in _UNAUTHENTICATED)
        ):
            self._token = ""
            await self._authenticate(endpoint)
            answer = await self._exchange(endpoint, path, body, self._timeout_s)
        return _read(answer)

    async def _authenticate(self, endpoint: str) -> None:
        if self._token or not self._access.user:
            return
        who = {"name": self._access.user, "password": self._access.password}
        path, body = "/v3/auth/authenticate", msgspec.json.encode(who)
        answer = await self._exchange(endpoint, path, body, AUTHENTICATION_S)
        self._token = str(_read(answer).get("token", ""))

    async def _exchange(self, endpoint: str, path: str, body: bytes, timeout_s: float) -> Answer:
        async with asyncio.timeout(timeout_s):
            kept = self._idle.get(endpoint)
            if kept:
                # It may have been closed at the other end meanwhile: then once more, on a new one.
                with suppress(HttpFailed):
                    return await self._over(kept.pop(), endpoint, path, body)
            return await self._over(await self._opened(endpoint), endpoint, path, body)

    async def _over(self, connection: Connection, endpoint: str, path: str, body: bytes) -> Answer:
        try:
            connection.send(request_of("POST", path, self._headers(endpoint), body))
            answer = await connection.answer(bytes_max=self._answer_bytes_max)
            if not answer.whole:
                raise HttpFailed("the answer is cut short")
        except BaseException:
            connection.drop()
            raise
        idle = self._idle.setdefault(endpoint, [])
        if len(idle) < IDLE_MAX:
            idle.append(connection)
        else:
            connection.drop()
        return answer

    async def _opened(self, endpoint: str) -> Connection:
        parts = urlsplit(endpoint)
        context = self._tls if parts.scheme == "https" else None
        host = parts.hostname or ""
        return await Connection.open([host], parts.port or 2379, context, host)

    def _headers(self, endpoint: str) -> dict[str, str]:
        host = {"Host": urlsplit(endpoint).netloc}
        return {**host, "Authorization": self._token} if self._token else host

    def _trouble(self, error: Exception) -> Exception:
        return self._silent(f"etcd: {str(error) or 'no answer in time'}")

    def _turn(self) -> None:
        self._endpoints.append(self._endpoints.pop(0))


def _read(answer: Answer) -> dict[str, Any]:
    status, body, _ = answer
    if status == 200:
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise HttpFailed(f"not etcd's words: {body[:200].decode(errors='replace')}") from error
    if b"lease not found" in body:
        return {}
    raise HttpFailed(f"status {status}: {body[:200].decode(errors='replace')}")

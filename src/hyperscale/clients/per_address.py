"""A client that keeps one connection of its user to each address.

The first call opens it. A call that fails closes it: what comes too late must not be taken for the
next answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hyperscale.clients.contract import Call, ProtocolClient, ProtocolPool
from hyperscale.clients.net.addresses import Addresses
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.errors import RunFailed
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import Reply
from hyperscale.workload.results import Outcome


class Kept(Protocol):
    @property
    def is_open(self) -> bool: ...

    def shut(self) -> None: ...


class AddressPool(ProtocolPool):
    schemes: ClassVar[Mapping[str, bool]]
    """Whether each is spoken over TLS."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.addresses: Addresses = Addresses(self.network, self.schemes)
        self.tls = self.network.tls()

    async def prepare(self, url: URL) -> None:
        endpoint = self.addresses.endpoint(url)
        if endpoint.secure:
            self.tls.context(endpoint.host)
        try:
            await self.network.addresses(endpoint, endpoint.authority)
        except Failure as failure:
            raise RunFailed(
                failure.error, f"check the host of {url} and this machine's DNS"
            ) from None


P = TypeVar("P", bound=AddressPool)
K = TypeVar("K", bound=Kept)
R = TypeVar("R", bound=Reply)


class AddressClient(ProtocolClient[P], Generic[P, K, R]):
    response: type[R]

    def __init__(self, pool: P) -> None:
        super().__init__(pool)
        self._kept: dict[Endpoint, K] = {}
        self._opening = asyncio.Lock()

    async def _open(self, endpoint: Endpoint, call: Call) -> K:
        raise NotImplementedError

    async def _on(
        self,
        method: str,
        address: str | URL,
        talk: Callable[[K, Call, R], Awaitable[None]],
        timeout: Any,
        name: str | None,
        sent: bytes = b"",
        keeps: bool = False,
    ) -> R:
        """A call on the connection to that address; `keeps`: which outlives that nothing came."""
        endpoint = self._pool.addresses.endpoint(address)

        def response(label: Any) -> R:
            made = self.response(label, endpoint.authority)
            made.request_bytes = sent
            return made

        async def on_connection(call: Call, answer: R) -> None:
            kept = self._kept.get(endpoint)
            if kept is None or not kept.is_open:
                async with self._opening:  # calls at the same time share it
                    kept = self._kept.get(endpoint)
                    if kept is None or not kept.is_open:
                        kept = self._kept[endpoint] = await self._connected(endpoint, call)
            await talk(kept, call, answer)

        try:
            answer = await self.call(
                method, name or endpoint.authority, response, on_connection, timeout
            )
        except BaseException:
            self._drop(endpoint)
            raise
        # With a status the server answered, and its connection is sound.
        sound = (Outcome.STATUS, Outcome.TIMEOUT) if keeps else (Outcome.STATUS,)
        if not answer.ok and answer.outcome not in sound:
            self._drop(endpoint)
        return answer

    async def _connected(self, endpoint: Endpoint, call: Call) -> K:
        limit = asyncio.timeout(self._pool.options.connect_timeout)
        try:
            async with limit:
                return await self._open(endpoint, call)
        except TimeoutError:
            seconds = self._pool.options.connect_timeout
            text = f"connecting to {endpoint.authority} took longer than {seconds:g} s"
            raise Failure(Outcome.TIMEOUT, text) from None

    async def connect(
        self, address: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> R:
        """Open the connection now; other calls do so by themselves."""

        async def talk(kept: K, call: Call, answer: R) -> None:
            call.is_made = True

        return await self._on("CONNECT", address, talk, timeout, name)

    def disconnect(self, address: str | URL) -> None:
        """Close the connection to that address, if there is one."""
        self._drop(self._pool.addresses.endpoint(address))

    def _drop(self, endpoint: Endpoint) -> None:
        kept = self._kept.pop(endpoint, None)
        if kept is not None:
            kept.shut()

    def close(self) -> None:
        for endpoint in list(self._kept):
            self._drop(endpoint)

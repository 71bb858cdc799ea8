"""The HTTP/3 client of one virtual user: `self.client.http3` in a workflow."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from hyperscale.clients.http.client import Carrier, OriginClient
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.verbs import Expect
from hyperscale.clients.http2.request import HTTP2Request
from hyperscale.clients.http3.exchange import QuicExchange
from hyperscale.clients.http3.pool import QuicPool
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.responses import HTTP3Response


class HTTP3Request(HTTP2Request):
    """As that of HTTP/2, whose fields are the same."""

    __slots__ = ()
    version: ClassVar[str] = "HTTP/3"


class HTTP3Client(OriginClient[HTTP3Response, QuicPool]):
    __slots__ = ("_held",)
    response: ClassVar = HTTP3Response

    def __init__(self, pool: QuicPool, limit: RequestLimit | None = None) -> None:
        super().__init__(pool, limit)
        self._held = pool.held()

    async def _send(
        self, request: Request, timeout: Any, redirects: int | None, expect: Expect | None
    ) -> HTTP3Response:
        return await self._call(request, timeout, redirects, expect, self._pool.sink)

    async def _take(self, route: Route, deadline: float, new: bool) -> Carrier:
        connection: Any = await self._pool.acquire(self._held, route, deadline)
        exchange = QuicExchange(connection)
        exchange.connect, connection.connect = connection.connect, None
        return exchange

    def _leave(self, carrier: Carrier) -> None:
        if not self._pool.keeps:
            cast(QuicExchange, carrier).connection.retire()

    def close(self) -> None:
        """Close this user's connections; shared ones stay for the others."""
        if not self._pool.shares:
            for connection in list(self._held.connections):
                connection.close()


class HTTP3Pool(QuicPool):
    def __init__(
        self, options: HTTPOptions, network: Network, limit: RequestLimit | None = None
    ) -> None:
        super().__init__(options, network, limit, HTTP3Request)

    def client(self) -> HTTP3Client:
        return HTTP3Client(self, self.limit)

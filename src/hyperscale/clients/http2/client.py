"""The HTTP/2 client of one virtual user: `self.client.http2` in a workflow."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from hyperscale.clients.counting import note
from hyperscale.clients.http.client import Carrier, OriginClient
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.verbs import Expect
from hyperscale.clients.http2.connection import Connection
from hyperscale.clients.http2.exchange import Exchange
from hyperscale.clients.http2.pool import StreamPool
from hyperscale.clients.http2.request import HTTP2Request
from hyperscale.clients.limits import call_redirects
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.responses import HTTP2Response


class HTTP2Client(OriginClient[HTTP2Response, StreamPool]):
    """`_recent` is the connection of the last call: most often that of the next."""

    __slots__ = ("_held", "_recent")
    response: ClassVar = HTTP2Response

    def __init__(self, pool: StreamPool, limit: RequestLimit | None = None) -> None:
        super().__init__(pool, limit)
        self._held = pool.held()
        self._recent: Connection | None = None

    async def _send(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTP2Response:
        pool, connection = self._pool, self._recent
        if (
            connection is None
            or timeout is not None
            or not self._is_plain
            or connection.route is not request.route
            or not connection.has_room
        ):
            return await self._call(request, timeout, redirects, expect, pool.sink)
        exchange = Exchange(connection)
        try:
            response = await exchange.ask(cast(HTTP2Request, request), pool.timeout, pool.sink)
        except BaseException:
            self._given_up(exchange, request)
            raise
        head = response.head
        if head is not None and head.plain and expect is None and pool.trace is None:
            note(request.label, response, True)
            return response
        deadline = response.started + pool.timeout
        if self._may_repeat(response):
            response = await self._again(request, response, deadline, pool.sink)
        hops = pool.options.redirects if redirects is None else call_redirects(redirects)
        return await self._settle(response, deadline, hops, expect, pool.sink)

    async def _take(self, route: Route, deadline: float, new: bool) -> Exchange:
        connection = await self._pool.acquire(self._held, route, deadline)
        if self._pool.keeps:
            self._recent = connection
        exchange = Exchange(connection)
        exchange.connect, connection.connect = connection.connect, None
        return exchange

    def _leave(self, carrier: Carrier) -> None:
        """The connection stays for the next call."""
        connection = cast(Exchange, carrier).connection
        if not self._pool.keeps:
            connection.retire()

    def close(self) -> None:
        """Close this user's connections; shared ones stay for the others."""
        if not self._pool.shares:
            for connection in list(self._held.connections):
                connection.close()


class HTTP2Pool(StreamPool):
    def __init__(
        self, options: HTTPOptions, network: Network, limit: RequestLimit | None = None
    ) -> None:
        super().__init__(options, network, limit, HTTP2Request)

    def client(self) -> HTTP2Client:
        return HTTP2Client(self, self.limit)

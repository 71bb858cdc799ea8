"""`HTTPOptions(version="auto")`: each server chooses HTTP/2 or HTTP/1.1 in the handshake of TLS.

A connection to an origin that nobody knows yet offers both. If the server chooses HTTP/2, it is one
of the user's HTTP/2 connections; otherwise it goes to the pool of HTTP/1.1, and so does every later
call to that origin. Without TLS there is nothing to choose by: that is HTTP/1.1.
An answer may name a place where the origin speaks HTTP/3; later calls go there.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any, ClassVar

from hyperscale.clients.http.client import Carrier, HTTPClient
from hyperscale.clients.http.pool import HTTPPool
from hyperscale.clients.http.reader import Sink
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.verbs import Answer, Expect
from hyperscale.clients.http2.alternatives import Alternatives
from hyperscale.clients.http2.connection import Connection
from hyperscale.clients.http2.exchange import Exchange
from hyperscale.clients.http2.held import Held
from hyperscale.clients.http2.pool import StreamPool
from hyperscale.clients.http2.request import HTTP2Request
from hyperscale.clients.net import failures
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Connect


class EitherRequest(HTTP2Request):
    """Its lines are those of HTTP/1.1, from which HTTP/2 takes its fields."""

    __slots__ = ()
    version: ClassVar[str] = "HTTP/1.1"
    chunks: ClassVar[bool] = True

    def encode(self, head: bytes, cookies: bytes, body: bytes) -> Request:
        if body and b"\r\ntransfer-encoding:" in head.lower():
            raise BadInput(
                "a call has a header Transfer-Encoding, which HTTP/2 does not know",
                'leave it out, or use version="1.1"',
            )
        return super().encode(head, cookies, body)


class ChoseHTTP1(Exception):
    """`sock` is the connection on which the server did; None: it had done so before."""

    def __init__(self, sock: socket.socket | None = None, connect: Connect | None = None) -> None:
        self.sock = sock
        self.connect = connect


class EitherPool(StreamPool):
    """The connections of HTTP/2, and which origins do not speak it."""

    def __init__(
        self, options: HTTPOptions, network: Network, opened: Callable[[Any], None]
    ) -> None:
        super().__init__(options, network, None, EitherRequest)
        self.alternatives = Alternatives(options, network, opened)
        self.tls = network.tls("h2", "http/1.1")
        self.of_http1: set[Route] = set()

    def _may_open(self, held: Held, route: Route) -> bool:
        if route in self.of_http1:
            raise ChoseHTTP1
        return super()._may_open(held, route)

    def _made(self, held: Held, route: Route, sock: socket.socket, connect: Connect) -> Connection:
        if isinstance(sock, ssl.SSLSocket) and sock.selected_alpn_protocol() != "h2":
            self.of_http1.add(route)
            raise ChoseHTTP1(sock, connect)
        return super()._made(held, route, sock, connect)


class AutoClient(HTTPClient):
    __slots__ = ("_alternatives", "_held", "_held_elsewhere", "_streams")

    def __init__(
        self, pool: HTTPPool, streams: EitherPool, limit: RequestLimit | None = None
    ) -> None:
        super().__init__(pool, limit)
        self._streams = streams
        self._held = streams.held()
        self._alternatives = streams.alternatives
        self._held_elsewhere: Held | None = None

    def _send(
        self, request: Request, timeout: Any, redirects: int | None, expect: Expect | None
    ) -> Answer[HTTPResponse]:
        if self._alternatives.has(request.route):
            return self._call(request, timeout, redirects, expect, self._pool.sink)
        return super()._send(request, timeout, redirects, expect)

    async def _on(
        self, carrier: Carrier, request: Request, deadline: float, sink: Sink | None
    ) -> HTTPResponse:
        response = await super()._on(carrier, request, deadline, sink)
        self._alternatives.learn(request.route, request.target, response.head)
        return response

    async def _take_elsewhere(self, route: Route, deadline: float) -> Carrier | None:
        if self._streams.stopped:
            raise failures.cancelled()
        if self._held_elsewhere is None:
            self._held_elsewhere = self._alternatives.held()
        return await self._alternatives.take(self._held_elsewhere, route, deadline)

    async def _take(self, route: Route, deadline: float, new: bool) -> Carrier:
        streams = self._streams
        if self._alternatives.has(route):
            elsewhere = await self._take_elsewhere(route, deadline)
            if elsewhere is not None:
                return elsewhere
        if not route.secure or route in streams.of_http1:
            return await super()._take(route, deadline, new)
        try:
            connection = await streams.acquire(self._held, route, deadline)
        except ChoseHTTP1 as chose:
            if chose.sock is None or chose.connect is None:
                return await super()._take(route, deadline, new)
            return self._pool.adopt(self._idle, route, chose.sock, chose.connect)
        exchange = Exchange(connection)
        exchange.connect, connection.connect = connection.connect, None
        return exchange

    def _leave(self, carrier: Carrier) -> None:
        if not isinstance(carrier, Exchange):
            super()._leave(carrier)
        elif not self._streams.keeps:
            carrier.connection.retire()

    def close(self) -> None:
        super().close()
        if not self._streams.shares:
            for held in filter(None, (self._held, self._held_elsewhere)):
                for connection in list(held.connections):
                    connection.close()

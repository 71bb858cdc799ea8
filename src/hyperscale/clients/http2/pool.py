"""The connections of HTTP/2 of one process and workflow.

`per_vu` gives each user one connection to each origin, as a browser has; `shared` lets all users of
the process share them, and opens another one when the server allows no more streams on those that
are there; `fresh` opens one for every request.
"""

from __future__ import annotations

import socket
import ssl
from functools import partial
from typing import ClassVar

from hyperscale.clients.http.origin_pool import OriginPool
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.connection import Connection
from hyperscale.clients.http2.held import Held, WaitingCalls
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.http2.hpack import Tables
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Connect, Outcome


class TunnelRoute(Route):
    """A proxy passes the bytes on: it cannot be asked in HTTP/2 itself."""

    __slots__ = ()

    @property
    def is_forwarded(self) -> bool:
        return False


class StreamPool(OriginPool[Connection]):
    """What HTTP/2 and gRPC have in common."""

    queue: WaitingCalls
    route_kind: ClassVar[type[Route]] = TunnelRoute

    def __init__(
        self,
        options: HTTPOptions,
        network: Network,
        limit: RequestLimit | None,
        kind: type[Request],
    ) -> None:
        super().__init__(options, network, "h2", kind)
        self.limit = limit
        self.queue = WaitingCalls()
        self.tables = Tables(options.max_header_bytes)
        self._shared = Held(self.queue)

    def held(self) -> Held:
        """Where a new client finds its connections."""
        return self._shared if self.shares else Held(self.queue)

    async def acquire(self, held: Held, route: Route, deadline: float) -> Connection:
        """One with room for a call. Raises Failure."""
        while True:
            if self.stopped:
                raise failures.cancelled()
            found = held.find(route) if self.keeps else None
            if found is not None:
                return found
            if self._may_open(held, route):
                return await self._opened(held, route, deadline)
            self.look_by(deadline)
            self._keep_looking()
            await held.change(route, deadline)

    def _may_open(self, held: Held, route: Route) -> bool:
        if not self.keeps:
            return True
        if held.is_opening(route):
            return False  # it may have room for this call, too
        most = (self.options.max_connections or 2**31) if self.shares else 1
        return held.count(route) < most

    async def _opened(self, held: Held, route: Route, deadline: float) -> Connection:
        held.opening[route] += 1
        try:
            return await self._open(route, deadline, partial(self._made, held, route))
        finally:
            held.opening[route] -= 1
            held.wake_all()

    def _made(self, held: Held, route: Route, sock: socket.socket, connect: Connect) -> Connection:
        if isinstance(sock, ssl.SSLSocket) and sock.selected_alpn_protocol() != "h2":
            sock.close()
            text = f"{route.authority} does not speak HTTP/2 over TLS (it did not choose h2)"
            raise Failure(Outcome.PROTOCOL, text)
        return Connection(self, route, held, sock, connect)

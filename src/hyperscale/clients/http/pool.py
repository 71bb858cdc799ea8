"""The connections of HTTP/1.1 that the virtual users of one process and workflow have.

Three ways to share them: `per_vu` gives each client a resting place of its own, `shared` one common
place with a limit and a queue in order of arrival, `fresh` keeps none.
"""

from __future__ import annotations

import socket

from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.origin_pool import OriginPool
from hyperscale.clients.http.queue import ConnectionQueue, Resting
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.io.channel import RECEIVE_BYTES_SMALL
from hyperscale.clients.net import failures
from hyperscale.clients.net.network import Network
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Connect


class HTTPPool(OriginPool[Connection]):
    queue: ConnectionQueue

    def __init__(
        self, options: HTTPOptions, network: Network, kind: type[Request] = Request
    ) -> None:
        super().__init__(options, network, "http/1.1", kind)
        self.queue = ConnectionQueue(options.max_connections)
        self._resting = Resting(self.queue)
        self.receive_bytes = RECEIVE_BYTES_SMALL  # that a new connection looks for, by what came

    def _default_headers(self) -> dict[str, str]:
        headers = super()._default_headers()
        if not self.keeps:
            headers["Connection"] = "close"
        return headers

    def resting_place(self) -> list[Connection]:
        """Where a new client finds and leaves connections."""
        if not self.shares:
            return []
        self.queue.clients += 1
        return self._resting

    async def acquire(
        self, idle: list[Connection], route: Route, deadline: float, new: bool = False
    ) -> Connection:
        """A kept connection of the route (unless a new one is wanted) or a new one, or Failure."""
        if self.stopped:
            raise failures.cancelled()
        if not new:
            for at in range(len(idle) - 1, -1, -1):
                if idle[at].route is route:
                    return idle.pop(at)
        if self.shares:
            self.look_by(deadline)  # the call may have to wait
            self._keep_looking()
            connection = await self.queue.turn(idle, route, deadline, len(self.connections))
            if connection is not None:
                if not new or not connection.alive:
                    return connection
                self.queue.replace(connection)

        def made(sock: socket.socket, connect: Connect) -> Connection:
            return Connection(self, route, idle, sock, connect)

        return await self._open(route, deadline, made)

    def adopt(
        self, idle: list[Connection], route: Route, sock: socket.socket, connect: Connect
    ) -> Connection:
        """One that was opened elsewhere."""
        if self.stopped:
            sock.close()
            raise failures.cancelled()
        made = Connection(self, route, idle, sock, connect)
        self._keep_looking()
        return made

    def release(self, connection: Connection) -> None:
        if not connection.alive:
            return
        self.keep_session(connection)
        if not self.keeps:
            connection.close()
            return
        connection.idle.append(connection)

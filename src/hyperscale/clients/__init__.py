"""Clients: a call becomes bytes, bytes become a result.

A process makes one `ClientPool` per workflow and takes one `Client` per virtual user from it;
`self.client` in a workflow is that client, with an attribute per protocol.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.clients.http.client import HTTPClient
from hyperscale.clients.http.pool import HTTPPool
from hyperscale.clients.http.upload import of_file
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.workload.arguments import URL, Auth, Data, File, Headers, OptimizedArgument, Params
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.responses import HTTPResponse

__all__ = ["Client", "ClientPool", "HTTPClient"]


class Client:
    """What one virtual user calls with: its own connections and cookies."""

    __slots__ = ("http",)

    def __init__(self, http: HTTPClient) -> None:
        self.http = http

    def close(self) -> None:
        self.http.close()


class ClientPool:
    def __init__(self, http: HTTPOptions, rps: float = 0.0) -> None:
        """`rps`: the most requests per second of all users together; 0: as many as they make."""
        self._network = Network(http)
        self._http = HTTPPool(http, self._network)
        self._limit = RequestLimit(rps) if rps else None

    @property
    def trace(self) -> Callable[[HTTPResponse], None] | None:
        """Called with every finished exchange, redirects included."""
        return self._http.trace

    @trace.setter
    def trace(self, trace: Callable[[HTTPResponse], None] | None) -> None:
        self._http.trace = trace

    async def prepare(self, argument: OptimizedArgument) -> None:
        """Resolve, read and encode before the clock starts."""
        match argument:
            case URL():
                await self._http.prepare(argument)
            case Headers():
                argument.lines()
            case Params():
                argument.query()
            case Data():
                argument.body()
            case File():
                of_file(argument)
            case Auth():
                argument.header()

    def client(self) -> Client:
        return Client(HTTPClient(self._http, self._limit))

    def sweep(self, now: float) -> None:
        """End calls past their deadline. The pool does so by itself; calling it is harmless."""
        self._http.sweep(now)

    def cancel_all(self) -> None:
        """End all calls in flight as cancelled; calls made afterwards end the same way."""
        self._http.cancel_all()

    async def finish(self, seconds: float) -> None:
        """No more calls: those in flight may end within that time, then they are cut off."""
        await self._http.finish(seconds)

    async def close(self) -> None:
        await self._http.close()

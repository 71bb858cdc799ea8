"""What the virtual users of one process and workflow share with every version of HTTP: routes,
requests, and the connections that are open.

The pool also does what would otherwise need a timer per request: `sweep` ends calls that are past
their deadline.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from time import perf_counter
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hyperscale._version import __version__
from hyperscale.clients.http.connect import open_socket
from hyperscale.clients.http.decoding import accepted_encodings
from hyperscale.clients.http.proxy import proxy_for
from hyperscale.clients.http.reader import DISCARD, Heads, Sink
from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.clients.io.readiness import Readiness, readiness_setting
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.errors import RunFailed
from hyperscale.workload.arguments import URL
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Connect, Outcome

SWEEP_S = 0.05  # how late a timeout may be noticed
# TLS handshakes with an origin at the same time; more wait for their turn. A core makes about a
# thousand in a second: of 5,000 at once each takes as long as all of them, and on a busy machine
# longer than its time. High enough not to hold back load on a target that is far away.
HANDSHAKES_MAX = 2_000


class Pooled(Protocol):
    """A connection, as far as the pool is concerned."""

    route: Route

    @property
    def busy(self) -> bool: ...

    @property
    def session(self) -> Any: ...

    def deadline(self, now: float) -> float: ...

    def expire(self, now: float) -> None: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class Queue(Protocol):
    """The calls that wait for a connection."""

    def __bool__(self) -> bool: ...

    def expire(self, now: float) -> float: ...

    @property
    def ends_by(self) -> float: ...

    def cancel(self) -> None: ...

    def opened(self, total: int) -> None: ...

    def closed(self, total: int) -> None: ...


C = TypeVar("C", bound=Pooled)
Made = Callable[[Any, Connect], C]  # of what was opened, most often a socket


class OriginPool(Generic[C]):
    queue: Queue
    route_kind: ClassVar[type[Route]] = Route

    def __init__(
        self, options: HTTPOptions, network: Network, protocol: str, kind: type[Request] = Request
    ) -> None:
        """`protocol` is what is offered to a server in the TLS handshake."""
        self.options = options
        self.network = network
        self.tls = network.tls(protocol)
        self.timeout = options.timeout
        self.connect_timeout = options.connect_timeout
        self.read_timeout = options.read_timeout
        self.sink: Sink | None = DISCARD if options.discard_bodies else None
        self.keeps = options.connections != "fresh"
        self.shares = options.connections == "shared"
        self.trace: Callable[[Any], None] | None = None
        self.traced = False  # requests of a sampled step tell under which span they are made
        self.stopped = False  # there are no more calls
        self._is_cut_off = False  # nor may those in flight go on
        self.heads = Heads(options.max_response_bytes, options.decompress, options.max_header_bytes)
        self.builder = RequestBuilder(options.base_url, self._default_headers(), self.route, kind)
        self.connections: set[C] = set()
        self._routes: dict[tuple[str, str, int], Route] = {}
        self._connecting: set[asyncio.Timeout] = set()
        self._handshakes: dict[Route, asyncio.Semaphore] = {}
        self._shortest = min(filter(None, (options.timeout, options.read_timeout)))
        self._due = 0.0
        self._ticking: asyncio.TimerHandle | None = None
        readiness_setting()  # what cannot be done is said now, not by every call

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.network.loop

    @property
    def readiness(self) -> Readiness:
        return self.network.readiness

    def _default_headers(self) -> dict[str, str]:
        agent = self.options.user_agent
        headers = {
            "User-Agent": f"hyperscale/{__version__}" if agent is None else agent,
            "Accept": "*/*",
        }
        if not headers["User-Agent"]:
            del headers["User-Agent"]
        if self.options.decompress:
            headers["Accept-Encoding"] = accepted_encodings()
        return headers

    def route(self, target: Target) -> Route:
        origin = (target.scheme, target.host, target.port)
        route = self._routes.get(origin)
        if route is None:
            proxy = proxy_for(target, self.options.proxy, os.environ)
            network = self.network
            route = self._routes[origin] = self.route_kind(
                target, proxy, network.server_name, network.hosts
            )
        return route

    async def start(self) -> None:
        """There is nothing to have before the clock starts."""

    async def prepare(self, url: URL) -> None:
        """Resolve a URL's host before the clock starts."""
        target = self.builder.target(url)
        self.builder.own(target)
        route = self.route(target)
        if route.secure:
            self.tls.context(route.host)
        if self.network.unix_socket:
            return
        try:
            url.optimized["http"] = await self.network.resolver.addresses(route.peer[0])
        except Failure as failure:
            raise RunFailed(
                failure.error, f"check the host of {url} and this machine's DNS"
            ) from None

    def keep_session(self, connection: C) -> None:
        """Of a connection that is open and has had an answer."""
        if self.options.tls_resume and connection.route.secure:
            self.tls.keep_session(connection.route.authority, connection.session)

    async def _open(self, route: Route, deadline: float, made: Made[C]) -> C:
        """A new connection, made of the socket and of how long it took."""
        allowed = deadline - perf_counter()
        scope = asyncio.timeout(allowed)
        self._connecting.add(scope)
        try:
            if self.stopped:  # while it had leave to open one and did not know it yet
                raise failures.cancelled()
            async with scope, self._turn(route):
                if self._is_cut_off:
                    raise failures.cancelled()
                allowed = min(self.connect_timeout, deadline - perf_counter())
                scope.reschedule(self.loop.time() + allowed)
                connection = await self._dial(route, made)
        except TimeoutError:
            if self.stopped:
                raise failures.cancelled() from None
            text = f"connecting to {route.where} took longer than {max(allowed, 0):.3g} s"
            raise Failure(Outcome.TIMEOUT, text) from None
        finally:
            self._connecting.discard(scope)
            self.queue.opened(len(self.connections))
        if self._is_cut_off:  # when it was open and the call had not gone on yet
            connection.close()
            raise failures.cancelled()
        self._keep_looking()
        return connection

    async def _dial(self, route: Route, made: Made[C]) -> C:
        return made(*await open_socket(self, route))

    def _turn(self, route: Route) -> AbstractAsyncContextManager[None]:
        if not route.secure:
            return nullcontext()
        turns = self._handshakes.get(route)
        if turns is None:
            turns = self._handshakes[route] = asyncio.Semaphore(HANDSHAKES_MAX)
        return turns

    def forget(self, connection: C) -> None:
        self.connections.discard(connection)
        self.queue.closed(len(self.connections))

    def look_by(self, deadline: float) -> None:
        """Take note of a deadline that a scan before the request was sent could not foresee."""
        if deadline < self._due:
            self._due = deadline

    def sweep(self, now: float) -> None:
        """End calls past their deadline.

        A scan knows when the next can matter: no earlier than the earliest deadline it saw, nor
        than the shortest timeout from now for calls yet to come; calls with less time than that
        (their own timeout, a redirect, a slow connect) announce themselves with `look_by`.
        """
        if now < self._due:
            return
        due = now + self._shortest
        for connection in list(self.connections):
            if connection.busy:
                connection.expire(now)
                due = min(due, max(connection.deadline(now), now))
        self._due = min(due, self.queue.expire(now))

    def ends_by(self, now: float) -> float:
        """When the first of the calls in flight must have ended; inf: there is none."""
        ends = [one.deadline(now) for one in self.connections if one.busy]
        begun = now - self.loop.time()
        ends += [begun + at for scope in self._connecting if (at := scope.when()) is not None]
        return min(ends, default=self.queue.ends_by)

    def _keep_looking(self) -> None:
        """Sweep, as long as there are connections or calls that wait for one."""
        if self._ticking is None:
            self._ticking = self.loop.call_later(SWEEP_S, self._tick)

    def _tick(self) -> None:
        self.sweep(perf_counter())
        self._ticking = None
        if self.connections or self.queue:
            self._keep_looking()

    def cancel_all(self) -> None:
        self.stopped = self._is_cut_off = True
        self.queue.cancel()  # before connections end, which would give leave to open others
        for connection in list(self.connections):
            if connection.busy:
                connection.cancel()
            else:
                connection.close()
        for scope in self._connecting:
            if not scope.expired():
                scope.reschedule(self.loop.time())

    async def finish(self, seconds: float) -> None:
        self.stopped = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(connection.busy for connection in self.connections):  # noqa: ASYNC110
                    await asyncio.sleep(SWEEP_S)
        self.cancel_all()
        await asyncio.sleep(0)  # whoever waits for one of them hears of its end

    async def close(self) -> None:
        self.cancel_all()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        await asyncio.sleep(0)  # whoever waits for one of them hears of its end

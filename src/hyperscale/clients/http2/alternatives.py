"""Where else an origin can be asked: in HTTP/3, as its Alt-Svc header says (RFC 7838).

Of a process and workflow, like a pool. An alternative that fails is left for a while and the
request goes out as before: a hint is no promise, so that is no failure of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from hyperscale.clients.http.route import Route
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.http_options import HTTPOptions

if TYPE_CHECKING:
    from hyperscale.clients.http.target import Target
    from hyperscale.clients.http2.held import Held
    from hyperscale.clients.http3.exchange import QuicExchange
    from hyperscale.clients.http3.pool import QuicPool

MAX_AGE_S = 86_400.0  # when the header does not say (RFC 7838, 3.1)
TRIED_S = 3.0  # for the handshake; where UDP is dropped nobody answers
BROKEN_S = 300.0
LOOKED_S = 60.0  # until an origin that named nothing is looked at again
_H3 = re.compile(r"""h3="(?P<host>[^":]*|\[[^"\]]*\]):(?P<port>\d{1,5})"(?P<more>[^,]*)""")
_MAX_AGE = re.compile(r"""ma="?(\d+)""")


class Place(NamedTuple):
    host: str  # "": that of the origin
    port: int
    max_age_s: float


def place_of(header: str) -> Place | None:
    """The first HTTP/3 that an Alt-Svc header names."""
    found = _H3.search(header)
    if found is None or not 0 < int(found["port"]) < 65536:
        return None
    age = _MAX_AGE.search(found["more"])
    return Place(found["host"], int(found["port"]), float(age[1]) if age else MAX_AGE_S)


class _Known:
    """`route` is None while it is known only that there is nothing."""

    __slots__ = ("route", "until")

    def __init__(self, route: Route | None, until: float) -> None:
        self.route = route
        self.until = until


class Alternatives:
    def __init__(
        self, options: HTTPOptions, network: Network, opened: Callable[[QuicPool], None]
    ) -> None:
        """`opened` hears of the pool when there is one."""
        self._opened = opened
        self._options = options
        self._network = network
        # Over UDP there is no proxy and no TLS before 1.3.
        self._allowed = (
            options.tls_max in (None, "1.3")
            and not options.unix_socket
            and find_spec("aioquic") is not None
        )
        self._known: dict[Route, _Known] = {}
        self._pool: QuicPool | None = None

    def has(self, route: Route) -> bool:
        known = self._known.get(route)
        return known is not None and known.route is not None

    def learn(self, route: Route, target: Target, head: Any) -> None:
        """Of an answer."""
        if not self._allowed or not route.secure or route.proxy is not None or head is None:
            return
        known = self._known.get(route)
        if known is not None and perf_counter() < known.until:
            return
        said = head.headers.get("alt-svc", "")
        place = place_of(said) if said else None
        if place is None:
            self._known[route] = _Known(None, perf_counter() + LOOKED_S)
            return
        host = place.host.strip("[]") or route.host
        alternative = Route(target, None, self._network.server_name, self._network.hosts)
        alternative.peer = self._network.hosts.place(host, place.port)
        self._known[route] = _Known(alternative, perf_counter() + place.max_age_s)

    def held(self) -> Held:
        return self._open_pool().held()

    def _open_pool(self) -> QuicPool:
        if self._pool is None:
            from hyperscale.clients.http2.auto import EitherRequest
            from hyperscale.clients.http3.pool import QuicPool

            self._pool = QuicPool(self._options, self._network, None, EitherRequest)
            self._opened(self._pool)
        return self._pool

    async def take(self, held: Held, route: Route, deadline: float) -> QuicExchange | None:
        """A stream at the alternative of a route, if that answers."""
        from hyperscale.clients.http3.exchange import QuicExchange

        known = self._known[route]
        now = perf_counter()
        if known.route is None or now >= known.until:
            del self._known[route]
            return None
        pool = self._open_pool()
        is_there = held.count(known.route) > 0
        until = deadline if is_there else min(deadline, now + TRIED_S)
        try:
            connection: Any = await pool.acquire(held, known.route, until)
        except Failure:
            if is_there or pool.stopped:
                raise
            self._known[route] = _Known(None, perf_counter() + BROKEN_S)
            return None
        exchange = QuicExchange(connection)
        exchange.connect, connection.connect = connection.connect, None
        return exchange

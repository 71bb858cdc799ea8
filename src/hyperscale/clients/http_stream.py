"""A request of HTTP whose answer does not end: WebSocket and Server-Sent Events begin so.

The request is built as the HTTP client builds its own, with the same arguments; what comes behind
the head of the answer belongs to the protocol. Redirects are not followed and no proxy is used.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any, ClassVar

from hyperscale._version import __version__
from hyperscale.clients.contract import ProtocolPool
from hyperscale.clients.http.head import BadHead, Head
from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.waiting import WaitingChannel
from hyperscale.errors import BadInput, RunFailed
from hyperscale.workload.arguments import URL
from hyperscale.workload.results import Connect, Outcome
from hyperscale.workload.texts import shown


class HTTPStreamPool(ProtocolPool):
    schemes: ClassVar[Mapping[str, str]]
    """Of its URLs, and what each is in HTTP."""
    asks_for: ClassVar[Mapping[str, str]]
    """Headers of every request, which authors may replace."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tls = self.network.tls("http/1.1")
        agent = self.options.user_agent
        name = f"hyperscale/{__version__}" if agent is None else agent
        defaults = {**({"User-Agent": name} if name else {}), **self.asks_for}
        self._builder = RequestBuilder(self.options.base_url, defaults, self._route)
        self._routes: dict[tuple[str, str, int], Route] = {}

    def _route(self, target: Target) -> Route:
        origin = (target.scheme, target.host, target.port)
        route = self._routes.get(origin)
        if route is None:
            network = self.network
            route = Route(target, None, network.server_name, network.hosts)
            self._routes[origin] = route
        return route

    def request(
        self,
        url: str | URL,
        method: str = "GET",
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        name: str | None = None,
    ) -> Request:
        """Raises BadInput."""
        asked = self._in_http(url)
        return self._builder.build((method, asked, params, headers, cookies, auth, name, None))

    def _in_http(self, url: str | URL) -> str:
        text = URL.checked(url.value if isinstance(url, URL) else url)
        scheme, mark, rest = text.partition("://")
        if not mark:
            return text
        if scheme not in self.schemes:
            known = " or ".join(f"{name}://host/path" for name in self.schemes)
            raise BadInput(f"{shown(text)} is not a URL of {self.kind}", f"write {known}")
        return f"{self.schemes[scheme]}://{rest}"

    async def prepare(self, url: URL) -> None:
        request = self.request(url)
        self._builder.own(request.target)
        route = request.route
        if route.secure:
            self.tls.context(route.host)
        try:
            await self.network.addresses(route, route.authority)
        except Failure as failure:
            raise RunFailed(
                failure.error, f"check the host of {url} and this machine's DNS"
            ) from None

    async def open(self, request: Request) -> tuple[socket.socket, Connect]:
        """Raises Failure."""
        seconds = self.options.connect_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self.network.open(request.route, self.tls)
        except TimeoutError:
            where = request.route.authority
            text = f"connecting to {where} took longer than {seconds:g} s"
            raise Failure(Outcome.TIMEOUT, text) from None


class HTTPStream(WaitingChannel):
    """A connection until the head of the answer has come, and `after_head` then."""

    __slots__ = ("_before", "_head_bytes_max", "head", "head_at", "head_bytes")

    def start(self, pool: HTTPStreamPool, request: Request, sock: socket.socket) -> None:
        self._before = b""
        self._head_bytes_max = pool.options.max_header_bytes
        self.head: Head | None = None
        self.head_at = 0.0
        self.head_bytes = 0
        self.begin(pool.network, request.route.authority, sock)

    def after_head(self, data: bytes, now: float) -> None:
        raise NotImplementedError

    def received(self, data: bytes, now: float) -> None:
        if self.head is not None:
            self.after_head(data, now)
            return
        self._before += data
        at = self._before.find(b"\r\n\r\n")
        if at < 0 and len(self._before) <= self._head_bytes_max:
            if not b"HTTP/1.1 ".startswith(self._before[:9]):
                self.over(Outcome.PROTOCOL, f"sent something that is not HTTP: {data[:40]!r}")
            return
        try:
            if not 0 <= at <= self._head_bytes_max:
                raise BadHead(f"a header of more than {self._head_bytes_max} bytes")
            head = Head(self._before[:at], 0)
        except BadHead as error:
            self.over(Outcome.PROTOCOL, f"sent {error}")
            return
        rest, self._before = self._before[at + 4 :], b""
        if 100 <= head.status < 200 and head.status != 101:  # the answer itself is yet to come
            if rest:
                self.received(rest, now)
            return
        self.head, self.head_at, self.head_bytes = head, now, at + 4
        if rest:
            self.after_head(rest, now)
        self.wake()

    @property
    def has_answer(self) -> bool:
        return self.head is not None

    async def answered(self) -> Head:
        """The head. Raises Failure."""
        while self.head is None:
            if self.end is not None:
                raise self.end
            await self.change()
        return self.head

"""The HTTP client of one virtual user: `self.client.http` in a workflow.

Calls never raise for what the network or the server does: the response says how it went. What the
author got wrong (a bad URL, a header with a line break) raises BadInput.

`_send` is the measured path of nearly every request of a run. A call that finds its encoded
request and a connection at rest goes out at once; `_call` does everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from time import perf_counter
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from hyperscale.clients.counting import note
from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.cookies import CookieJar
from hyperscale.clients.http.credentials import Credentials, is_digest
from hyperscale.clients.http.origin_pool import OriginPool
from hyperscale.clients.http.pool import HTTPPool
from hyperscale.clients.http.reader import Sink
from hyperscale.clients.http.redirects import next_call
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.verbs import Answer, Expect, R, Verbs
from hyperscale.clients.limits import call_redirects, call_timeout
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.errors import BadInput
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Connect, Outcome
from hyperscale.workload.scope import CURRENT
from hyperscale.workload.trace_context import TRACE_LINE

_current_scope = CURRENT.get
# Of the running loop, which uvloop's `create_future` makes at twice the cost.
_Waiter: type[asyncio.Future[HTTPResponse]] = asyncio.Future
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


class Carrier(Protocol):
    """What one request goes out on: a connection, or a stream of one."""

    connect: Connect | None

    @property
    def sent_at(self) -> float | None: ...

    @property
    def written(self) -> int: ...

    def ask(self, request: Any, timeout: float, sink: Sink | None) -> asyncio.Future[Any]: ...

    def settle(self) -> None: ...

    def abort(self) -> None: ...


P = TypeVar("P", bound=OriginPool[Any])


class OriginClient(Verbs[R], Generic[R, P]):
    """What the versions of HTTP have in common: a call is one exchange or several, and they are
    counted. `_is_plain`: nothing is to be done before a request but to send it."""

    response: ClassVar[type[HTTPResponse]] = HTTPResponse

    __slots__ = ("_credentials", "_is_plain", "_jar", "_limit", "_pool")

    def __init__(self, pool: P, limit: RequestLimit | None = None) -> None:
        """`limit`: how many requests all users may make; each exchange waits for its turn, in no
        latency and in no timeout of the call."""
        super().__init__(pool.builder)
        self._pool = pool
        self._limit = limit
        self._is_plain = limit is None and not pool.traced
        self._jar: CookieJar | None = None
        self._credentials: Credentials | None = None

    @property
    def cookies(self) -> CookieJar:
        """This virtual user's cookies; made when first needed, most users never do."""
        if self._jar is None:
            self._jar = CookieJar()
            self._is_plain = False
        return self._jar

    async def _take(self, route: Route, deadline: float, new: bool) -> Carrier:
        """What to send a request on. Raises Failure."""
        raise NotImplementedError

    def _leave(self, carrier: Carrier) -> None:
        """It has had its answer, or is not used after all."""
        raise NotImplementedError

    def _send_to(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
        sink: Sink | None,
    ) -> Answer[R]:
        return self._call(request, timeout, redirects, expect, sink)

    async def _call(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
        sink: Sink | None,
    ) -> R:
        """A call of any kind: its exchanges until there is an answer for the author."""
        pool = self._pool
        allowed = pool.timeout if timeout is None else call_timeout(timeout)
        hops = pool.options.redirects if redirects is None else call_redirects(redirects)
        if self._limit is not None:
            await self._limit.wait()
        deadline = perf_counter() + allowed
        response = await self._exchange(request, deadline, sink)
        return await self._settle(response, deadline, hops, expect, sink)

    async def _exchange(
        self, request: Request, deadline: float, sink: Sink | None, new: bool = False
    ) -> R:
        """One request and its response; a kept connection found closed is replaced once."""
        if self._credentials is not None and is_digest(request):
            request = self._credentials.with_answer(request)
        if self._jar:
            target = request.target
            request = request.with_cookies(
                self._jar.matching(target.host, target.path, target.scheme == "https")
            )
        if self._pool.traced and (line := TRACE_LINE.get()):
            request = request.with_line(line)
        began = perf_counter()
        try:
            carrier = await self._take(request.route, deadline, new)
        except Failure as failure:
            return await self._unsent(request, failure, began)
        connect, carrier.connect = carrier.connect, None
        if perf_counter() < deadline:
            response = await self._on(carrier, request, deadline, sink)
        else:
            self._leave(carrier)
            response = await self._unsent(request, failures.late(request.route.where), began)
        if connect is None and self._may_repeat(response):
            return await self._again(request, response, deadline, sink)
        response.connect = connect
        return response

    async def _next_exchange(
        self, request: Request, deadline: float, sink: Sink | None, new: bool = False
    ) -> R:
        """One that follows another: after a redirect or a challenge, or again."""
        if self._limit is not None:
            await self._limit.wait()
        return await self._exchange(request, deadline, sink, new)

    async def _again(self, request: Request, stale: R, deadline: float, sink: Sink | None) -> R:
        """On a new connection: the kept one was closed. What was written there counts."""
        if stale.bytes_out:
            _note(stale)
        return await self._next_exchange(request, deadline, sink, new=True)

    def _may_repeat(self, response: HTTPResponse) -> bool:
        """The kept connection was closed before a byte of an answer, and the server either never
        saw the request or may see it twice (RFC 9110, 9.2.2)."""
        if response.outcome is not Outcome.RESET or response.bytes_in:
            return False
        request = cast(Request, response.request)
        unseen = not response.bytes_out
        return request.repeatable and (unseen or request.method in _IDEMPOTENT)

    async def _on(
        self, carrier: Carrier, request: Request, deadline: float, sink: Sink | None
    ) -> R:
        self._pool.look_by(deadline)
        try:
            response: R = await carrier.ask(request, deadline - perf_counter(), sink)
        except BaseException:
            self._given_up(carrier, request)
            raise
        carrier.settle()
        self._leave(carrier)
        return response

    def _given_up(self, carrier: Carrier, request: Request) -> None:
        """Nobody waits for the answer any more; a request that was written counts all the same."""
        sent_at, written = carrier.sent_at, carrier.written
        carrier.abort()
        if sent_at is not None:
            cut, now = failures.given_up(), perf_counter()
            _note(self.response.failed(request, cut.outcome, cut.error, sent_at, now, 0, written))

    async def _unsent(self, request: Request, failure: Failure, began: float) -> R:
        ended = perf_counter()
        await asyncio.sleep(0)  # a loop of calls that fail at once must not stop the others
        made = self.response.failed(request, failure.outcome, failure.error, began, ended)
        return cast(R, made)

    async def _settle(
        self,
        response: R,
        deadline: float,
        redirects: int,
        expect: Expect | None,
        sink: Sink | None,
    ) -> R:
        """After the first answer: cookies, challenges, redirects, the author's expectation."""
        while True:
            head, request = response.head, cast(Request, response.request)
            if head is None:
                break
            for line in head.set_cookies:
                self.cookies.store(line, request.target.host, request.target.path)
            following = None
            if head.status == 401 and is_digest(request):
                following = self._authorize(request, response)
            elif head.is_redirect and redirects:
                following = self._follow(request, response, head.location or "", redirects)
            if following is None:
                break
            _note(response)
            self._trace(response)
            response = await self._next_exchange(following, deadline, sink)
        try:
            if expect is not None and response.head is not None:
                _judge(response, expect)
        finally:  # a function of the author's may raise; the exchange has been made
            _note(response)
        self._trace(response)
        return response

    def _authorize(self, request: Request, response: HTTPResponse) -> Request | None:
        if self._credentials is None:
            self._credentials = Credentials(self._pool.builder)
            self._is_plain = False
        following = self._credentials.to_challenge(request, response.headers)
        if following is not None:
            response.accept()  # a server that asks has not failed
        return following

    def _follow(
        self, request: Request, response: HTTPResponse, location: str, redirects: int
    ) -> Request | None:
        """The request a redirect leads to, or None with the reason in the response."""
        if len(request.hops) >= redirects:
            response.outcome = Outcome.PROTOCOL
            response.error = f"more than {redirects} redirects, the last one to {location}"
            return None
        try:
            call = next_call(request, response.status, location)
            if call.method == request.method and not request.repeatable:
                return None  # its body is gone: the redirect itself is the answer
            return self._pool.builder.build(call).after(request)
        except BadInput as error:
            response.outcome = Outcome.PROTOCOL
            response.error = f"{request.url} redirects to a place that cannot be called: {error}"
            return None

    def _trace(self, response: HTTPResponse) -> None:
        if self._pool.trace is not None:
            self._pool.trace(response)


class HTTPClient(OriginClient[HTTPResponse, HTTPPool]):
    """With HTTP/1.1: a connection carries one request at a time, and rests in between."""

    __slots__ = ("_idle",)

    def __init__(self, pool: HTTPPool, limit: RequestLimit | None = None) -> None:
        super().__init__(pool, limit)
        self._idle = pool.resting_place()

    async def _send(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTPResponse:
        idle = self._idle
        if (
            timeout is None
            and expect is None
            and self._is_plain
            and idle
            and idle[-1].route is request.route
        ):
            connection = idle.pop()
            # `Connection.ask`, written out
            outgoing = connection.outgoing
            connection.request = request
            connection.waiter = waiter = _Waiter()
            connection.sent = 0.0
            if not outgoing:
                connection.readiness.transmit_soon()
            outgoing.append(connection)
            try:
                response = await waiter
            except BaseException:
                self._given_up(connection, request)
                raise
            if connection.alive:
                idle.append(connection)
            head, pool = response.head, self._pool
            if head is not None and head.plain and pool.trace is None:
                # `_note`, written out for what most calls come to
                scope = _current_scope()
                user = scope.user
                try:
                    note = scope.notes[request.label]
                except KeyError:
                    note = scope.open(request.label)
                note(
                    (
                        response.started,
                        response.sent,
                        response.first_byte,
                        response.ended,
                        user.lateness,
                        response.status,
                        response.bytes_in,
                        response.bytes_out,
                    )
                )
                user.last = response
                return response
            deadline = response.started + pool.timeout
            if self._may_repeat(response):
                response = await self._again(request, response, deadline, pool.sink)
            hops = pool.options.redirects if redirects is None else call_redirects(redirects)
            return await self._settle(response, deadline, hops, expect, pool.sink)
        return await self._call(request, timeout, redirects, expect, self._pool.sink)

    async def _take(self, route: Route, deadline: float, new: bool) -> Carrier:
        return await self._pool.acquire(self._idle, route, deadline, new)

    def _leave(self, carrier: Carrier) -> None:
        self._pool.release(cast(Connection, carrier))

    def close(self) -> None:
        """Close this user's connections; shared ones stay for the others."""
        if not self._pool.shares:
            for connection in list(self._idle):
                connection.close()


def _note(response: HTTPResponse) -> None:
    """Count one exchange, or a call that never came to one."""
    note(response.request.label, response, sent=response.bytes_out > 0)


def _judge(response: HTTPResponse, expect: Expect) -> None:
    if callable(expect):
        if expect(response):
            response.accept()
        else:
            response.fail(f"{response} is not what was expected")
        return
    statuses: Container[int] = (expect,) if isinstance(expect, int) else expect
    if response.status in statuses:
        response.accept()
    else:
        response.outcome = Outcome.STATUS
        answered = f"{response.status} {response.reason}".strip()
        response.error = f"{answered} instead of {expect}"

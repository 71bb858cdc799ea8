"""The HTTP client of one virtual user: `self.client.http` in a workflow.

Calls never raise for what the network or the server does: the response says how it went. What the
author got wrong (a bad URL, a header with a line break) raises BadInput.

`_send` is the measured path of nearly every request of a run. A call that finds its encoded
request and a connection at rest goes out at once; `_call` does everything else.
"""

from __future__ import annotations

from collections.abc import Container
from time import perf_counter
from typing import cast

from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.cookies import CookieJar
from hyperscale.clients.http.failures import Failure
from hyperscale.clients.http.pool import HTTPPool
from hyperscale.clients.http.redirects import next_call
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.verbs import Expect, Verbs
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.errors import BadInput
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT

_current_scope = CURRENT.get
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


class HTTPClient(Verbs):
    __slots__ = ("_idle", "_jar", "_pool")

    def __init__(self, pool: HTTPPool) -> None:
        super().__init__(pool.builder)
        self._pool = pool
        self._idle = pool.resting_place()
        self._jar: CookieJar | None = None

    @property
    def cookies(self) -> CookieJar:
        """This virtual user's cookies; made when first needed, most users never do."""
        if self._jar is None:
            self._jar = CookieJar()
        return self._jar

    async def _send(
        self,
        request: Request,
        timeout: float | None,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTPResponse:
        pool = self._pool
        idle = self._idle
        if timeout is None and self._jar is None and idle and idle[-1].route is request.route:
            connection = idle.pop()
            # `Connection.ask`, written out
            create_waiter, outgoing = connection.create_waiter, connection.outgoing
            connection.request = request
            connection.waiter = waiter = create_waiter()
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
                if pool.shares:
                    pool.queue.serve(idle)
            head = response.head
            if head is not None and head.plain and expect is None and pool.trace is None:
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
            if _may_repeat(response):
                response = await self._again(request, response, deadline)
        else:
            deadline = perf_counter() + (pool.timeout if timeout is None else timeout)
            response = await self._exchange(request, deadline)
        hops = pool.options.redirects if redirects is None else redirects
        return await self._settle(response, deadline, hops, expect)

    async def _exchange(self, request: Request, deadline: float, new: bool = False) -> HTTPResponse:
        """One request and its response; a kept connection found closed is replaced once."""
        if self._jar:
            target = request.target
            request = request.with_cookies(
                self._jar.matching(target.host, target.path, target.scheme == "https")
            )
        began = perf_counter()
        try:
            connection = await self._pool.acquire(self._idle, request.route, deadline, new)
        except Failure as failure:
            return HTTPResponse.failed(
                request, failure.outcome, failure.error, began, perf_counter()
            )
        connect, connection.connect = connection.connect, None
        response = await self._on(connection, request, deadline)
        if connect is None and _may_repeat(response):
            return await self._again(request, response, deadline)
        response.connect = connect
        return response

    async def _again(self, request: Request, stale: HTTPResponse, deadline: float) -> HTTPResponse:
        """On a new connection: the kept one was closed. What was written there counts."""
        if stale.bytes_out:
            _note(stale)
        return await self._exchange(request, deadline, new=True)

    async def _on(self, connection: Connection, request: Request, deadline: float) -> HTTPResponse:
        self._pool.look_by(deadline)
        try:
            connection.timeout = deadline - perf_counter()
            response = await connection.ask(request)
        except BaseException:
            self._given_up(connection, request)
            raise
        connection.timeout = self._pool.timeout
        self._pool.release(connection)
        return response

    def _given_up(self, connection: Connection, request: Request) -> None:
        """Nobody waits for the answer any more; a request that was written counts all the same."""
        sent_at = connection.sent_at
        connection.abort()
        if sent_at is not None:
            text = "the call was given up before its answer came"
            now = perf_counter()
            _note(
                HTTPResponse.failed(request, Outcome.CANCELLED, text, sent_at, now, 0, request.size)
            )

    async def _settle(
        self,
        response: HTTPResponse,
        deadline: float,
        redirects: int,
        expect: Expect | None,
    ) -> HTTPResponse:
        """After the first answer: cookies, redirects, the author's expectation, the trace."""
        while True:
            head, request = response.head, cast(Request, response.request)
            if head is None:
                break
            for line in head.set_cookies:
                self.cookies.store(line, request.target.host, request.target.path)
            if not head.is_redirect or not redirects:
                break
            following = self._follow(request, response, head.location or "", redirects)
            if following is None:
                break
            _note(response)
            self._trace(response)
            response = await self._exchange(following, deadline)
        try:
            if expect is not None and response.head is not None:
                _judge(response, expect)
        finally:  # a function of the author's may raise; the exchange has been made
            _note(response)
        self._trace(response)
        return response

    def _follow(
        self, request: Request, response: HTTPResponse, location: str, redirects: int
    ) -> Request | None:
        """The request a redirect leads to, or None with the reason in the response."""
        if len(request.hops) >= redirects:
            response.outcome = Outcome.PROTOCOL
            response.error = f"more than {redirects} redirects, the last one to {location}"
            return None
        try:
            following = self._pool.builder.build(next_call(request, response.status, location))
            return following.after(request)
        except BadInput as error:
            response.outcome = Outcome.PROTOCOL
            response.error = f"{request.url} redirects to a place that cannot be called: {error}"
            return None

    def _trace(self, response: HTTPResponse) -> None:
        if self._pool.trace is not None:
            self._pool.trace(response)

    def close(self) -> None:
        """Close this user's connections; shared ones stay for the others."""
        if not self._pool.shares:
            for connection in list(self._idle):
                connection.close()


class LimitedHTTPClient(HTTPClient):
    """Of a workflow with a limit of requests per second: each exchange waits for its turn, in no
    latency and in no timeout of the call."""

    __slots__ = ("_limit",)

    def __init__(self, pool: HTTPPool, limit: RequestLimit) -> None:
        super().__init__(pool)
        self._limit = limit

    async def _send(
        self,
        request: Request,
        timeout: float | None,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTPResponse:
        pool = self._pool
        await self._limit.wait()
        deadline = perf_counter() + (pool.timeout if timeout is None else timeout)
        response = await super()._exchange(request, deadline)
        hops = pool.options.redirects if redirects is None else redirects
        return await self._settle(response, deadline, hops, expect)

    async def _exchange(self, request: Request, deadline: float, new: bool = False) -> HTTPResponse:
        """One that follows another: after a redirect, or again."""
        await self._limit.wait()
        return await super()._exchange(request, deadline, new)


def _note(response: HTTPResponse) -> None:
    """Count one exchange, or a call that never came to one."""
    scope, label = _current_scope(), response.request.label
    scope.user.last = response
    if response.connect is not None:
        scope.connected(label, response.connect)
    if response.outcome is not Outcome.OK:
        scope.failed(label, response, sent=response.bytes_out > 0)
        return
    scope.open(label)(
        (
            response.started,
            response.sent,
            response.first_byte,
            response.ended,
            scope.user.lateness,
            response.status,
            response.bytes_in,
            response.bytes_out,
        )
    )


def _may_repeat(response: HTTPResponse) -> bool:
    """The kept connection was closed before a byte of an answer, and the server either never saw
    the request or may see it twice (RFC 9110, 9.2.2)."""
    if response.outcome is not Outcome.RESET or response.bytes_in:
        return False
    return not response.bytes_out or response.request.method in _IDEMPOTENT


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

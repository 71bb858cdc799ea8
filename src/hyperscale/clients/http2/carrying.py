"""What a connection that carries calls as streams is to its pool, whatever is below it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.call import StreamCall
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.held import Held
    from hyperscale.clients.io.readiness import Readiness


class Carrying:
    """`alive`: it may carry more calls, as far as is known; `calls` are those under way."""

    __slots__ = ()
    if TYPE_CHECKING:
        alive: bool
        calls: set[StreamCall]
        connect: Connect | None  # until the first call takes it
        held: Held
        http: Any  # the session, of either version
        pool: Any  # of either version
        readiness: Readiness
        route: Route

        def close(self) -> None: ...

    @property
    def has_room(self) -> bool:
        """For one more call."""
        http = self.http
        return self.alive and not http.is_closing and len(self.calls) < http.streams_max

    @property
    def busy(self) -> bool:
        return bool(self.calls)

    def done(self, call: StreamCall) -> None:
        self.calls.discard(call)
        held = self.held
        if held.waiting:
            held.wake()
        if not self.calls and (self.http.is_closing or not self.pool.keeps):
            # Behind what is read just now: the rest of it may be of use to the session.
            self.readiness.soon(self.retire)

    def retire(self) -> None:
        if not self.calls and self.alive:
            self.pool.keep_session(self)
            self.close()

    def deadline(self, now: float) -> float:
        return min((call.deadline(now) for call in self.calls), default=now + self.pool.timeout)

    def _fail_all(self, outcome: Outcome, error: str, now: float) -> None:
        for call in list(self.calls):
            call.fail(outcome, error, now)

    def cancel(self) -> None:
        now = perf_counter()
        for call in list(self.calls):
            call.cancel(now)
        self.close()

    def _gone(self) -> None:
        """Closed: nobody will find it any more."""
        for call in list(self.calls):
            call.fail(Outcome.RESET, f"the connection to {self.route.where} was closed", 0.0)
        if self in self.held.connections:
            self.held.connections.remove(self)
        self.pool.forget(self)
        self.held.wake_all()

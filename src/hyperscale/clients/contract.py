"""What a client of a protocol is: every one of ours, and one of your own.

A workflow in a process has one `ProtocolPool` for each protocol that it uses, and each virtual user
a `ProtocolClient` of it. A call of a client is a coroutine that does the talking and keeps the
`Call` up to date; `ProtocolClient.call` runs it, ends it when its time is over, turns what went
wrong into a response, and has it counted. A call never raises for what the network or the server
does. docs/clients.md says how to write one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeVar, cast

from hyperscale.clients.counting import note
from hyperscale.clients.limits import call_timeout
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.workload.arguments import URL
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.replies import Reply
from hyperscale.workload.results import Connect
from hyperscale.workload.scope import Label

TIMEOUT_S = 30.0

R = TypeVar("R", bound=Reply)
P = TypeVar("P", bound="ProtocolPool")
Talk = Callable[["Call", R], Awaitable[None]]


class Call:
    """A call under way. The clock of a request starts when it is written: opening a connection is
    told apart."""

    __slots__ = (
        "_cancelling",
        "_task",
        "connect",
        "deadline",
        "ended",
        "first_byte",
        "is_expired",
        "is_made",
        "received",
        "sent",
        "started",
        "written",
    )

    def __init__(self, allowed_s: float) -> None:
        self.started = perf_counter()
        self.deadline = self.started + allowed_s
        self.is_made = self.is_expired = False
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._cancelling = self._task.cancelling()
        self.sent = self.first_byte = self.ended = 0.0
        self.written = self.received = 0
        self.connect: Connect | None = None

    def begin(self) -> None:
        """Now the peer is asked, or waited for: from here on the call counts, and its time."""
        self.started = perf_counter()
        self.sent = 0.0
        self.is_made = True

    def wrote(self, size: int) -> None:
        """All of the request was handed to the operating system."""
        self.sent = perf_counter()
        self.written += size

    def got(self, size: int, first_at: float, last_at: float) -> None:
        """The answer, and when its first and last bytes came."""
        self.received += size
        self.first_byte = max(first_at, self.sent or self.started)
        self.ended = max(last_at, self.first_byte)

    def expire(self) -> None:
        """Its time, or that of the run, is over."""
        if not self.is_expired:
            self.is_expired = True
            self._task.cancel()

    def was_expired(self) -> bool:
        """Whether the cancellation that `expire` asked for is the only one there is."""
        return self.is_expired and self._task.uncancel() <= self._cancelling


class ProtocolPool:
    """What the users of one process share of a protocol: settings, names, TLS, calls in flight."""

    kind: ClassVar[str]
    schemes: ClassVar[Collection[str]] = ()
    """Of its URLs: a URL argument of such a scheme is prepared here."""

    def __init__(
        self, options: HTTPOptions, network: Network, limit: RequestLimit | None = None
    ) -> None:
        self.options = options
        self.network = network
        self.limit = limit
        self.trace: Callable[[Any], None] | None = None
        self.stopped = False
        self._calls: set[Call] = set()
        self._due = math.inf  # when the timer looks for calls whose time is over
        self._timer: asyncio.TimerHandle | None = None
        self._labels: dict[tuple[str, str], Label] = {}

    def client(self) -> ProtocolClient[Any]:
        raise NotImplementedError

    async def start(self) -> None:
        """Before the clock starts, where a step's code calls the protocol."""

    async def prepare(self, url: URL) -> None:
        """Before the clock starts: look up the host, or refuse the URL."""

    def failure(self, error: Exception) -> Failure | None:
        """What an exception of a library means; None: it is a bug, and is raised."""
        if isinstance(error, Failure):
            return error
        if isinstance(error, OSError):
            return failures.of_connecting(error, self.kind)
        return None

    def label(self, method: str, name: str) -> Label:
        """Equal ones are the same object."""
        found = self._labels.get((method, name))
        if found is None:
            if len(self._labels) >= LABELS_MAX:
                self._labels.clear()
            found = self._labels[method, name] = Label(method, name, kind=self.kind)
        return found

    def enter(self, call: Call) -> None:
        self._calls.add(call)
        if call.deadline < self._due:
            self._look_at(call.deadline)

    def leave(self, call: Call) -> None:
        self._calls.discard(call)

    def _look_at(self, due: float) -> None:
        """One timer for all calls: most of them have the same time, so the first is due first."""
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self.network.loop.call_later(max(0.0, due - perf_counter()), self._expire)

    def _expire(self) -> None:
        now = perf_counter() + CLOCK_S
        self._timer = None
        self._due = math.inf
        due = math.inf
        for call in self._calls:
            if call.deadline <= now:
                call.expire()
            elif call.deadline < due:
                due = call.deadline
        if due < math.inf:
            self._look_at(due)

    def ends_by(self, now: float) -> float:
        """When the first of the calls in flight must have ended; inf: there is none."""
        return min((call.deadline for call in self._calls), default=math.inf)

    def cancel_all(self) -> None:
        """End all calls in flight as cancelled; calls made afterwards end the same way."""
        self.stopped = True
        for call in self._calls:
            call.expire()

    async def finish(self, seconds: float) -> None:
        """No more calls: those in flight may end within that time, then they are cut off."""
        self.stopped = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._calls:  # noqa: ASYNC110 - the last moments of a run, once
                    await asyncio.sleep(0.05)
        self.cancel_all()
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.cancel_all()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._due = math.inf
        await asyncio.sleep(0)


CLOCK_S = 0.002  # timers of event loops count milliseconds, and may be early by one
LABELS_MAX = 2_000  # a test may make up names without end


class ProtocolClient(Generic[P]):
    """What one virtual user calls with."""

    def __init__(self, pool: P) -> None:
        self._pool = pool

    async def call(
        self, method: str, name: str, response: Callable[[Label], R], talk: Talk[R], timeout: Any
    ) -> R:
        """Run `talk` as one measured call. `response` makes the answer that `talk` fills in."""
        pool = self._pool
        allowed = TIMEOUT_S if timeout is None else call_timeout(timeout)
        if pool.limit is not None:
            await pool.limit.wait()
        answer = response(pool.label(method, name))
        call = Call(allowed)
        failure: Failure | None = None
        pool.enter(call)
        try:
            if pool.stopped:
                raise failures.cancelled()
            await talk(call, answer)
        except asyncio.CancelledError:
            if not call.was_expired():
                if call.is_made:
                    _end(call, answer, failures.given_up())
                    self.counted(answer, call.is_made)
                raise
            failure = self._over(answer, allowed)
        except Exception as error:
            # A library may tell its end in its own way.
            failure = self._over(answer, allowed) if call.was_expired() else pool.failure(error)
            if failure is None:
                raise
        else:
            if call.is_expired:  # something on the way kept the cancellation for itself
                call.was_expired()
        finally:
            pool.leave(call)
        _end(call, answer, failure)
        if not call.is_made:
            await asyncio.sleep(0)  # a loop of calls that fail at once must not stop the others
        self.counted(answer, call.is_made)
        if pool.trace is not None:
            pool.trace(answer)
        return answer

    def counted(self, answer: Any, is_made: bool) -> None:
        note(answer.label, answer, is_made)

    def _over(self, answer: Reply, allowed: float) -> Failure:
        if self._pool.stopped:
            return failures.cancelled()
        return failures.timed_out(answer.target, allowed)

    def close(self) -> None:
        """The user has ended: its connections are not needed any more."""


def _end(call: Call, answer: Reply, failure: Failure | None) -> None:
    answer.ended = call.ended or perf_counter()
    answer.started = call.started
    answer.sent = call.sent or answer.started
    answer.first_byte = call.first_byte or answer.ended
    answer.bytes_out = call.written
    answer.bytes_in = call.received
    answer.connect = call.connect
    if failure is not None:
        answer.outcome = failure.outcome
        answer.error = failure.error

"""A call under way as a stream: its times, its deadline, and how it can go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperscale.clients.net import failures
from hyperscale.http2 import frames
from hyperscale.http2.stream import Stream
from hyperscale.workload.results import Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http2.connection import Connection


class StreamCall(Stream):
    """`started`: when it was written, 0: not yet; `sent`: when all of it was handed over."""

    __slots__ = (
        "connect",
        "connection",
        "first_byte",
        "is_over",
        "moved",
        "sent",
        "started",
        "timeout",
    )

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.connect: Connect | None = None
        self.started = self.sent = self.first_byte = self.moved = 0.0
        self.timeout = 0.0
        self.is_over = False

    def begin(self, now: float) -> None:
        """Give the session what is to be sent."""
        raise NotImplementedError

    def fail(self, outcome: Outcome, error: str, now: float) -> None:
        """Tell whoever made the call. The stream is forgotten already, or given up."""
        raise NotImplementedError

    @property
    def is_sending(self) -> bool:
        return self.outbox is not None

    @property
    def sent_at(self) -> float | None:
        return self.started or None

    @property
    def written(self) -> int:
        """How many bytes of frames went out for it."""
        return self.sent_bytes

    def finish(self) -> None:
        """It has ended, well or not."""
        if not self.is_over:
            self.is_over = True
            self.connection.done(self)

    def give_up(self, code: int, outcome: Outcome, problem: str, now: float) -> None:
        """Reset the stream; `problem` completes 'the server ...'."""
        connection = self.connection
        connection.http.reset(self, code)
        self.fail(outcome, f"{connection.route.where} {problem}", now)
        connection.flush_soon()

    def abort(self) -> None:
        """Nobody waits for the answer any more."""
        if not self.is_over:
            self.connection.http.reset(self, frames.CANCEL)
            self.connection.flush_soon()
            self.finish()

    def on_room(self, now: float) -> None:
        self.moved = now
        if not self.is_sending and self.connection.unsent is None:
            self.sent = now

    def on_reset(self, code: int, now: float) -> None:
        name = frames.error_name(code)
        refused = code == frames.REFUSED_STREAM
        text = f"{self.connection.route.where} reset the stream ({name})"
        self.fail(Outcome.REFUSED if refused else Outcome.RESET, text, now)

    def on_refused(self, now: float) -> None:
        """The server never looked at it: as if it had not been sent."""
        self.sent_bytes = self.received = 0
        where = self.connection.route.where
        self.fail(Outcome.RESET, f"{where} ended the connection and left this request out", now)

    def on_fault(self, code: int, fault: str, now: float) -> None:
        self.fail(Outcome.PROTOCOL, f"{self.connection.route.where} {fault}", now)

    # -- deadlines ---------------------------------------------------------------------------------

    def deadline(self, now: float) -> float:
        if not self.started:
            return now + self.timeout
        silence = self.connection.pool.read_timeout
        limit = self.started + self.timeout
        return min(limit, self.moved + silence) if silence else limit

    def expire(self, now: float) -> None:
        where, allowed = self.connection.route.where, self.timeout
        seconds = f"{allowed:.2g} s" if allowed < 10 else f"{allowed:.0f} s"
        if now < self.started + allowed:
            text = f"{where} was silent for {self.connection.pool.read_timeout:g} s (read_timeout)"
        elif self.first_byte:
            text = f"the response of {where} was not complete after {seconds}"
        elif self.is_sending:
            text = f"{where} had not taken the whole request after {seconds}"
        else:
            text = f"no response from {where} within {seconds}"
        self.connection.http.reset(self, frames.CANCEL)
        self.fail(Outcome.TIMEOUT, text, now)

    def cancel(self, now: float) -> None:
        failure = failures.cancelled()
        self.connection.http.reset(self, frames.CANCEL)
        self.fail(failure.outcome, failure.error, now)

"""A stream: one request and its answer, among others on a connection (RFC 9113, 5.1).

A side sees a stream from its first HEADERS frame on, and it is forgotten when it is closed:

    OPEN ── this side ends ──► LOCAL_ENDED ── the peer ends ──► CLOSED
    OPEN ── the peer ends ──► REMOTE_ENDED ── this side ends ──► CLOSED
    any  ── either side resets, or the connection is over ──► CLOSED

A frame of a stream that is forgotten is passed over, because the peer may not have known yet; one
of a stream that never was is an error of the connection. HEADERS and DATA of a peer that has ended
are an error of the stream.
"""

from __future__ import annotations

from hyperscale.http2.hpack import Block

OPEN, LOCAL_ENDED, REMOTE_ENDED, CLOSED = range(4)
AFTER_LOCAL_END = (LOCAL_ENDED, LOCAL_ENDED, CLOSED, CLOSED)
AFTER_REMOTE_END = (REMOTE_ENDED, CLOSED, REMOTE_ENDED, CLOSED)


class Stream:
    """What a session calls with what came. Subclasses say what to do with it.

    `outbox` is what the windows of the peer did not allow to be sent yet, and `ends` whether the
    stream ends behind it.
    """

    __slots__ = ("ends", "id", "outbox", "received", "send_window", "sent_bytes", "state", "taken")

    def __init__(self) -> None:
        self.id = 0  # until it is opened
        self.state = OPEN
        self.received = 0  # bytes of its frames
        self.sent_bytes = 0
        self.taken = 0  # bytes of DATA that the peer was not allowed again yet
        self.send_window = 0
        self.outbox: memoryview | None = None
        self.ends = False

    def on_headers(self, block: Block, now: float) -> None:
        """A block of fields: before the body, or behind it."""
        raise NotImplementedError

    def on_data(self, data: bytes, now: float) -> None:
        raise NotImplementedError

    def on_end(self, now: float) -> None:
        """The peer has said all it had to say."""
        raise NotImplementedError

    def on_reset(self, code: int, now: float) -> None:
        """The peer gave the stream up."""
        raise NotImplementedError

    def on_refused(self, now: float) -> None:
        """The connection is closing and the peer has done nothing about this stream."""
        raise NotImplementedError

    def on_fault(self, code: int, fault: str, now: float) -> None:
        """The peer broke a rule; the stream was reset. `fault` completes 'the peer ...'."""
        raise NotImplementedError

    def on_room(self, now: float) -> None:
        """All that was given to be sent has been."""

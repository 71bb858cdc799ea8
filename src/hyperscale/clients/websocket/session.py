"""A session: the upgrade of a connection, then messages and control frames on it."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

from hyperscale.clients.contract import Call
from hyperscale.clients.http.head import Head
from hyperscale.clients.http.request import Request
from hyperscale.clients.http_stream import HTTPStream, HTTPStreamPool
from hyperscale.clients.net.failures import Failure
from hyperscale.websocket_frames import (
    BINARY,
    CLOSE,
    CODES,
    COMPRESSED,
    GOING_AWAY,
    NO_CODE,
    NORMAL,
    PING,
    PONG,
    TOO_BIG,
    Deflate,
    FrameError,
    FrameReader,
    closed_by,
    closing,
    frame,
)
from hyperscale.workload.replies import WebSocketResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT

MESSAGE_BYTES = 64  # what a message that nobody received takes beside its data, about
DEFLATE = "permessage-deflate"
_ENDINGS = frozenset({NORMAL, GOING_AWAY, NO_CODE})  # the others say that something is wrong

Message = tuple[int, bytes, float]  # its kind, what it says, when it came
Matches = Callable[[Message], Any]


class Session(HTTPStream):
    """`turn` is taken by requests that do not say which message answers them."""

    __slots__ = (
        "_deflate",
        "_early",
        "_later",
        "_messages",
        "_most",
        "_pings",
        "_pongs",
        "_reader",
        "_unread",
        "_upgraded_at",
        "close_code",
        "name",
        "scope",
        "turn",
    )

    def __init__(self, pool: HTTPStreamPool, request: Request, sock: socket.socket) -> None:
        self.name = request.label.name
        self.scope = CURRENT.get()  # what the session does is told where it was opened
        self.close_code = 0
        self._most = pool.options.max_response_bytes
        self._reader: FrameReader | None = None
        self._deflate: Deflate | None = None
        self._early = b""  # what came behind the head before anybody has seen that
        self._later = b""  # control frames behind a message that is not sent yet
        self._messages: deque[Message] = deque()
        self._unread = 0
        self._pings = 0
        self._pongs: dict[bytes, float | None] = {}
        self.turn = asyncio.Lock()
        self._upgraded_at = 0.0
        self.start(pool, request, sock)

    # -- opening ----------------------------------------------------------------------------------

    def upgrade(self, head: Head, accept: bytes, offered: Sequence[str], compress: bool) -> None:
        """Raises Failure if the server did not agree."""
        headers = head.headers
        if head.status != 101:
            said = f"{head.status} {head.reason}".strip()
            outcome = Outcome.STATUS if head.status >= 300 else Outcome.PROTOCOL
            raise Failure(outcome, f"{said} instead of a WebSocket")
        if headers.get("sec-websocket-accept", "").encode() != accept:
            raise self._disagreed("its Sec-WebSocket-Accept is not that of our key")
        chosen = headers.get("sec-websocket-protocol")
        if chosen is not None and chosen not in offered:
            raise self._disagreed(f"it chose the subprotocol {chosen!r}, which was not offered")
        extensions = headers.get("sec-websocket-extensions", "")
        if extensions:
            words = [word.strip().lower() for word in extensions.split(";")]
            if words[0] != DEFLATE or not compress or "," in extensions:
                raise self._disagreed(f"it chose the extension {extensions!r}, not offered")
            self._deflate = Deflate(
                keeps_ours="client_no_context_takeover" not in words,
                keeps_theirs="server_no_context_takeover" not in words,
            )
        self._reader = FrameReader(False, self._most, self._deflate)
        self._upgraded_at = perf_counter()
        if self._early:
            early, self._early = self._early, b""
            self.after_head(early, self.head_at)

    def _disagreed(self, what: str) -> Failure:
        return Failure(Outcome.PROTOCOL, f"{self.where} agreed to a WebSocket, but {what}")

    # -- what comes -------------------------------------------------------------------------------

    def after_head(self, data: bytes, now: float) -> None:
        reader = self._reader
        if reader is None:
            self._early += data
            if len(self._early) > self._most:
                self.over(Outcome.PROTOCOL, f"sent {self._most} bytes and more unread")
            return
        messages = self._messages
        before = len(messages)
        for kind, payload in reader.feed(data):
            if kind <= BINARY:
                messages.append((kind, payload, now))
                self._unread += len(payload) + MESSAGE_BYTES
            elif kind == PING:
                self._control(PONG, payload)
            elif kind == PONG:
                if payload in self._pongs:
                    self._pongs[payload] = now
            else:
                self._closed(payload)
                break
        if len(messages) > before:
            self.scope.measure("ws_msgs_received", "count", len(messages) - before)
        if reader.error is not None:
            self._refuse(reader.error)
        elif self._unread > self._most:
            self._refuse(FrameError(TOO_BIG, f"{self._most} bytes and more unread"))
        self.wake()

    def _refuse(self, error: FrameError) -> None:
        self._control(CLOSE, closing(error.code))
        self.over(Outcome.PROTOCOL, f"sent {error}")

    def _closed(self, payload: bytes) -> None:
        try:
            self.close_code, reason = closed_by(payload)
        except FrameError as error:
            self._refuse(error)
            return
        self._control(CLOSE, payload[:2])
        outcome = Outcome.RESET if self.close_code in _ENDINGS else Outcome.STATUS
        words = CODES.get(self.close_code, "")
        said = f"{self.close_code}{f' ({words})' if words else ''}{f': {reason}' if reason else ''}"
        self.over(outcome, f"closed the session with {said}")

    def _control(self, kind: int, payload: bytes) -> None:
        data = frame(kind, payload, masked=True)
        if self.unsent is not None:
            self._later = data  # one is enough: each says that this side is there
            return
        with suppress(OSError):  # the read tells how it ended
            self.write(data)

    def drained(self, now: float) -> None:
        if self.unsent is None and self._later:
            data, self._later = self._later, b""
            with suppress(OSError):
                self.write(data)
        self.wake()

    @property
    def has_answer(self) -> bool:
        return bool(self._messages) or (self._reader is None and self.head is not None)

    # -- calls ------------------------------------------------------------------------------------

    async def send_message(self, call: Call, kind: int, data: bytes) -> None:
        if self._deflate is not None:
            kind, data = kind | COMPRESSED, self._deflate.compress(data)
        await self.transmit(call, frame(kind, data, masked=True))
        self.scope.measure("ws_msgs_sent", "count", 1)

    async def receive(self, call: Call, matches: Matches | None, answer: WebSocketResponse) -> None:
        messages = self._messages
        while True:
            while messages:
                message = messages.popleft()
                kind, payload, at = message
                size = len(payload)
                self._unread -= size + MESSAGE_BYTES
                if matches is None or matches(message):
                    call.got(size + (2 if size < 126 else 4 if size < 65_536 else 10), at, at)
                    answer.content = payload
                    answer.is_binary = kind == BINARY
                    return
            if self.end is not None:
                raise self.end
            await self.change()

    async def exchange(
        self,
        call: Call,
        kind: int,
        data: bytes,
        matches: Matches | None,
        answer: WebSocketResponse,
    ) -> None:
        if matches is not None:
            call.begin()
            await self.send_message(call, kind, data)
            await self.receive(call, matches, answer)
            return
        async with self.turn:
            call.begin()
            await self.send_message(call, kind, data)
            await self.receive(call, None, answer)

    async def ping(self, call: Call) -> None:
        self._pings += 1
        payload = b"%d" % self._pings
        self._pongs[payload] = None
        try:
            await self.transmit(call, frame(PING, payload, masked=True))
            while (at := self._pongs[payload]) is None:
                if self.end is not None:
                    raise self.end
                await self.change()
        finally:
            del self._pongs[payload]
        call.got(2 + len(payload), at, at)
        self.scope.measure("ws_ping", "distribution", (call.ended - call.started) * 1e3)

    async def say_goodbye(self, call: Call, payload: bytes) -> int:
        """The code that the server closes by, too."""
        await self.transmit(call, frame(CLOSE, payload, masked=True))
        while self.end is None:
            await self.change()
        if not self.close_code:
            raise self.end
        at = perf_counter()
        call.got(4, at, at)
        return self.close_code

    def leave(self, code: int) -> None:
        """The user goes on without it."""
        if self.is_open and self._upgraded_at:
            self._control(CLOSE, closing(code))
        self.shut()

    def shut(self) -> None:
        if self.is_open and self._upgraded_at:
            lasted_s = perf_counter() - self._upgraded_at
            self.scope.measure("ws_session_duration", "distribution", lasted_s * 1e3)
        super().shut()

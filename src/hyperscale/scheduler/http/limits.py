"""What strangers may cost before they show a token: bytes and seconds of a request's head, seconds
of its body, and connections.

uvicorn reads a head of any size for any time. A connection that has not said yet what it wants
gives way to a newer one when there are too many, so that whoever holds many of them keeps nobody
out who asks at once.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from hyperscale.runtime.logs import logger
from hyperscale.runtime.open_files import files_for_others

HEAD_BYTES_MAX: Final = 16 * 1024
HEAD_S: Final = 10.0
BODY_S: Final = 30.0
"""For half a megabyte at most: a line of 140 kbit/s."""
HANDSHAKE_S: Final = 5.0
CONNECTIONS_MAX: Final = 4096
FILES_OF_JOBS: Final = 128
"""Kept for the store, and for pipes and sockets of jobs."""
TELL_AGAIN_S: Final = 60.0

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
_log = logger("scheduler.api")


def connections_max() -> int:
    return max(16, min(CONNECTIONS_MAX, files_for_others() - FILES_OF_JOBS))


class Connections:
    """Those of one server that are between requests or inside a head, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._quiet: dict[LimitedProtocol, None] = {}
        self._dropped = 0
        self._told_at = float("-inf")

    def came(self, one: LimitedProtocol, count: int) -> None:
        self._quiet[one] = None
        if count > self._most:
            self.drop(next(iter(self._quiet)), "too many connections")

    def speaks(self, one: LimitedProtocol) -> None:
        self._quiet.pop(one, None)

    def is_quiet(self, one: LimitedProtocol) -> None:
        self._quiet[one] = None

    def drop(self, one: LimitedProtocol, why: str) -> None:
        self._quiet.pop(one, None)
        one.transport.abort()
        self._dropped += 1
        now = one.loop.time()
        if now - self._told_at >= TELL_AGAIN_S:
            self._told_at = now
            _log.warning("connections dropped", reason=why, so_far=self._dropped)


class LimitedProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        among: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._among = among
        self._in_head = True
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._allow(HEAD_S, "no request came")
        self._among.came(self, len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.speaks(self)
        self._done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """What of it may belong to a head is read first: a body may come with it."""
        if self._in_head:
            room = HEAD_BYTES_MAX - self._head_bytes
            data, rest = (data[:room], data[room:]) if len(data) > room else (data, b"")
            self._head_bytes += len(data)
            if self._deadline is None:
                self._allow(HEAD_S, "a head was not finished")
            super().data_received(data)
            if not rest or self.transport.is_closing():
                return
            if self._in_head:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
            data = rest
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._among.speaks(self)
        self._done()
        self._allow(BODY_S, "a body was not finished")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._done()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._among.is_quiet(self)

    def _allow(self, seconds: float, otherwise: str) -> None:
        self._deadline = self.loop.call_later(seconds, self._among.drop, self, otherwise)

    def _done(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

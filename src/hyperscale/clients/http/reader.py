"""Where a response ends: a state machine over the bytes of one answer, without any I/O.

    HEAD ─► BODY (known length) ─► DONE        1xx heads are skipped: HEAD ─► HEAD
    HEAD ─► CHUNK_SIZE ─► CHUNK ─► CHUNK_SIZE ... ─► TRAILER ─► DONE
    HEAD ─► UNTIL_CLOSE ─► DONE (at the end of the connection)

Written by hand because the parsers at hand cannot be told that a response answers HEAD, set no
limit to what a server may send, and do not say where a message ended. It never raises for bytes
from the server: `error` says what was wrong, and completes "the server ...".
"""

from __future__ import annotations

import re
from enum import Enum, auto

from hyperscale.clients.http.head import CHUNKED, CLOSE_DELIMITED, BadHead, Head

MAX_HEAD_BYTES = 64 * 1024
MAX_KEPT_HEADS = 1024  # about a megabyte; heads with a date die within a second anyway
_START = b"HTTP/1."
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")


class Heads(dict[bytes, Head]):
    """The heads seen lately, by their bytes; a head that sets cookies is not worth keeping."""

    __slots__ = ("decompress", "max_body_bytes")

    def __init__(self, max_body_bytes: int, decompress: bool = True) -> None:
        super().__init__()
        self.max_body_bytes = max_body_bytes
        self.decompress = decompress

    def parse(self, data: bytes) -> Head:
        head = self.get(data)
        if head is None:
            head = Head(data, self.max_body_bytes, self.decompress)
            if not head.set_cookies:
                if len(self) >= MAX_KEPT_HEADS:
                    self.clear()
                self[data] = head
        return head


class State(Enum):
    HEAD = auto()
    BODY = auto()
    CHUNK_SIZE = auto()
    CHUNK = auto()
    TRAILER = auto()
    UNTIL_CLOSE = auto()
    DONE = auto()


class ResponseReader:
    """Feed it what arrives; `done` with a `head` is a response, `error` a broken one.

    `extra` tells that bytes came after the end, so the connection cannot be trusted any more.
    """

    __slots__ = (
        "_bodiless",
        "_buffer",
        "_heads",
        "_missing",
        "_parts",
        "_size",
        "error",
        "extra",
        "head",
        "state",
    )

    def __init__(self, heads: Heads, bodiless: bool = False) -> None:
        self._heads = heads
        self._buffer = b""
        self._parts: list[bytes] = []
        self._missing = 0
        self._size = 0
        self._bodiless = bodiless  # the request was HEAD (or CONNECT): no body whatever it says
        self.state = State.HEAD
        self.head: Head | None = None
        self.error = ""
        self.extra = False

    @property
    def done(self) -> bool:
        return self.state is State.DONE

    @property
    def body(self) -> bytes:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request after this response."""
        return self.done and not self.error and not self.extra and self._keep_alive

    @property
    def _keep_alive(self) -> bool:
        return self.head is not None and self.head.keep_alive and self.head.status != 101

    def feed(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        at = 0
        while at < len(data) and self.state is not State.DONE:
            match self.state:
                case State.HEAD:
                    at = self._read_head(data, at)
                case State.CHUNK_SIZE:
                    at = self._read_chunk_size(data, at)
                case State.TRAILER:
                    at = self._read_trailer(data, at)
                case State.UNTIL_CLOSE:
                    at = self._keep(data, at, len(data))
                case _:
                    at = self._read_counted(data, at)
        self.extra = self.extra or at < len(data)

    def end(self) -> None:
        """The server closed the connection."""
        match self.state:
            case State.DONE:
                pass
            case State.UNTIL_CLOSE:
                self.state = State.DONE
            case State.HEAD:
                self._fail("closed the connection before its response was complete")
            case State.BODY:
                assert self.head is not None
                self._fail(
                    f"closed the connection after {self.head.length - self._missing} of "
                    f"{self.head.length} bytes of the body"
                )
            case _:
                self._fail("closed the connection in the middle of a chunked body")

    def _fail(self, error: str) -> int:
        self.error = error
        self.state = State.DONE
        return 0

    def _wait_for_more(self, data: bytes, at: int, what: str) -> int:
        if len(data) - at > MAX_HEAD_BYTES:
            return self._fail(f"sent {what} of more than {MAX_HEAD_BYTES // 1024} KiB")
        self._buffer = data[at:]
        return len(data)

    def _read_head(self, data: bytes, at: int) -> int:
        if not _START.startswith(data[at : at + len(_START)]):
            return self._fail(_not_http(data[at : at + 40]))
        end = data.find(b"\r\n\r\n", at, at + MAX_HEAD_BYTES + 4)
        if end < 0:
            return self._wait_for_more(data, at, "a header")
        try:
            head = self._heads.parse(data[at:end])
        except BadHead as error:
            return self._fail(f"sent {error}")
        if head.status < 200 and head.status != 101:
            self._size += end + 4 - at
            if self._size > MAX_HEAD_BYTES:
                return self._fail(f"keeps sending {head.status} and no final response")
            return end + 4
        self._size = 0
        self.head = head
        if self._bodiless or head.length == 0:
            self.state = State.DONE
        elif head.length == CHUNKED:
            self.state = State.CHUNK_SIZE
        elif head.length == CLOSE_DELIMITED:
            self.state = State.UNTIL_CLOSE
        elif head.length > self._heads.max_body_bytes:
            return self._too_large()
        else:
            self.state = State.BODY
            self._missing = head.length
        return end + 4

    def _read_counted(self, data: bytes, at: int) -> int:
        taken = min(self._missing, len(data) - at)
        self._missing -= taken
        end = self._keep(data, at, at + taken)
        if not self._missing and not self.error:
            self.state = State.DONE if self.state is State.BODY else State.CHUNK_SIZE
        return end

    def _keep(self, data: bytes, at: int, end: int) -> int:
        self._size += end - at
        if self._size > self._heads.max_body_bytes:
            return self._too_large()
        self._parts.append(data[at:end])
        return end

    def _too_large(self) -> int:
        limit = self._heads.max_body_bytes
        return self._fail(f"sent a body of more than {limit} bytes (max_response_bytes)")

    def _read_chunk_size(self, data: bytes, at: int) -> int:
        # The line break that ends a chunk is read with the size line that follows it.
        start = at + 2 if self._parts else at
        if not b"\r\n".startswith(data[at:start]):
            return self._fail("sent a chunk that is longer than it said")
        end = data.find(b"\r\n", start, start + MAX_HEAD_BYTES)
        if end < 0:
            return self._wait_for_more(data, at, "a chunk size")
        line = _CHUNK_SIZE.fullmatch(data, start, end)
        if line is None:
            return self._fail(
                f"sent a senseless chunk size: {data[start : min(end, start + 40)]!r}"
            )
        self._missing = int(line[1], 16)
        self.state = State.CHUNK if self._missing else State.TRAILER
        return end + 2

    def _read_trailer(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self.state = State.DONE
            return at + 2
        end = data.find(b"\r\n\r\n", at, at + MAX_HEAD_BYTES)
        if end < 0:
            return self._wait_for_more(data, at, "a trailer")
        self.state = State.DONE
        return end + 4


def _not_http(data: bytes) -> str:
    if data[:2] == b"\x15\x03":
        return "answered with a TLS alert; did you mean https://?"
    if data[:7].startswith(b"HTTP/2") or data[3:9] == b"\x04\x00\x00\x00\x00\x00":
        return "speaks HTTP/2 only"
    return f"sent something that is not HTTP: {data[:40]!r}"

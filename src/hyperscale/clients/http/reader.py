"""Where a response ends: a state machine over the bytes of one answer, without any I/O.

    HEAD ─► BODY (known length) ─► DONE        1xx heads are skipped: HEAD ─► HEAD
    HEAD ─► CHUNKS ─► TRAILER ─► DONE          whole chunks are read in one go
            CHUNKS ─► CHUNK ─► CHUNK_END ─► CHUNKS     one that is not all there yet
    HEAD ─► UNTIL_CLOSE ─► DONE (at the end of the connection)

Written by hand because the parsers at hand cannot be told that a response answers HEAD, set no
limit to what a server may send, and do not say where a message ended. It never raises for bytes
from the server: `error` says what was wrong, and completes "the server ...".

Lines of the head and the trailer may end with LF alone (RFC 9112, 2.2), as scripts and devices
send them. Lines between chunks may not: a proxy on the way that wants CRLF sees the response end
elsewhere, and what it takes for the body would here be the answer to the next request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from hyperscale.clients.http.head import CHUNKED, CLOSE_DELIMITED, BadHead, Head, trailers
from hyperscale.workload.responses import NO_HEADERS, ResponseHeaders

MAX_HEAD_BYTES = 64 * 1024
# Together a few megabytes at most; heads with a date die within a second anyway.
MAX_KEPT_HEADS = 1024
MAX_KEPT_HEAD_BYTES = 4096
# What is missing of a body that is received in place. Less is not worth a buffer, and for more a
# server's word that it will come is not enough.
_FILLED_MIN = 16 * 1024
_FILLED_MAX = 1024 * 1024
_START = b"HTTP/1."
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LINE_END = re.compile(rb"\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
# What the size lines of chunks mean, without those of last chunks. Servers have favourite sizes.
_chunk_sizes: dict[bytes, int] = {}
_MAX_KEPT_SIZES = 4096
_MAX_KEPT_SIZE_BYTES = 8

Sink = Callable[[bytes], object]


def _discard(_: bytes) -> None:
    """Nothing is done with a body that nobody wants; the reader does not even cut it out."""


DISCARD: Sink = _discard


class Heads(dict[bytes, Head]):
    """The heads seen lately, by their bytes; long ones and those that set cookies are not kept."""

    __slots__ = ("decompress", "max_body_bytes", "max_head_bytes")

    def __init__(
        self, max_body_bytes: int, decompress: bool = True, max_head_bytes: int = MAX_HEAD_BYTES
    ) -> None:
        super().__init__()
        self.max_body_bytes = max_body_bytes
        self.decompress = decompress
        self.max_head_bytes = max_head_bytes

    def parse(self, data: bytes) -> Head:
        """The head of these bytes, whose lines end with CRLF."""
        head = self.get(data)
        if head is None:
            if len(data) > self.max_head_bytes:
                raise BadHead(self.too_long("a header"))
            head = Head(data, self.max_body_bytes, self.decompress)
            if not head.set_cookies and len(data) <= MAX_KEPT_HEAD_BYTES:
                if len(self) >= MAX_KEPT_HEADS:
                    self.clear()
                self[data] = head
        return head

    def too_long(self, what: str) -> str:
        limit = self.max_head_bytes
        size = f"{limit} bytes" if limit % 1024 else f"{limit // 1024} KiB"
        return f"{what} of more than {size} (max_header_bytes)"


class ResponseReader:
    """Feed it what arrives; `done` with a `head` is a response, `error` a broken one.

    `extra` tells that bytes came after the end, so the connection cannot be trusted any more.
    The body is kept, up to the limit of `heads`, or given to `sink` piece by piece, without limit;
    `size` is how much of it came.
    """

    __slots__ = (
        "_bodiless",
        "_buffer",
        "_heads",
        "_interim",
        "_missing",
        "_parts",
        "_sink",
        "_state",
        "_trailer",
        "_whole",
        "done",
        "error",
        "extra",
        "head",
        "size",
    )

    def __init__(self, heads: Heads, bodiless: bool = False, sink: Sink | None = None) -> None:
        self._heads = heads
        self._bodiless = bodiless  # the request was HEAD (or CONNECT): no body whatever it says
        self._sink = sink
        self._state = _HEAD
        self._buffer: bytearray | None = None  # the beginning of what is not all there yet
        self._interim = 0  # bytes of 1xx heads
        self._missing = 0  # bytes of a body or chunk
        self._parts: list[bytes] = []  # of the body; to join them once is the fewest copies
        self._whole: bytearray | None = None  # all of the body, when it is received in place
        self._trailer = b""
        self.size = 0
        self.done = False
        self.head: Head | None = None
        self.error = ""
        self.extra = False

    @property
    def body(self) -> bytes | bytearray:
        if self._whole is not None:
            return self._whole
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def room(self) -> memoryview | None:
        """Where the rest of a long body is to be received, so that nobody copies it again."""
        if self._whole is None:
            missing = self._missing
            if self._state != _BODY or self._sink or not _FILLED_MIN <= missing <= _FILLED_MAX:
                return None
            self._whole = bytearray(self.size + missing)
            self._whole[: self.size] = b"".join(self._parts)
        return memoryview(self._whole)[self.size :]

    def filled(self, count: int) -> None:
        """So many bytes were put where there was room."""
        self.size += count
        self._missing -= count
        self.done = not self._missing

    @property
    def trailers(self) -> ResponseHeaders:
        """The fields that came behind a chunked body."""
        return trailers(_with_crlf(self._trailer)) if self._trailer else NO_HEADERS

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request after this response."""
        return self.done and not self.error and not self.extra and self._keep_alive

    @property
    def _keep_alive(self) -> bool:
        return self.head is not None and self.head.keep_alive and self.head.status != 101

    def feed(self, data: bytes) -> None:
        if self._buffer is not None:
            data = self._join(self._buffer, data)
        at, end = 0, len(data)
        while at < end and not self.done:
            at = _STEPS[self._state](self, data, at)
        if at < end:
            self.extra = True

    def end(self) -> None:
        """The server closed the connection."""
        if self.done:
            return
        if self._state == _UNTIL_CLOSE:
            self.done = True
        elif self._state == _HEAD:
            self._fail("closed the connection before its response was complete")
        elif self._state == _BODY:
            announced = self.size + self._missing
            self._fail(f"closed the connection after {self.size} of {announced} bytes of the body")
        else:
            self._fail("closed the connection in the middle of a chunked body")

    def _fail(self, error: str) -> int:
        self.error = error
        self.done = True
        return 0

    def _wait_for_more(self, data: bytes, at: int, what: str) -> int:
        if len(data) - at > self._heads.max_head_bytes + 3:  # all but one byte of a blank line
            return self._fail(f"sent {self._heads.too_long(what)}")
        self._buffer = bytearray(data[at:])
        return len(data)

    def _join(self, buffer: bytearray, data: bytes) -> bytes:
        """The buffered beginning with what came after it, or nothing while that ends nothing.

        Looking only at what is new keeps a head that comes byte by byte from being read as often
        as it has bytes. The first bytes are looked at at once: they tell whether this is HTTP.
        """
        seen = len(buffer)
        buffer += data
        if len(_START) <= seen and len(buffer) <= self._heads.max_head_bytes:
            wanted = _LINE_END if self._state == _CHUNKS else _BLANK_LINE
            if not wanted.search(buffer, seen - 2):
                return b""
        self._buffer = None
        return bytes(buffer)

    def _read_head(self, data: bytes, at: int) -> int:
        if not _START.startswith(data[at : at + len(_START)]):
            return self._fail(_not_http(data[at : at + 40]))
        limit = at + self._heads.max_head_bytes + 4
        end = data.find(b"\r\n\r\n", at, limit)
        after = end + 4
        lines = data[at:end] if end > 0 else b""
        head = self._heads.get(lines)
        if head is None:
            if not lines or lines.count(b"\n") != lines.count(b"\r\n"):
                blank = _BLANK_LINE.search(data, at, limit)
                if blank is None:
                    return self._wait_for_more(data, at, "a header")
                lines, after = _with_crlf(data[at : blank.start()]), blank.end()
            try:
                head = self._heads.parse(lines)
            except BadHead as error:
                return self._fail(f"sent {error}")
        if head.status < 200 and head.status != 101:
            self._interim += after - at
            if self._interim > self._heads.max_head_bytes:
                return self._fail(f"keeps sending {head.status} and no final response")
            return after
        self.head = head
        if self._bodiless or head.length == 0:
            self.done = True
        elif head.length == CHUNKED:
            self._state = _CHUNKS
        elif head.length == CLOSE_DELIMITED:
            self._state = _UNTIL_CLOSE
        elif head.length > self._limit:
            return self._too_large()
        else:
            self._state = _BODY
            self._missing = head.length
        return after

    def _read_body(self, data: bytes, at: int) -> int:
        end = self._take_missing(data, at)
        self.done = not self._missing
        return end

    def _read_until_close(self, data: bytes, at: int) -> int:
        if self.size + len(data) - at > self._limit:
            return self._too_large()
        self._keep(data, at, len(data))
        return len(data)

    def _read_chunks(self, data: bytes, at: int) -> int:
        """All whole chunks of the usual form in one loop, since some servers send millions."""
        discards = self._sink is DISCARD
        sizes = _chunk_sizes
        room = self._limit - self.size
        before = room
        pieces = []  # joined at the end, not kept as millions of small objects
        while True:
            end = data.find(b"\r\n", at)
            size = sizes.get(data[at:end]) if end > 0 else None
            if size is None or size > room:
                break
            start = end + 2
            end = start + size
            if data[end : end + 2] != b"\r\n":
                break
            if not discards:
                pieces.append(data[start:end])
            room -= size
            at = end + 2
        self.size += before - room
        if pieces:
            self._add(b"".join(pieces))
        return self._begin_chunk(data, at) if at < len(data) else at

    def _begin_chunk(self, data: bytes, at: int) -> int:
        limit = at + self._heads.max_head_bytes + 2
        line = _CHUNK_SIZE.match(data, at, limit)
        if line is None:
            end = data.find(b"\n", at, limit)
            if end < 0:
                return self._wait_for_more(data, at, "a chunk size")
            if data[end - 1 : end] != b"\r":
                return self._fail("ended a chunk size with LF instead of CRLF")
            return self._fail(f"sent a senseless chunk size: {data[at : end - 1][:40]!r}")
        size = int(line[1], 16)
        if not size:
            self._state = _TRAILER
            return line.end() - 1
        if self.size + size > self._limit:
            return self._too_large()
        if line.end() - at <= _MAX_KEPT_SIZE_BYTES:
            if len(_chunk_sizes) >= _MAX_KEPT_SIZES:
                _chunk_sizes.clear()
            _chunk_sizes[data[at : line.end() - 2]] = size
        self._state = _CHUNK
        self._missing = size
        return line.end()

    def _read_chunk(self, data: bytes, at: int) -> int:
        end = self._take_missing(data, at)
        if not self._missing:
            self._state = _CHUNK_END
        return end

    def _read_chunk_end(self, data: bytes, at: int) -> int:
        after = data[at : at + 2]
        if after == b"\r\n":
            self._state = _CHUNKS
            return at + 2
        if after == b"\r":
            return self._wait_for_more(data, at, "a chunk")
        return self._fail("sent a chunk that is longer than it said")

    def _read_trailer(self, data: bytes, at: int) -> int:
        # From the line break of the last chunk on: that of no trailer is a blank line then, too.
        blank = _BLANK_LINE.search(data, at, at + self._heads.max_head_bytes + 4)
        if blank is None:
            return self._wait_for_more(data, at, "a trailer")
        self._trailer = data[at + 1 : blank.start() + 1]
        self.done = True
        return blank.end()

    def _take_missing(self, data: bytes, at: int) -> int:
        end = min(at + self._missing, len(data))
        self._missing -= end - at
        self._keep(data, at, end)
        return end

    def _keep(self, data: bytes, at: int, end: int) -> None:
        self.size += end - at
        if self._sink is not DISCARD:
            self._add(data[at:end])

    def _add(self, piece: bytes) -> None:
        if self._sink is None:
            self._parts.append(piece)
        else:
            self._sink(piece)

    @property
    def _limit(self) -> int:
        return self._heads.max_body_bytes if self._sink is None else sys.maxsize

    def _too_large(self) -> int:
        limit = self._heads.max_body_bytes
        return self._fail(f"sent a body of more than {limit} bytes (max_response_bytes)")


# Plain numbers and functions, looked up for every packet.
_HEAD, _BODY, _UNTIL_CLOSE, _CHUNKS, _CHUNK, _CHUNK_END, _TRAILER = range(7)
_STEPS = (
    ResponseReader._read_head,
    ResponseReader._read_body,
    ResponseReader._read_until_close,
    ResponseReader._read_chunks,
    ResponseReader._read_chunk,
    ResponseReader._read_chunk_end,
    ResponseReader._read_trailer,
)


def _with_crlf(lines: bytes) -> bytes:
    """With all lines ended by CRLF; a CR that ends no line stays, for the head to refuse."""
    return lines.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _not_http(data: bytes) -> str:
    if data[:2] == b"\x15\x03":
        return "answered with a TLS alert; did you mean https://?"
    if data[:7].startswith(b"HTTP/2") or data[3:9] == b"\x04\x00\x00\x00\x00\x00":
        return "speaks HTTP/2 only"
    return f"sent something that is not HTTP: {data[:40]!r}"

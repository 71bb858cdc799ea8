"""The status line and headers of a response.

Equal heads come again and again (nginx changes one byte of its head per second), so a parsed head
is shared by all responses that carried the same bytes. Parsing extracts only what decides where
the body ends and how the call went; the fields are split when somebody reads them.
"""

from __future__ import annotations

import re
from typing import Any

from hyperscale.clients.http.decoding import decode
from hyperscale.workload.responses import ResponseHeaders
from hyperscale.workload.results import Outcome

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: (.*))?")
_NAME = re.compile(rb"[^\x00-\x20\x7f:]+[ \t]*")
_FOLD = re.compile(rb"\r\n[ \t]+")
# White space of HTTP; what Python strips besides (VT, FF, and of text NEL and NBSP, which end
# words in UTF-8) belongs to the value.
BLANKS = " \t"

CLOSE_DELIMITED = -1
CHUNKED = -2
_BODILESS = frozenset({204, 304})
REDIRECTS = frozenset({301, 302, 303, 307, 308})


# The headers that matter to the client itself; plain numbers, compared for every new head.
_OTHER, _LENGTH, _TRANSFER, _CONNECTION, _ENCODING, _COOKIE, _LOCATION = range(7)
_NOTABLE = {
    b"content-length": _LENGTH,
    b"transfer-encoding": _TRANSFER,
    b"connection": _CONNECTION,
    b"content-encoding": _ENCODING,
    b"set-cookie": _COOKIE,
    b"location": _LOCATION,
}

StatusLine = tuple[bool, int, str, Outcome, str]

# What servers repeat is looked up instead of matched again. Both are bounded in bytes as well:
# names and reasons that are long are not worth keeping.
_MAX_KEPT = 1024
_MAX_KEPT_BYTES = 64
_names: dict[bytes, int] = {}
_status_lines: dict[bytes, StatusLine] = {}


class BadHead(Exception):
    """The bytes are not a response head; the message completes 'the server sent ...'."""


class Head:
    """`length` is that of the body, or one of the two marks above.

    `start` is all before the body, `whole` the size of a complete response with a body of known
    length. One comparison of each tells whether a packet is exactly one response; `whole` is 0,
    which never fits, for everything that needs the reader. After a `plain` response nothing is left
    to do: no redirect to follow, no cookie to keep.
    """

    __slots__ = (
        "_data",
        "_headers",
        "_max_bytes",
        "body_at",
        "encoded",
        "encodings",
        "error",
        "keep_alive",
        "length",
        "location",
        "outcome",
        "plain",
        "reason",
        "set_cookies",
        "start",
        "status",
        "whole",
    )

    def __init__(self, data: bytes, max_bytes: int, decompress: bool = True) -> None:
        lines = data.split(b"\r\n")
        line = _status_lines.get(lines[0]) or _status_line(lines[0])
        breaks = len(lines) - 1
        if data.count(b"\n") != breaks or data.count(b"\r") != breaks or b"\0" in data:
            raise BadHead("a malformed header")
        self._data = data  # with unfolded lines
        self._headers: ResponseHeaders | None = None
        self._max_bytes = max_bytes
        self.keep_alive, self.status, self.reason, self.outcome, self.error = line
        try:
            self._read_fields(lines)
        except BadHead:
            # The second line of a folded value is no field of its own, so it comes to this.
            self._data = _unfolded(data, lines)
            if self._data == data:
                raise
            self.keep_alive = line[0]
            self._read_fields(self._data.split(b"\r\n"))
        final = self.status >= 200
        if self.status in _BODILESS or not final:
            self.length = 0
        self.encoded = decompress and bool(self.encodings)
        self.plain = 200 <= self.status < 300 and not self.set_cookies
        self.start = data + b"\r\n\r\n"
        self.body_at = len(self.start)
        self.whole = self.body_at + self.length if 0 <= self.length <= max_bytes and final else 0

    def _read_fields(self, lines: list[bytes]) -> None:
        self.length = CLOSE_DELIMITED
        self.location: str | None = None
        self.encodings: tuple[str, ...] = ()
        self.set_cookies: tuple[str, ...] = ()
        chunked = closing = False
        known = _names.get
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            field = known(name)
            if field is None:
                field = _field(name)
            if not colon:
                raise BadHead("a malformed header")
            if not field:
                continue
            value = value.strip(b" \t")
            text = value.decode("latin-1")
            if field == _LENGTH:
                self._set_length(text)
            elif field == _TRANSFER:
                chunked = self._chunked(text)
            elif field == _CONNECTION:
                options = text.lower()
                if "close" in options:
                    closing = True
                elif "keep-alive" in options:
                    self.keep_alive = True
            elif field == _ENCODING:
                codings = (coding.strip(BLANKS).lower() for coding in text.split(","))
                self.encodings += tuple(c for c in codings if c and c != "identity")
            elif field == _COOKIE:
                self.set_cookies += (text,)
            else:
                self.location = _location(value)
        if chunked:
            self.length = CHUNKED
        if closing:
            self.keep_alive = False

    @property
    def is_redirect(self) -> bool:
        """Whether it says where to go; an empty Location names no place."""
        return bool(self.location) and self.status in REDIRECTS

    @property
    def headers(self) -> ResponseHeaders:
        if self._headers is None:
            self._headers = _fields(self._data.decode("latin-1").split("\r\n")[1:])
        return self._headers

    def decode(self, body: bytes) -> bytes:
        return decode(body, self.encodings, self._max_bytes)

    def _set_length(self, text: str) -> None:
        if "," in text:  # the same length several times, as some proxies join them
            lengths = {part.strip(BLANKS) for part in text.split(",")}
            text = lengths.pop() if len(lengths) == 1 else text
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise BadHead(f"a senseless Content-Length: {text!r}")
        length = int(text)
        if self.length not in (CLOSE_DELIMITED, length):
            raise BadHead("two different Content-Lengths")
        self.length = length

    def _chunked(self, text: str) -> bool:
        codings = [coding.strip(BLANKS).lower() for coding in text.split(",")]
        if codings == ["identity"]:
            return False
        if codings != ["chunked"]:
            raise BadHead(f"an unsupported Transfer-Encoding: {text!r}")
        return True


def trailers(data: bytes) -> ResponseHeaders:
    """The fields behind a chunked body. What is no field is passed over: the body is complete."""
    lines = _FOLD.sub(b" ", data).split(b"\r\n")
    named = (line for line in lines if _NAME.fullmatch(line.partition(b":")[0]) and b":" in line)
    return _fields([line.decode("latin-1") for line in named])


def _fields(lines: list[str]) -> ResponseHeaders:
    pairs = (line.partition(":") for line in lines)
    return ResponseHeaders([(n.strip(BLANKS), v.strip(BLANKS)) for n, _, v in pairs])


def _unfolded(data: bytes, lines: list[bytes]) -> bytes:
    """With each value in one line (RFC 9112, 5.2); the status line has no second one."""
    return data if lines[1][:1] in (b" ", b"\t") else _FOLD.sub(b" ", data)


def _location(value: bytes) -> str:
    """Bytes that are not UTF-8 stay these bytes, percent-encoded."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)


def _status_line(line: bytes) -> StatusLine:
    """Keep-alive by default, status, reason, outcome and the sentence of a failure."""
    parts = _STATUS_LINE.fullmatch(line)
    if parts is None:
        raise BadHead(f"something that is not HTTP: {line[:40]!r}")
    status, reason = int(parts[2]), (parts[3] or b"").decode("latin-1").strip(BLANKS)
    failed = status >= 400
    outcome = Outcome.STATUS if failed else Outcome.OK
    sentence = f"{status} {reason}".rstrip(BLANKS) if failed else ""
    read = parts[1] == b"1", status, reason, outcome, sentence
    _keep(_status_lines, line, read)
    return read


def _field(name: bytes) -> int:
    """Which header a name is."""
    if not _NAME.fullmatch(name):
        raise BadHead("a malformed header")
    field = _NOTABLE.get(name.rstrip(b" \t").lower(), _OTHER)
    _keep(_names, name, field)
    return field


def _keep(kept: dict[bytes, Any], key: bytes, value: object) -> None:
    if len(key) <= _MAX_KEPT_BYTES:
        if len(kept) >= _MAX_KEPT:
            kept.clear()
        kept[key] = value

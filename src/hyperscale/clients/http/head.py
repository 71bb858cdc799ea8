"""The status line and headers of a response.

Equal heads come again and again (nginx changes one byte of its head per second), so a parsed head
is shared by all responses that carried the same bytes. Parsing extracts only what decides where
the body ends and how the call went; the fields are split when somebody reads them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hyperscale.clients.http.decoding import decode
from hyperscale.workload.responses import ResponseHeaders
from hyperscale.workload.results import Outcome

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: (.*))?")
_NAME = re.compile(rb"[^\x00-\x20\x7f:]+[ \t]*")
_FOLD = re.compile(rb"\r\n[ \t]+")

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
        "_headers",
        "_max_bytes",
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
        line = _status_line(lines[0])
        if line is None:
            raise BadHead(f"something that is not HTTP: {data[:40]!r}")
        breaks = len(lines) - 1
        if data.count(b"\n") != breaks or data.count(b"\r") != breaks or b"\0" in data:
            raise BadHead("a malformed header")
        self._headers: ResponseHeaders | None = None
        self._max_bytes = max_bytes
        self.keep_alive, self.status, self.reason, self.outcome, self.error = line
        self.length = CLOSE_DELIMITED
        self.location: str | None = None
        self.encodings: tuple[str, ...] = ()
        self.set_cookies: tuple[str, ...] = ()
        self._read_fields(lines)
        final = self.status >= 200
        if self.status in _BODILESS or not final:
            self.length = 0
        self.encoded = decompress and bool(self.encodings)
        self.plain = 200 <= self.status < 300 and not self.set_cookies
        self.start = data + b"\r\n\r\n"
        self.whole = len(self.start) + self.length if 0 <= self.length <= max_bytes and final else 0

    def _read_fields(self, lines: list[bytes]) -> None:
        chunked = False
        for at in range(1, len(lines)):
            name, colon, value = lines[at].partition(b":")
            field = _field(name) if colon else None
            if not field:
                if field is None and (at == 1 or lines[at][:1] not in (b" ", b"\t")):
                    raise BadHead("a malformed header")
                continue
            text = value.decode("latin-1").strip()
            if field == _LENGTH:
                self._set_length(text)
            elif field == _TRANSFER:
                chunked = self._chunked(text)
            elif field == _CONNECTION:
                options = text.lower()
                if "close" in options:
                    self.keep_alive = False
                elif "keep-alive" in options:
                    self.keep_alive = True
            elif field == _ENCODING:
                codings = (coding.strip().lower() for coding in text.split(","))
                self.encodings += tuple(c for c in codings if c and c != "identity")
            elif field == _COOKIE:
                self.set_cookies += (text,)
            else:
                self.location = value.decode("utf-8", "replace").strip()
        if chunked:
            self.length = CHUNKED

    @property
    def is_redirect(self) -> bool:
        return self.location is not None and self.status in REDIRECTS

    @property
    def headers(self) -> ResponseHeaders:
        if self._headers is None:
            lines = _FOLD.sub(b" ", self.start[:-4]).decode("latin-1").split("\r\n")[1:]
            pairs = (line.partition(":") for line in lines)
            self._headers = ResponseHeaders([(n.strip(), v.strip()) for n, _, v in pairs])
        return self._headers

    def decode(self, body: bytes) -> bytes:
        return decode(body, self.encodings, self._max_bytes)

    def _set_length(self, text: str) -> None:
        if "," in text:  # the same length several times, as some proxies join them
            lengths = {part.strip() for part in text.split(",")}
            text = lengths.pop() if len(lengths) == 1 else text
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise BadHead(f"a senseless Content-Length: {text!r}")
        length = int(text)
        if self.length not in (CLOSE_DELIMITED, length):
            raise BadHead("two different Content-Lengths")
        self.length = length

    def _chunked(self, text: str) -> bool:
        codings = [coding.strip().lower() for coding in text.split(",")]
        if codings == ["identity"]:
            return False
        if codings != ["chunked"]:
            raise BadHead(f"an unsupported Transfer-Encoding: {text!r}")
        return True


@lru_cache(maxsize=256)
def _status_line(line: bytes) -> tuple[bool, int, str, Outcome, str] | None:
    """Keep-alive by default, status, reason, outcome and the sentence of a failure."""
    parts = _STATUS_LINE.fullmatch(line)
    if parts is None:
        return None
    status, reason = int(parts[2]), (parts[3] or b"").decode("latin-1").strip()
    failed = status >= 400
    outcome = Outcome.STATUS if failed else Outcome.OK
    return parts[1] == b"1", status, reason, outcome, f"{status} {reason}".strip() if failed else ""


@lru_cache(maxsize=4096)
def _field(name: bytes) -> int | None:
    """Which header a name is; None when it is no name at all."""
    return _NOTABLE.get(name.strip().lower(), _OTHER) if _NAME.fullmatch(name) else None

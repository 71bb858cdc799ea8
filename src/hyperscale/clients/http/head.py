"""The status line and headers of a response.

Equal heads come again and again (nginx changes one byte of its head per second), so a parsed head
is shared by all responses that carried the same bytes. Parsing extracts only what decides where
the body ends and how the call went; the fields are split when somebody reads them.
"""

from __future__ import annotations

import re

from hyperscale.clients.http.decoding import decode
from hyperscale.workload.responses import ResponseHeaders
from hyperscale.workload.results import Outcome

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\r\n\0]*))?")
_FIELDS = re.compile(rb"(?:\r\n[^\x00-\x20\x7f:]+[ \t]*:[^\r\n\0]*(?:\r\n[ \t][^\r\n\0]*)*)*")
_NOTABLE = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection|content-encoding|set-cookie|location)"
    rb"[ \t]*:[ \t]*([^\r\n]*)",
    re.IGNORECASE,
)
_FOLD = re.compile(rb"\r\n[ \t]+")

CLOSE_DELIMITED = -1
CHUNKED = -2
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class BadHead(Exception):
    """The bytes are not a response head; the message completes 'the server sent ...'."""


class Head:
    """`length` is that of the body, or one of the two marks above.

    `whole` is what follows the last header line in a complete response: the blank line and a body
    of known length. One comparison with it tells whether a packet is exactly one response; it is
    0, which never fits, for everything that needs the reader. After a `plain` response nothing is
    left to do: no redirect to follow, no cookie to keep.
    """

    __slots__ = (
        "_fields",
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
        "status",
        "whole",
    )

    def __init__(self, data: bytes, max_bytes: int, decompress: bool = True) -> None:
        line = _STATUS_LINE.match(data)
        if line is None:
            raise BadHead(f"something that is not HTTP: {data[:40]!r}")
        if not _FIELDS.fullmatch(data, line.end()):
            raise BadHead("a malformed header")
        minor, status, reason = line.groups()
        self._fields = data[line.end() :]
        self._headers: ResponseHeaders | None = None
        self._max_bytes = max_bytes
        self.status = int(status)
        self.reason = (reason or b"").decode("latin-1").strip()
        self.length = CLOSE_DELIMITED
        self.keep_alive = minor == b"1"
        self.location: str | None = None
        self.encodings: tuple[str, ...] = ()
        self.set_cookies: tuple[str, ...] = ()
        chunked = False
        for name, value in _NOTABLE.findall(self._fields):
            text = value.decode("latin-1").strip()
            match name.lower():
                case b"content-length":
                    self._set_length(text)
                case b"transfer-encoding":
                    chunked = self._chunked(text)
                case b"connection":
                    options = text.lower()
                    if "close" in options:
                        self.keep_alive = False
                    elif "keep-alive" in options:
                        self.keep_alive = True
                case b"content-encoding":
                    codings = (coding.strip().lower() for coding in text.split(","))
                    self.encodings += tuple(c for c in codings if c and c != "identity")
                case b"set-cookie":
                    self.set_cookies += (text,)
                case _:
                    self.location = value.decode("utf-8", "replace").strip()
        if chunked:
            self.length = CHUNKED
        final = self.status >= 200
        if self.status in (204, 304) or not final:
            self.length = 0
        self.encoded = decompress and bool(self.encodings)
        failed = self.status >= 400
        self.outcome = Outcome.STATUS if failed else Outcome.OK
        self.error = f"{self.status} {self.reason}".strip() if failed else ""
        self.plain = 200 <= self.status < 300 and not self.set_cookies
        self.whole = self.length + 4 if 0 <= self.length <= max_bytes and final else 0

    @property
    def is_redirect(self) -> bool:
        return self.location is not None and self.status in REDIRECTS

    @property
    def headers(self) -> ResponseHeaders:
        if self._headers is None:
            lines = _FOLD.sub(b" ", self._fields).decode("latin-1").split("\r\n")[1:]
            pairs = (line.partition(":") for line in lines)
            self._headers = ResponseHeaders([(n.strip(), v.strip()) for n, _, v in pairs])
        return self._headers

    def decode(self, body: bytes) -> bytes:
        return decode(body, self.encodings, self._max_bytes)

    def _set_length(self, text: str) -> None:
        lengths = {part.strip() for part in text.split(",")}
        value = lengths.pop()
        if lengths or not value.isascii() or not value.isdigit() or len(value) > 18:
            raise BadHead(f"a senseless Content-Length: {text!r}")
        if self.length not in (CLOSE_DELIMITED, int(value)):
            raise BadHead("two different Content-Lengths")
        self.length = int(value)

    def _chunked(self, text: str) -> bool:
        codings = [coding.strip().lower() for coding in text.split(",")]
        if codings == ["identity"]:
            return False
        if codings != ["chunked"]:
            raise BadHead(f"an unsupported Transfer-Encoding: {text!r}")
        return True

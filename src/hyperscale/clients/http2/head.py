"""The fields before a body as the head of a response, and those behind it.

Equal blocks are one object (`hyperscale.http2.hpack`), and so are the heads made of them.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from hyperscale.clients.http.head import BadHead, Head
from hyperscale.http2.hpack import Block, Field
from hyperscale.workload.responses import ResponseHeaders
from hyperscale.workload.results import Outcome

_STATUS = re.compile(rb"[1-9][0-9][0-9]")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")  # without capital letters (RFC 9113, 8.2)
_BREAK = re.compile(rb"[\0\r\n]")
_OF_A_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_BODILESS = frozenset({204, 304})


class FieldsHead(Head):
    """As that of HTTP/1.1, whose reason a server does not send any more."""

    __slots__ = ()

    def __init__(self, fields: tuple[Field, ...], max_bytes: int, decompress: bool) -> None:
        status, lines = _read(fields)
        self.status = status
        self.reason = _reason(status)
        failed = status >= 400
        self.outcome = Outcome.STATUS if failed else Outcome.OK
        self.error = f"{status} {self.reason}".rstrip() if failed else ""
        self._headers: ResponseHeaders | None = None
        self._max_bytes = max_bytes
        self.keep_alive = True
        self._data = b"\r\n".join(lines)
        self._read_fields(lines)
        if status in _BODILESS:
            self.length = 0
        self.encoded = decompress and bool(self.encodings)
        self.plain = 200 <= status < 300 and not self.set_cookies


def head_of(block: Block, max_bytes: int, decompress: bool) -> FieldsHead:
    """Raises BadHead."""
    if block.meaning is None:
        block.meaning = FieldsHead(block.fields, max_bytes, decompress)
    head: FieldsHead = block.meaning
    return head


def trailers_of(block: Block) -> ResponseHeaders:
    """Raises BadHead."""
    pairs = []
    for name, value in block.fields:
        _check(name, value)
        pairs.append((name.decode("latin-1"), value.decode("latin-1")))
    return ResponseHeaders(pairs)


def _read(fields: tuple[Field, ...]) -> tuple[int, list[bytes]]:
    """The status, and the other fields as lines behind an empty one."""
    if not fields or fields[0][0] != b":status" or not _STATUS.fullmatch(fields[0][1]):
        raise BadHead("a response without a status")
    lines = [b""]
    for name, value in fields[1:]:
        _check(name, value)
        lines.append(b"%b: %b" % (name, value))
    return int(fields[0][1]), lines


def _check(name: bytes, value: bytes) -> None:
    if not _NAME.fullmatch(name) or _BREAK.search(value):
        raise BadHead("a malformed header")
    if name in _OF_A_CONNECTION:
        raise BadHead(f"a header that HTTP/2 does not have: {name.decode()}")


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""

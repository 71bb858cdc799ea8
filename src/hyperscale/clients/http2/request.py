"""A request of HTTP/2: built as that of HTTP/1.1, whose lines are then the fields of its block.

`wire` keeps those lines, for `--http-debug` and for whoever asks what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hyperscale.clients.http.request import Request
from hyperscale.http2.hpack import Field

# What HTTP/1.1 says about a connection is not said on a stream (RFC 9113, 8.2.2).
_OF_A_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)


class HTTP2Request(Request):
    """`head` stands for the fields of the request; equal ones are encoded once."""

    __slots__ = ("head",)
    version: ClassVar[str] = "HTTP/2"
    chunks: ClassVar[bool] = False

    def encode(self, head: bytes, cookies: bytes, body: bytes) -> Request:
        super().encode(head, cookies, body)
        self.head = b"%b %b" % (self.target.scheme.encode(), self.wire[: self.body_at])
        return self


def fields_of(head: bytes) -> Iterator[Field]:
    scheme, method, path, rest = head.split(b" ", 3)
    named = [line.partition(b": ") for line in rest.split(b"\r\n")[1:-2]]
    pairs = [(name.lower(), value) for name, _, value in named]
    yield b":method", method
    yield b":scheme", scheme
    yield b":path", path
    yield b":authority", next((value for name, value in pairs if name == b"host"), b"")
    for name, value in pairs:
        if name in _OF_A_CONNECTION or name == b"host":
            continue
        if name == b"te" and value != b"trailers":
            continue
        yield name, value

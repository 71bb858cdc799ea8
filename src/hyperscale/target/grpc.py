"""An echo over gRPC, without protobuf: messages come back as they came.

    service Echo {                                     // hyperscale.Echo
      rpc Say(Note) returns (Note);                    // the same
      rpc Repeat(Note) returns (stream Note);          // the same, `count` times
      rpc Collect(stream Note) returns (Note);         // the last one
      rpc Chat(stream Note) returns (stream Note);     // each as it comes
    }
    message Note { string text = 1; int32 count = 2; }

A Note whose count is negative is refused with that status (-5: NOT_FOUND). Server reflection tells
clients the service, so that a test needs no file.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

from hyperscale.http2.hpack import Field

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
REPEAT_MAX = 10_000
SERVICE = b"hyperscale.Echo"
_PATH = f"/{SERVICE.decode()}/"
_REFLECTION = ("/grpc.reflection.v1.", "/grpc.reflection.v1alpha.")
_OK, _INVALID, _TOO_LARGE, _UNIMPLEMENTED = 0, 3, 8, 12
_HEAD: list[Field] = [(b":status", b"200"), (b"content-type", b"application/grpc")]


class Echo:
    """One call: fed with what comes, it replies by `reply` and ends with its status by `end`."""

    def __init__(
        self,
        path: str,
        fields: dict[bytes, bytes],
        reply: Callable[[list[Field], bytes], None],
        end: Callable[[list[Field]], None],
    ) -> None:
        self._reply_with = reply
        self._end_with = end
        self._is_reflection = path.startswith(_REFLECTION)
        self._method = path.removeprefix(_PATH) if path.startswith(_PATH) else ""
        self._buffer = bytearray()
        self._last: bytes | None = None
        self._head: list[Field] | None = list(_HEAD)
        self._is_zipped = fields.get(b"grpc-encoding") == b"gzip"
        self._is_over = False
        if b"x-echo" in fields:
            self._head = [*_HEAD, (b"x-echo", fields[b"x-echo"])]
        if not self._is_reflection and self._method not in ("Say", "Repeat", "Collect", "Chat"):
            self._fail(_UNIMPLEMENTED, f"unknown method {path}")

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 5 and not self._is_over:
            size = int.from_bytes(self._buffer[1:5], "big")
            if size > MESSAGE_BYTES_MAX:
                self._fail(_TOO_LARGE, f"a message of {size} bytes")
                return
            if len(self._buffer) < 5 + size:
                return
            message = bytes(self._buffer[5 : 5 + size])
            zipped = self._buffer[0]
            del self._buffer[: 5 + size]
            if zipped:
                try:
                    message = gzip.decompress(message)
                except (OSError, EOFError, zlib.error):
                    self._fail(_INVALID, "a message that is not gzip")
                    return
            self._take(message)

    def _take(self, message: bytes) -> None:
        self._last = message
        if self._is_reflection:
            self._reply(_reflected(message))
            return
        count = _number(message)
        if count < 0:
            self._fail(min(-count, 16), "as you wish")
        elif self._method == "Chat":
            self._reply(message)
        elif self._method == "Repeat":
            for _ in range(min(count, REPEAT_MAX)):
                self._reply(message)

    def end(self) -> None:
        if self._is_over:
            return
        if self._method in ("Say", "Collect"):
            if self._last is None:
                self._fail(_INVALID, "there was no message")
                return
            self._reply(self._last)
        self._finish(_OK, "")

    def _reply(self, message: bytes) -> None:
        head, self._head = self._head or [], None
        self._reply_with(head, len(message).to_bytes(5, "big") + message)

    def _fail(self, status: int, why: str) -> None:
        self._finish(status, why)

    def _finish(self, status: int, why: str) -> None:
        self._is_over = True
        trailers = [(b"grpc-status", str(status).encode())]
        if why:
            trailers.append((b"grpc-message", why.encode()))
        self._end_with([*(self._head or ()), *trailers])


def _number(message: bytes) -> int:
    """The field 2 of a Note, 0 when it is not there."""
    for field, value in _fields(message):
        if field == 2 and isinstance(value, int):
            return value - (1 << 64) if value >> 63 else value
    return 0


def _fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """Of a message of protobuf: numbers and texts; what cannot be read ends it."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    try:
        while at < len(message):
            key, at = _varint(message, at)
            if key & 7 == 0:
                value, at = _varint(message, at)
                found.append((key >> 3, value))
            elif key & 7 == 2:
                size, at = _varint(message, at)
                found.append((key >> 3, message[at : at + size]))
                at += size
            else:
                break
    except IndexError:
        pass
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 70:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number & (1 << 64) - 1, at
        shift += 7
    raise IndexError


def _text(field: int, value: bytes) -> bytes:
    """A field of bytes, text or a message, shorter than 16 KiB."""
    size = len(value)
    length = bytes((size,)) if size < 128 else bytes((size & 0x7F | 0x80, size >> 7))
    return bytes((field << 3 | 2,)) + length + value


def _method_of(name: bytes, streams: bytes) -> bytes:
    note = b".hyperscale.Note"
    return _text(2, _text(1, name) + _text(2, note) + _text(3, note) + streams)


# The FileDescriptorProto of the service above.
_FILE = (
    _text(1, b"hyperscale/echo.proto")
    + _text(2, b"hyperscale")
    + _text(
        4,
        _text(1, b"Note")
        + _text(2, _text(1, b"text") + b"\x18\x01\x20\x01\x28\x09" + _text(10, b"text"))
        + _text(2, _text(1, b"count") + b"\x18\x02\x20\x01\x28\x05" + _text(10, b"count")),
    )
    + _text(
        6,
        _text(1, b"Echo")
        + _method_of(b"Say", b"")
        + _method_of(b"Repeat", b"\x30\x01")
        + _method_of(b"Collect", b"\x28\x01")
        + _method_of(b"Chat", b"\x28\x01\x30\x01"),
    )
    + _text(12, b"proto3")
)


def _reflected(message: bytes) -> bytes:
    """The answer to a ServerReflectionRequest: the names of the services, or the file."""
    asked = dict(_fields(message))
    original = _text(2, message)
    if 7 in asked:
        return original + _text(6, _text(1, _text(1, SERVICE)))
    symbol = asked.get(4)
    known = isinstance(symbol, bytes) and symbol.startswith((SERVICE, b"hyperscale.Note"))
    if known or 3 in asked:
        return original + _text(4, _text(1, _FILE))
    return original + _text(7, b"\x08\x05" + _text(2, b"no such symbol"))

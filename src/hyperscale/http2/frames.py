"""Frames: nine bytes that say what follows, of which stream, and how long it is (RFC 9113, 4.1)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9

# Plain numbers, compared for every frame.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY = range(8)
WINDOW_UPDATE, CONTINUATION = 8, 9

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = range(1, 5)
MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 5, 6

FRAME_BYTES = 16 * 1024  # what a peer may send before it is allowed more, which it never is by us
FRAME_BYTES_MAX = 2**24 - 1
WINDOW_BYTES = 64 * 1024 - 1  # of a stream and of a connection until somebody says otherwise
WINDOW_BYTES_MAX = 2**31 - 1
STREAM_MAX = 2**31 - 1

ERRORS = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
)
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = range(5, 10)
ENHANCE_YOUR_CALM = 11

# The length and the kind are read as one number: length * 256 + kind.
_HEAD = struct.Struct(">IBI")
head_of = _HEAD.pack
read_head = _HEAD.unpack_from
_NUMBER = struct.Struct(">I")
_PAIR = struct.Struct(">HI")
_LAST = struct.Struct(">II")


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return head_of(len(payload) << 8 | kind, flags, stream) + payload


def settings(values: Mapping[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_PAIR.pack(*pair) for pair in values.items()))


def window_update(stream: int, size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, _NUMBER.pack(size))


def rst_stream(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, _NUMBER.pack(code))


def goaway(last: int, code: int) -> bytes:
    return frame(GOAWAY, 0, 0, _LAST.pack(last, code))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    return list(_PAIR.iter_unpack(payload))


def read_number(payload: bytes) -> int:
    number: int = _NUMBER.unpack_from(payload)[0]
    return number


def read_goaway(payload: bytes) -> tuple[int, int, bytes]:
    """The last stream that was or may be processed, why, and what else the peer says."""
    last, code = _LAST.unpack_from(payload)
    return last & STREAM_MAX, code, payload[_LAST.size :]


def error_name(code: int) -> str:
    return ERRORS[code] if code < len(ERRORS) else f"error {code:#x}"

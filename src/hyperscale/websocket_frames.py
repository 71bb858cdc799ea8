"""WebSocket frames (RFC 6455) and their compression (RFC 7692), without any I/O.

The client and the embedded target speak by it. A reader is fed with what arrives and gives whole
messages and control frames; what breaks the rules, or is longer than allowed, is its `error`, with
the code to close by, as early as the head of a frame tells it.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha1
from random import getrandbits
from struct import Struct

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
COMPRESSED = 0x40  # RSV1, set with the opcode of a message's first frame
_FIN, _MASKED = 0x80, 0x80
_KNOWN = frozenset((CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG))
_CONTROL_BYTES_MAX = 125
_INT_BYTES_MAX = 2_000  # up to here a XOR of whole numbers is faster than numpy
_LENGTH_2, _LENGTH_8 = Struct("!BBH"), Struct("!BBQ")
_FLUSHED = b"\0\0\xff\xff"  # the end of what zlib flushes, which is not sent
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NO_CODE, NOT_UTF8, TOO_BIG = 1000, 1001, 1002, 1005, 1007, 1009
CODES = {
    NORMAL: "normal closure",
    GOING_AWAY: "going away",
    PROTOCOL_ERROR: "protocol error",
    1003: "unsupported data",
    NO_CODE: "no code",
    NOT_UTF8: "invalid data",
    1008: "policy violation",
    TOO_BIG: "message too big",
    1010: "extension missing",
    1011: "internal error",
    1012: "service restart",
    1013: "try again later",
    1014: "bad gateway",
}
_UNSENDABLE = frozenset((1004, NO_CODE, 1006, 1015))

Event = tuple[int, bytes]
"""TEXT or BINARY with the whole message, or CLOSE, PING or PONG with what it carries."""


class FrameError(Exception):
    """`code` is what to close by; the message completes "the server sent ..."."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def accept_of(key: bytes) -> bytes:
    """What a server answers to the key of an upgrade."""
    return b64encode(sha1(key + _ACCEPT, usedforsecurity=False).digest())


def frame(opcode: int, data: bytes, masked: bool) -> bytes:
    """One whole message. What a client sends is masked; the key need not be secret here, since
    nobody else chooses what a load test sends."""
    size = len(data)
    mask = _MASKED if masked else 0
    if size < 126:
        head = bytes((_FIN | opcode, mask | size))
    elif size < 65_536:
        head = _LENGTH_2.pack(_FIN | opcode, mask | 126, size)
    else:
        head = _LENGTH_8.pack(_FIN | opcode, mask | 127, size)
    if not masked:
        return head + data
    key = getrandbits(32).to_bytes(4, "little")
    return head + key + xor(data, key)


def xor(data: bytes, key: bytes) -> bytes:
    size = len(data)
    mask = (key * (size // 4 + 1))[:size]
    if size <= _INT_BYTES_MAX:
        number = int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")
        return number.to_bytes(size, "little")
    import numpy as np

    return (np.frombuffer(data, np.uint8) ^ np.frombuffer(mask, np.uint8)).tobytes()


def closing(code: int, reason: str = "") -> bytes:
    """What a CLOSE carries."""
    if code == NO_CODE:
        return b""
    return code.to_bytes(2, "big") + reason.encode()[: _CONTROL_BYTES_MAX - 2]


def closed_by(data: bytes) -> tuple[int, str]:
    """The code and reason of a CLOSE. Raises FrameError."""
    if not data:
        return NO_CODE, ""
    code = int.from_bytes(data[:2], "big") if len(data) > 1 else 0
    if not 1000 <= code < 5000 or code in _UNSENDABLE or 1015 < code < 3000:
        raise FrameError(PROTOCOL_ERROR, f"a close frame with the code {code}")
    try:
        return code, data[2:].decode()
    except UnicodeDecodeError:
        raise FrameError(NOT_UTF8, "a reason for closing that is not UTF-8") from None


class Deflate:
    """Compression that both sides agreed on; a side may forget its past after each message."""

    __slots__ = ("_deflate", "_inflate", "_keeps_ours", "_keeps_theirs")

    def __init__(self, keeps_ours: bool = True, keeps_theirs: bool = True) -> None:
        self._keeps_ours = keeps_ours
        self._keeps_theirs = keeps_theirs
        self._deflate = zlib.compressobj(wbits=-15)
        self._inflate = zlib.decompressobj(-15)

    def compress(self, data: bytes) -> bytes:
        packed = self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        if not self._keeps_ours:
            self._deflate = zlib.compressobj(wbits=-15)
        return packed[: -len(_FLUSHED)]

    def decompress(self, data: bytes, most: int) -> bytes:
        """Raises FrameError."""
        try:
            plain = self._inflate.decompress(data + _FLUSHED, most + 1)
        except zlib.error:
            raise FrameError(NOT_UTF8, "a message that cannot be decompressed") from None
        if len(plain) > most:
            raise FrameError(TOO_BIG, f"a message of more than {most} bytes")
        if not self._keeps_theirs or self._inflate.eof:
            self._inflate = zlib.decompressobj(-15)
        return plain


class FrameReader:
    """`masked` is whether the peer masks: a client does, a server does not."""

    __slots__ = (
        "_deflate",
        "_fragments",
        "_have",
        "_masked",
        "_most",
        "_need",
        "_opcode",
        "_parts",
        "error",
    )

    def __init__(self, masked: bool, most: int, deflate: Deflate | None = None) -> None:
        self._masked = _MASKED if masked else 0
        self._most = most
        self._deflate = deflate
        self._opcode = 0  # of the message whose fragments have begun to come
        self._fragments = bytearray()
        self._parts: list[bytes] = []  # of a frame that is not whole yet
        self._have = 0
        self._need = 0
        self.error: FrameError | None = None  # after it nothing can be read

    def feed(self, data: bytes) -> Sequence[Event]:
        """What has become whole."""
        if self.error is not None:
            return ()
        if self._parts:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return ()
            data = b"".join(self._parts)
            self._parts.clear()
        events: list[Event] = []
        try:
            self._read(data, events)
        except FrameError as error:
            self.error = error
        return events

    def _read(self, data: bytes, events: list[Event]) -> None:
        at, end = 0, len(data)
        while True:
            need = 2
            if end - at < need:
                break
            first, second = data[at], data[at + 1]
            size = second & 0x7F
            begin = at + 2
            if size > _CONTROL_BYTES_MAX:
                need = 4 if size == 126 else 10
                if end - at < need:
                    break
                size = self._long(data[begin : at + need])
                begin = at + need
            begin += 4 * (second >> 7)
            self._check(first, second, size)
            stop = begin + size
            if stop > end:
                need = stop - at
                break
            payload = data[begin:stop]
            if second & _MASKED:
                payload = xor(payload, data[begin - 4 : begin])
            event = self._event(first, payload)
            if event is not None:
                events.append(event)
            at = stop
        if at < end:
            self._parts.append(data[at:])
            self._have, self._need = end - at, need

    def _long(self, written: bytes) -> int:
        size = int.from_bytes(written, "big")
        if size < (126 if len(written) == 2 else 65_536):
            raise FrameError(PROTOCOL_ERROR, "a length that is not written the shortest way")
        return size

    def _check(self, first: int, second: int, size: int) -> None:
        opcode = first & 0x0F
        if opcode not in _KNOWN:
            raise FrameError(PROTOCOL_ERROR, f"a frame of the unknown kind {opcode}")
        if second & _MASKED != self._masked:
            raise FrameError(
                PROTOCOL_ERROR, f"a frame {'without' if self._masked else 'with'} mask"
            )
        reserved = first & 0x70
        if reserved and (reserved != COMPRESSED or self._deflate is None or opcode not in (1, 2)):
            raise FrameError(PROTOCOL_ERROR, "a frame of an extension that was not agreed on")
        if opcode >= CLOSE:
            if size > _CONTROL_BYTES_MAX or not first & _FIN:
                raise FrameError(PROTOCOL_ERROR, "a control frame that is too long or in fragments")
            return
        if (opcode == CONTINUATION) != bool(self._opcode):
            raise FrameError(PROTOCOL_ERROR, "fragments of messages out of their order")
        if size + len(self._fragments) > self._most:
            raise FrameError(TOO_BIG, f"a message of more than {self._most} bytes")

    def _event(self, first: int, payload: bytes) -> Event | None:
        opcode = first & 0x0F
        if opcode >= CLOSE:
            return opcode, payload
        kind = first & ~_FIN if opcode else self._opcode  # with the mark of compression
        if not first & _FIN:
            self._opcode = kind
            self._fragments += payload
            return None
        if self._opcode:
            payload = bytes(self._fragments + payload)
            self._fragments.clear()
            self._opcode = 0
        if kind & COMPRESSED and self._deflate is not None:
            payload = self._deflate.decompress(payload, self._most)
        kind &= 0x0F
        if kind == TEXT and not payload.isascii():
            try:
                payload.decode()
            except UnicodeDecodeError:
                raise FrameError(NOT_UTF8, "text that is not UTF-8") from None
        return kind, payload
